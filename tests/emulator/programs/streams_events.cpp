// SPDX-License-Identifier: Apache-2.0
// Order between streams through events, and what events tell.
#include "program.hpp"

int main() {
  constexpr std::size_t bytes = 8UL << 20U;
  hipStream_t first = nullptr;
  hipStream_t second = nullptr;
  CHECK(hipStreamCreateWithPriority(&first, hipStreamNonBlocking, -1));
  CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  hipEvent_t copied = nullptr;
  CHECK(hipEventCreateWithFlags(&copied, hipEventDisableTiming));
  auto* const host = program::pinned_memory(bytes);
  auto* const device = program::device_memory(bytes);
  for (unsigned round = 0; round < 20; ++round) {
    program::write_pattern(host, bytes, round);
    CHECK(hipMemcpyAsync(device, host, bytes, hipMemcpyHostToDevice, first));
    CHECK(hipMemsetAsync(host, 0, bytes, first));
    CHECK(hipEventRecord(copied, first));
    CHECK(hipStreamWaitEvent(second, copied, 0));
    CHECK(hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost, second));
    CHECK(hipStreamSynchronize(second));
    REQUIRE(program::has_pattern(host, bytes, round));
    CHECK(hipEventQuery(copied));
    program::did_copy(program::to_device, bytes);
    program::did_copy(program::to_host, bytes);
  }
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  float ms = -1;
  REQUIRE(hipEventElapsedTime(&ms, start, stop) != hipSuccess);
  CHECK(hipEventRecord(start, first));
  CHECK(hipMemcpyAsync(device, host, bytes, hipMemcpyHostToDevice, first));
  program::did_copy(program::to_device, bytes);
  CHECK(hipEventRecord(stop, first));
  CHECK(hipEventSynchronize(stop));
  CHECK(hipEventElapsedTime(&ms, start, stop));
  REQUIRE(ms > 0);
  CHECK(hipEventDestroy(start));
  CHECK(hipEventDestroy(stop));
  CHECK(hipEventDestroy(copied));
  CHECK(hipStreamDestroy(first));
  CHECK(hipStreamDestroy(second));
  CHECK(hipFree(device));
  CHECK(hipHostFree(host));
}
