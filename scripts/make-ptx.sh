#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes src/runtime/cuda/builtin_kernels.ptx from src/runtime/builtin_kernels.cu.
# usage: scripts/make-ptx.sh [output]      needs nvcc 13 (NVCC, else on PATH, else /usr/local/cuda)
#
# nvcc 13 writes PTX of its own version for sm_75 and up. The kernels use nothing newer than PTX 6.0
# and sm_50, so the two directives are lowered: the text then runs on any driver since CUDA 9 and any
# GPU since Maxwell. ptxas accepts it as such (checked where it is found).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
output=${1:-$root/src/runtime/cuda/builtin_kernels.ptx}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$nvcc" -std=c++17 -O3 -arch=compute_75 -ptx "$root/src/runtime/builtin_kernels.cu" -o "$work/new.ptx"
sed -e 's/^\.version .*/.version 6.0/' -e 's/^\.target .*/.target sm_50/' "$work/new.ptx" >"$work/low.ptx"
ptxas=$(dirname "$nvcc")/ptxas
if [ -x "$ptxas" ]; then
  "$ptxas" -arch=sm_75 "$work/low.ptx" -o "$work/check.cubin"
fi
cp "$work/low.ptx" "$output"
