// SPDX-License-Identifier: Apache-2.0
// Uses the device, then does nothing for two seconds: "idle SHARE" of one CPU core.
#include <sys/resource.h>
#include <time.h>

#include "program.hpp"

namespace {

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void sleep_seconds(long seconds) {
  const timespec time{.tv_sec = seconds, .tv_nsec = 0};
  nanosleep(&time, nullptr);
}

}  // namespace

int main() {
  constexpr std::size_t bytes = 1UL << 20U;
  hipStream_t streams[4] = {};
  auto* const host = program::pinned_memory(bytes);
  auto* const device = program::device_memory(bytes);
  for (auto& stream : streams) {
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMemcpyAsync(device, host, bytes, hipMemcpyHostToDevice, stream));
    CHECK(hipMemsetAsync(device, 0, bytes, stream));
    CHECK(hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
  }
  sleep_seconds(1);
  const auto before = cpu_seconds();
  sleep_seconds(2);
  std::printf("idle %.4f\n", (cpu_seconds() - before) / 2);
}
