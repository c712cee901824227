// SPDX-License-Identifier: Apache-2.0
// Copies between two devices, with and without a stream.
#include "program.hpp"

int main() {
  int count = 0;
  CHECK(hipGetDeviceCount(&count));
  REQUIRE(count >= 2);
  int reachable = 0;
  CHECK(hipDeviceCanAccessPeer(&reachable, 0, 1));
  REQUIRE(reachable == 1);
  constexpr std::size_t bytes = 4UL << 20U;
  CHECK(hipSetDevice(1));
  CHECK(hipDeviceEnablePeerAccess(0, 0));
  auto* const second = program::device_memory(bytes);
  CHECK(hipSetDevice(0));
  CHECK(hipDeviceEnablePeerAccess(1, 0));
  auto* const first = program::device_memory(bytes);
  const auto source = program::pattern(bytes, 10);
  std::vector<unsigned char> result(bytes);
  CHECK(hipMemcpy(first, source.data(), bytes, hipMemcpyHostToDevice));
  program::did_copy(program::to_device, bytes);
  CHECK(hipMemcpyPeer(second, 1, first, 0, bytes));
  program::did_copy(program::to_peer, bytes);
  CHECK(hipMemcpy(result.data(), second, bytes, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, bytes);
  REQUIRE(result == source);
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipMemset(first, 0, bytes));
  program::did_fill(bytes);
  CHECK(hipMemcpyPeerAsync(first, 0, second, 1, bytes, stream));
  program::did_copy(program::to_peer, bytes);
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipMemcpy(result.data(), first, bytes, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, bytes);
  REQUIRE(result == source);
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(first));
  CHECK(hipSetDevice(1));
  CHECK(hipFree(second));
}
