// SPDX-License-Identifier: Apache-2.0
// Streams that write a value to memory and wait for one.
#include <atomic>

#include "program.hpp"

int main() {
  constexpr std::size_t bytes = 1UL << 20U;
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  std::uint32_t* signal = nullptr;
  CHECK(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 8, hipMallocSignalMemory));
  CHECK(hipStreamWriteValue32(stream, signal, 77, 0));
  CHECK(hipStreamSynchronize(stream));
  REQUIRE(*signal == 77);
  auto* const source = program::pinned_memory(bytes);
  auto* const device = program::device_memory(bytes);
  program::write_pattern(source, bytes, 1);
  CHECK(hipStreamWaitValue32(stream, signal, 100, hipStreamWaitValueEq, 0xffffffff));
  CHECK(hipMemcpyAsync(device, source, bytes, hipMemcpyHostToDevice, stream));
  program::did_copy(program::to_device, bytes);
  // The copy has not begun, so it takes what is there when the stream goes on.
  program::write_pattern(source, bytes, 2);
  REQUIRE(hipStreamQuery(stream) == hipErrorNotReady);
  std::atomic_ref(*signal).store(100);
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipMemcpy(source, device, bytes, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, bytes);
  REQUIRE(program::has_pattern(source, bytes, 2));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(signal));
  CHECK(hipFree(device));
  CHECK(hipHostFree(source));
}
