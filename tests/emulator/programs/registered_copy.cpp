// SPDX-License-Identifier: Apache-2.0
// Ordinary memory that the program has registered: whole, in part, and after it was given back.
#include "program.hpp"

int main() {
  constexpr std::size_t bytes = 4UL << 20U;
  auto* const source = static_cast<unsigned char*>(std::aligned_alloc(4096, bytes));
  auto* const result = static_cast<unsigned char*>(std::aligned_alloc(4096, bytes));
  auto* const device = program::device_memory(bytes);
  for (unsigned round = 0; round < 3; ++round) {
    program::write_pattern(source, bytes, round);
    std::memset(result, 0, bytes);
    CHECK(hipHostRegister(source, bytes, hipHostRegisterDefault));
    CHECK(hipHostRegister(result, bytes, hipHostRegisterDefault));
    void* seen = nullptr;
    CHECK(hipHostGetDevicePointer(&seen, source, 0));
    REQUIRE(seen != nullptr);
    CHECK(hipMemcpy(device, source, bytes, hipMemcpyHostToDevice));
    const std::size_t skipped = round * 4100;
    CHECK(hipMemcpy(result + skipped, device + skipped, bytes - skipped, hipMemcpyDeviceToHost));
    program::did_copy(program::to_device, bytes);
    program::did_copy(program::to_host, bytes - skipped);
    REQUIRE(std::memcmp(result + skipped, source + skipped, bytes - skipped) == 0);
    CHECK(hipHostUnregister(source));
    CHECK(hipHostUnregister(result));
  }
  REQUIRE(hipHostUnregister(source) != hipSuccess);
  CHECK(hipFree(device));
  std::free(source);
  std::free(result);
}
