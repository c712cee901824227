#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main jobs on real inputs: installs what the build needs, builds the command, analyses a
# bundled profiler trace of a PyTorch program, and records a bundled program that has the three
# usual faults, on this machine's GPU or on an emulated one. A second run installs nothing and
# builds nothing. The second part is left out, and says why, where its packages are not to be had.
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

trace=tests/data/traces/torch_pageable_inference.json.gz
berth=build/release/bin/berth
source_folder=examples/three_symptoms
program=build/release/three_symptoms

scripts/install-deps build
printf 'Building berth...\n'
quietly build/release/configure.log \
  cmake --preset release -D BERTH_BUILD_TESTS=OFF -D BERTH_BUILD_BENCHMARKS=OFF
quietly build/release/build.log cmake --build --preset release --target berth -j "$jobs"

printf '\n$ berth analyze %s\n\n' "$trace"
"$berth" analyze "$trace"

# Sets `way` to how the program can run here: cuda, hip, emulated; or empty, and `why_not`.
find_way() {
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  hipcc=$(command -v hipcc || ls /opt/rocm/bin/hipcc 2>/dev/null || true)
  way=
  if [[ -n $nvcc && -e /dev/nvidia0 ]]; then
    way=cuda
  elif [[ -n $hipcc && -e /dev/kfd ]]; then
    way=hip
  elif [[ $(uname -sm) != 'Linux x86_64' ]]; then
    why_not="there is no GPU here with its compiler (nvcc, hipcc), and the emulated one is for Linux
on x86-64"
  else
    scripts/install-deps emulated
    # Not "| grep -q": it would end before ldconfig has written all, which pipefail calls a failure.
    if [[ -e /usr/include/hip/hiprtc.h && $(ldconfig -p) == *libamdhip64.so.5* ]]; then
      way=emulated
    else
      why_not="there is no GPU here with its compiler (nvcc, hipcc), and the emulated one needs AMD's
runtime (Debian packages libamdhip64-5 and libamdhip64-dev)"
    fi
  fi
}

# Builds the program for `way`, if it is not newer than its sources.
build_program() {
  local part
  for part in "$source_folder"/*.?pp; do
    [[ $program-$way -nt $part ]] || {
      case $way in
        cuda) quietly "$program.log" "$nvcc" -x cu -std=c++17 -O2 "$source_folder/three_symptoms.cpp" -o "$program-$way" ;;
        hip) quietly "$program.log" "$hipcc" -std=c++17 -O2 "$source_folder/three_symptoms.cpp" -o "$program-$way" ;;
        emulated) quietly "$program.log" g++ -std=c++17 -O2 -D__HIP_PLATFORM_AMD__ \
          "$source_folder/three_symptoms.cpp" -lamdhip64 -o "$program-$way" ;;
      esac
      return
    }
  done
}

find_way
if [[ -z $way ]]; then
  printf '\nThe recording of a running program is left out: %s.\n' "$why_not"
else
  build_program
  options=()
  [[ $way != emulated ]] || options=(--emulate mi210)
  # Each fault alone, so that the others' time does not hide it.
  for fault in pageable managed pingpong; do
    words=("${options[@]}" -- "$program-$way" "$fault" --mib 8 --rounds 20)
    printf '\n$ berth run %s\n\n' "${words[*]}"
    "$berth" run "${words[@]}" 2>&1 ||
      printf '\nThe program did not run through; the report above is of what it did.\n'
  done
fi
cat <<END

Next, with a program of your own, as it is:
  $root/$berth run -- YOUR-PROGRAM ITS-ARGUMENTS
With a trace of your own (torch.profiler's export_chrome_trace, plain or .gz):
  $root/$berth analyze YOUR-TRACE.json.gz
All options, JSON output and the exit status for CI:
  $root/$berth run --help
How to read the report:
  $root/README.md
END
