// SPDX-License-Identifier: Apache-2.0
// Synchronous and asynchronous copies of page-locked memory, with odd sizes.
#include "program.hpp"

int main() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  for (const std::size_t bytes : {64UL, 4096UL, 1000003UL, 8UL << 20U, (64UL << 20U) + 12}) {
    auto* const source = program::pinned_memory(bytes);
    auto* const result = program::pinned_memory(bytes);
    auto* const device = program::device_memory(bytes);
    for (const bool async : {false, true}) {
      program::write_pattern(source, bytes, async ? 2 : 3);
      std::memset(result, 0, bytes);
      if (async) {
        CHECK(hipMemcpyAsync(device, source, bytes, hipMemcpyHostToDevice, stream));
        CHECK(hipMemcpyAsync(result, device, bytes, hipMemcpyDeviceToHost, stream));
        CHECK(hipStreamSynchronize(stream));
      } else {
        CHECK(hipMemcpy(device, source, bytes, hipMemcpyHostToDevice));
        CHECK(hipMemcpy(result, device, bytes, hipMemcpyDeviceToHost));
      }
      REQUIRE(program::has_pattern(result, bytes, async ? 2 : 3));
      program::did_copy(program::to_device, bytes);
      program::did_copy(program::to_host, bytes);
    }
    CHECK(hipFree(device));
    CHECK(hipHostFree(source));
    CHECK(hipHostFree(result));
  }
  CHECK(hipStreamDestroy(stream));
}
