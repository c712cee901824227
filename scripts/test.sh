#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything with assertions and runs all tests. Installs what that needs. What was skipped
# is counted before ctest's own summary, which comes last (and is kept in build/dev/summary.txt).
# Usage: scripts/test.sh [PRESET [PART]]   (default: dev, and all of it)
# PART: a build preset and a test preset of that name, for a part of the targets and of the tests.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

preset=${1:-dev}
part=${2:-$preset}
folder=build/$preset
log=$folder/test.log

rm -f -- "$folder/summary.txt" # of an earlier run: no longer true
scripts/install-deps build test
printf 'Building (preset %s)...\n' "$preset"
quietly "$folder/configure.log" cmake --preset "$preset"
quietly "$folder/build.log" cmake --build --preset "$part" -j "$jobs"

# Shows ctest's lines as they come, without those of mere starts, but holds back its summary.
before_summary() {
  awk '/^ +Start +[0-9]+: / { next } /^[0-9]+% tests passed/ { held = 1 } !held { print; fflush() }'
}

status=0
ctest --preset "$part" -j "$jobs" 2>&1 | tee "$log" | before_summary || status=$?

# Tests of cases that are not part of the repository say so in their skip message: see
# tests/support/shared_cases.hpp.
skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
shared=$(grep -c '^shared case absent: ' "$folder/Testing/Temporary/LastTest.log" || true)
printf 'Skipped tests: %s (of them for absent shared cases: %s)\n\n' "$skipped" "$shared"
sed -n '/^[0-9]*% tests passed/,$p' "$log" | tee "$folder/summary.txt"
exit "$status"
