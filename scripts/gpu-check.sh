#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the conformance suite on this machine's GPU and writes down what came out.
#
#   scripts/gpu-check.sh [FOLDER]                  builds the suite, runs it over each real GPU
#   scripts/gpu-check.sh --binary FILE [FOLDER]    runs a suite that was built elsewhere
#   scripts/gpu-check.sh --pack FILE               builds one that can be carried elsewhere, as FILE
#   --driver cuda|hip                              this driver only, and it must be here
#
# FOLDER (default build/gpu-check) gets, for each driver, conformance-DRIVER.xml (JUnit),
# conformance-DRIVER.log, and in summary.md a row for the table in docs/hardware.md.
# Exit status: 0 all passed, 1 a case failed, 2 wrong usage, 3 no GPU that could be tested.
#
# Needs to build: g++, cmake, ninja, fmt, nlohmann-json and GoogleTest with their headers. Leaves the
# settings of the GPU alone; takes at most 256 MiB of its memory and some minutes.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# lib.sh has gone to the checkout; what the caller names is seen from where the caller is.
called_from=$OLDPWD
absolute() {
  case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$called_from/$1" ;;
  esac
}

usage() {
  printf '%s\n' "$1" >&2
  sed -n 's/^#   \(.*\)/  \1/p' -- "${BASH_SOURCE[0]}" >&2
  exit 2
}

binary=
pack=
drivers=(cuda hip)
folder=build/gpu-check
while [[ $# -gt 0 ]]; do
  case $1 in
    --binary | --pack | --driver)
      [[ $# -ge 2 ]] || usage "$1 needs a value"
      case $1 in
        --binary) binary=$(absolute "$2") ;;
        --pack) pack=$(absolute "$2") ;;
        --driver) drivers=("$2") ;;
      esac
      shift 2
      ;;
    -*) usage "no such option: $1" ;;
    *)
      folder=$(absolute "$1")
      shift
      ;;
  esac
done

# build FOLDER CMAKE-ARGUMENT...: the suite and what it is made of, nothing else.
build() {
  local into=$1
  shift
  printf 'Building the suite...\n'
  quietly "$into/configure.log" cmake -S . -B "$into" -G Ninja -D CMAKE_BUILD_TYPE=Release \
    -D BERTH_BUILD_TOOL=OFF -D BERTH_BUILD_TESTS=OFF -D BERTH_BUILD_CONFORMANCE=ON "$@"
  quietly "$into/build.log" cmake --build "$into" --target conformance -j "$jobs"
}

if [[ -n $pack ]]; then
  # Whatever is not the C library goes into the program; fmt as headers, since distributions ship it
  # as a shared library only.
  build build/gpu-pack -D CMAKE_CXX_FLAGS=-DFMT_HEADER_ONLY \
    -D "CMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc -Wl,--as-needed -s"
  cp -- build/gpu-pack/bin/conformance "$pack"
  printf '%s needs of its machine:\n' "$pack"
  ldd -- "$pack"
  exit
fi

if [[ -z $binary ]]; then
  build build/gpu-check-build
  binary=build/gpu-check-build/bin/conformance
fi
[[ -x $binary ]] || fail "no program: $binary"
mkdir -p -- "$folder"

gpu_of() {
  case $1 in
    cuda) nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 ;;
    hip) rocminfo 2>/dev/null | sed -n 's/^ *Marketing Name: *//p' | tail -n 1 ;;
  esac
}

commit_here() {
  git rev-parse --short HEAD 2>/dev/null || echo unknown
}

# counts LOG: "passed | failed | skipped" of the suite's own last table.
counts() {
  awk -v driver="$2" '$1 == driver && NF == 4 { print $2 " | " $3 " | " $4 }' "$1" | tail -n 1
}

worst=0
tested=0
: >"$folder/summary.md"
for driver in "${drivers[@]}"; do
  log=$folder/conformance-$driver.log
  status=0
  "$binary" --driver="$driver" --gtest_brief=1 \
    --gtest_output=xml:"$(realpath -- "$folder")/conformance-$driver.xml" 2>&1 | tee "$log" || status=$?
  if [[ $status -eq 77 ]]; then
    continue
  fi
  tested=$((tested + 1))
  [[ $status -eq 0 ]] || worst=1
  row=$(counts "$log" "$driver")
  gpu=$(gpu_of "$driver" || true)
  printf '| %s | %s | %s | %s | %s |\n' "${gpu:-unknown}" "$driver" "$(date -u +%F)" \
    "${BERTH_COMMIT:-$(commit_here)}" "${row:-did not end, status $status | | }" \
    >>"$folder/summary.md"
done

if [[ $tested -eq 0 ]]; then
  printf 'No GPU here that could be tested (%s).\n' "${drivers[*]}" >&2
  exit 3
fi
printf '\nFor docs/hardware.md (also in %s):\n' "$folder/summary.md"
cat -- "$folder/summary.md"
exit "$worst"
