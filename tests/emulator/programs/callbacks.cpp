// SPDX-License-Identifier: Apache-2.0
// Host functions in a stream: after the copies before them, before the copies behind them.
#include <atomic>

#include "program.hpp"

namespace {

constexpr std::size_t bytes = 1UL << 20U;

struct between {
  unsigned char* host;
  std::atomic<int> calls{0};
  bool saw_the_copy = true;
  unsigned round = 0;
};

void check_and_change(hipStream_t, hipError_t status, void* data) {
  auto& here = *static_cast<between*>(data);
  here.saw_the_copy = here.saw_the_copy && status == hipSuccess &&
                      program::has_pattern(here.host, bytes, here.round);
  program::write_pattern(here.host, bytes, here.round + 100);
  ++here.calls;
}

}  // namespace

int main() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  between here{.host = program::pinned_memory(bytes)};
  auto* const source = program::pinned_memory(bytes);
  auto* const device = program::device_memory(bytes);
  for (here.round = 0; here.round < 20; ++here.round) {
    program::write_pattern(source, bytes, here.round);
    CHECK(hipMemcpyAsync(device, source, bytes, hipMemcpyHostToDevice, stream));
    CHECK(hipMemcpyAsync(here.host, device, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamAddCallback(stream, check_and_change, &here, 0));
    CHECK(hipMemcpyAsync(device, here.host, bytes, hipMemcpyHostToDevice, stream));
    CHECK(hipMemcpyAsync(source, device, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(here.saw_the_copy);
    REQUIRE(program::has_pattern(source, bytes, here.round + 100));
    for (int twice = 0; twice < 2; ++twice) {
      program::did_copy(program::to_device, bytes);
      program::did_copy(program::to_host, bytes);
    }
  }
  REQUIRE(here.calls == 20);
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(device));
  CHECK(hipHostFree(here.host));
  CHECK(hipHostFree(source));
}
