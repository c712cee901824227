// SPDX-License-Identifier: Apache-2.0
// Threads with streams of their own, on all devices.
#include <atomic>
#include <thread>

#include "program.hpp"

int main() {
  constexpr std::size_t bytes = 1UL << 20U;
  constexpr unsigned threads = 8;
  constexpr unsigned rounds = 20;
  int devices = 0;
  CHECK(hipGetDeviceCount(&devices));
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([=] {
      CHECK(hipSetDevice(static_cast<int>(thread) % devices));
      hipStream_t stream = nullptr;
      CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
      unsigned char* device = nullptr;
      CHECK(hipMalloc(reinterpret_cast<void**>(&device), bytes));
      auto* const host = program::pinned_memory(bytes);
      for (unsigned round = 0; round < rounds; ++round) {
        program::write_pattern(host, bytes, thread * rounds + round);
        CHECK(hipMemcpyAsync(device, host, bytes, hipMemcpyHostToDevice, stream));
        CHECK(hipMemsetAsync(host, 0, 16, stream));
        CHECK(hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost, stream));
        CHECK(hipStreamSynchronize(stream));
        REQUIRE(program::has_pattern(host, bytes, thread * rounds + round));
      }
      CHECK(hipFree(device));
      CHECK(hipHostFree(host));
      CHECK(hipStreamDestroy(stream));
    });
  }
  for (auto& one : running) {
    one.join();
  }
  for (unsigned i = 0; i < threads * rounds; ++i) {
    program::did_copy(program::to_device, bytes);
    program::did_copy(program::to_host, bytes);
  }
}
