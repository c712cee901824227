// SPDX-License-Identifier: Apache-2.0
// Kernels built by hipcc. The emulator executes none: "saxpy" has a host function in its place, for
// programs that are built with -DWITH_HOST_FUNCTION, "without_effect" has none.
// Prints "saxpy RESULT": 21 if it was executed, 1 if not.
#include <cstdio>
#include <vector>

#include <hip/hip_runtime.h>

#include "program.hpp"

extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    y[i] = a * x[i] + y[i];
  }
}

extern "C" __global__ void without_effect(int* p) {
  p[threadIdx.x] = 42;
}

#ifdef WITH_HOST_FUNCTION
#include "berth/emulated_kernel.hpp"

extern "C" berth::emulated_progress berth_emulated_saxpy(berth::emulated_launch* launch) {
  struct arguments {
    int n;
    float a;
    std::uint64_t x;
    std::uint64_t y;
  };
  const auto& given = *static_cast<const arguments*>(launch->arguments);
  const auto* const x = static_cast<const float*>(launch->host_address(given.x));
  auto* const y = static_cast<float*>(launch->host_address(given.y));
  for (int i = 0; i < given.n; ++i) {
    y[i] = given.a * x[i] + y[i];
  }
  launch->device_ns = 50'000;
  return berth::emulated_progress::done;
}
#endif

int main() {
  constexpr int count = 1 << 20;
  constexpr std::size_t bytes = count * sizeof(float);
  std::vector<float> x(count);
  std::vector<float> y(count, 1);
  for (int i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i);
  }
  auto* const on_device_x = program::device_memory<float>(bytes);
  auto* const on_device_y = program::device_memory<float>(bytes);
  CHECK(hipMemcpy(on_device_x, x.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(on_device_y, y.data(), bytes, hipMemcpyHostToDevice));
  program::did_copy(program::to_device, bytes);
  program::did_copy(program::to_device, bytes);
  saxpy<<<count / 256, 256>>>(count, 2.0F, on_device_x, on_device_y);
  CHECK(hipGetLastError());
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(y.data(), on_device_y, bytes, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, bytes);
  std::printf("saxpy %g\n", static_cast<double>(y[10]));
  auto* const words = program::device_memory<int>(4096);
  without_effect<<<1, 64>>>(words);
  CHECK(hipDeviceSynchronize());
}
