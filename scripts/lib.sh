# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts share. Sourced, never run. Sets `root` (the checkout) and goes there, so that
# every script works from any folder.
set -euo pipefail
exec </dev/null # nothing here may wait for someone to type

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

# shellcheck disable=SC2034 # used by those that source this
jobs=$(nproc 2>/dev/null || echo 2)

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# quietly LOG COMMAND...: the command's output goes to LOG, and is shown only if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p -- "$(dirname -- "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 -- "$log" >&2
    fail "failed: $* (whole output: $log)"
  fi
}

# tool NAME: an error that says how to get it, if it is missing.
tool() {
  command -v "$1" >/dev/null || fail "$1 is missing: run scripts/install-deps lint"
}

# sources DIR...: our C++ files below those of the folders that exist, one a line.
sources() {
  local folder
  for folder in "$@"; do
    if [[ -d $folder ]]; then
      find "$folder" -type f \( -name '*.cpp' -o -name '*.hpp' \)
    fi
  done | LC_ALL=C sort
}
