#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on a real trace: installs what the build needs, builds the command, and analyses a
# bundled profiler trace of a PyTorch program. A second run installs nothing and builds nothing.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

trace=tests/data/traces/torch_pageable_inference.json.gz
berth=build/release/bin/berth

scripts/install-deps build
printf 'Building berth...\n'
quietly build/release/configure.log \
  cmake --preset release -D BERTH_BUILD_TESTS=OFF -D BERTH_BUILD_BENCHMARKS=OFF
quietly build/release/build.log cmake --build --preset release --target berth -j "$jobs"

printf '\n$ berth analyze %s\n\n' "$trace"
"$berth" analyze "$trace"
cat <<END

Next, with a trace of your own (torch.profiler's export_chrome_trace, plain or .gz):
  $root/$berth analyze YOUR-TRACE.json.gz
All options, JSON output and the exit status for CI:
  $root/$berth analyze --help
How to read the report:
  $root/README.md
END
