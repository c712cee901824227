// SPDX-License-Identifier: Apache-2.0
// Rates by the devices' own timestamps: "rate DIRECTION BYTES GB/s", from events around copies.
#include "program.hpp"

namespace {

double gb_per_s(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                hipStream_t stream) {
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  CHECK(hipEventRecord(start, stream));
  CHECK(hipMemcpyAsync(to, from, bytes, kind, stream));
  CHECK(hipEventRecord(stop, stream));
  CHECK(hipEventSynchronize(stop));
  float ms = 0;
  CHECK(hipEventElapsedTime(&ms, start, stop));
  CHECK(hipEventDestroy(start));
  CHECK(hipEventDestroy(stop));
  return static_cast<double>(bytes) / (static_cast<double>(ms) * 1e6);
}

}  // namespace

int main() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  for (const std::size_t bytes : {1UL << 20U, 16UL << 20U, 64UL << 20U}) {
    auto* const host = program::pinned_memory(bytes);
    auto* const device = program::device_memory(bytes);
    for (int round = 0; round < 3; ++round) {
      std::printf("rate host_to_device %zu %.4f\n", bytes,
                  gb_per_s(device, host, bytes, hipMemcpyHostToDevice, stream));
      std::printf("rate device_to_host %zu %.4f\n", bytes,
                  gb_per_s(host, device, bytes, hipMemcpyDeviceToHost, stream));
    }
    CHECK(hipFree(device));
    CHECK(hipHostFree(host));
  }
  CHECK(hipStreamDestroy(stream));
}
