// SPDX-License-Identifier: Apache-2.0
// A captured graph of copies and a fill, launched more than once.
#include "program.hpp"

int main() {
  constexpr std::size_t bytes = 256UL << 10U;
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  auto* const source = program::pinned_memory(bytes);
  auto* const result = program::pinned_memory(bytes);
  auto* const device = program::device_memory(bytes);
  hipGraph_t graph = nullptr;
  hipGraphExec_t ready = nullptr;
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  CHECK(hipMemcpyAsync(device, source, bytes, hipMemcpyHostToDevice, stream));
  CHECK(hipMemsetAsync(device, 0x11, bytes / 2, stream));
  CHECK(hipMemcpyAsync(result, device, bytes, hipMemcpyDeviceToHost, stream));
  CHECK(hipStreamEndCapture(stream, &graph));
  CHECK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  for (unsigned round = 0; round < 5; ++round) {
    program::write_pattern(source, bytes, round);
    std::memset(result, 0, bytes);
    CHECK(hipGraphLaunch(ready, stream));
    CHECK(hipStreamSynchronize(stream));
    for (std::size_t i = 0; i < bytes / 2; ++i) {
      REQUIRE(result[i] == 0x11);
    }
    REQUIRE(std::memcmp(result + bytes / 2, source + bytes / 2, bytes / 2) == 0);
    program::did_copy(program::to_device, bytes);
    program::did_fill(bytes / 2);
    program::did_copy(program::to_host, bytes);
  }
  CHECK(hipGraphExecDestroy(ready));
  CHECK(hipGraphDestroy(graph));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(device));
  CHECK(hipHostFree(source));
  CHECK(hipHostFree(result));
}
