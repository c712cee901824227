// SPDX-License-Identifier: Apache-2.0
// A fault of HIP 5.2: threads that share a stream. A thread's hipStreamSynchronize ends by
// forgetting the last command of the stream, also if another thread has queued it meanwhile; that
// thread's own hipStreamSynchronize then finds nothing to wait for and returns before its copy has
// been made. Exit status 3 as soon as that is seen, 0 where it is not within the time.
#include <atomic>
#include <chrono>
#include <thread>

#include "program.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::size_t thread_count = 4;
constexpr std::size_t bytes = 256UL << 10U;
constexpr auto patience = std::chrono::seconds(30);

// Sends a byte to the device and back. False if the stream was called empty before the byte was
// back and it came later all the same.
bool returns_in_time(unsigned char* host, unsigned char* device, int value, hipStream_t stream) {
  std::memset(host, value, bytes);
  CHECK(hipMemcpyAsync(device, host, bytes, hipMemcpyDefault, stream));
  CHECK(hipMemsetAsync(host, 0, bytes, stream));
  CHECK(hipMemcpyAsync(host, device, bytes, hipMemcpyDefault, stream));
  CHECK(hipStreamSynchronize(stream));
  auto* const last = static_cast<volatile unsigned char*>(host + bytes - 1);
  if (*last == value) {
    return true;
  }
  const auto begin = clock_type::now();
  while (*last != value && clock_type::now() - begin < std::chrono::seconds(2)) {
    std::this_thread::yield();
  }
  REQUIRE(*last == value);  // late is the fault of HIP, never would be one of the emulator
  return false;
}

}  // namespace

int main() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  auto* const host = program::pinned_memory(thread_count * bytes);
  auto* const device = program::device_memory(thread_count * bytes);
  std::atomic<bool> seen{false};
  const auto end = clock_type::now() + patience;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < thread_count; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; !seen && clock_type::now() < end; ++round) {
        if (!returns_in_time(host + number * bytes, device + number * bytes, round % 255 + 1,
                             stream)) {
          seen = true;
        }
      }
    });
  }
  for (auto& one : threads) {
    one.join();
  }
  std::printf("%s\n", seen ? "returned too early" : "not seen");
  return seen ? 3 : 0;
}
