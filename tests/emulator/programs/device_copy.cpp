// SPDX-License-Identifier: Apache-2.0
// Copies inside a device and fills, by the runtime's own kernels: aligned, unaligned, each width.
#include "program.hpp"

int main() {
  for (const std::size_t bytes : {100003UL, 1000003UL, 16UL << 20U}) {
    auto* const a = program::device_memory(bytes);
    auto* const b = program::device_memory(bytes);
    std::vector<unsigned char> seen(bytes);
    CHECK(hipMemset(a, 0x5c, bytes));
    program::did_fills(bytes);
    CHECK(hipMemcpy(seen.data(), a, bytes, hipMemcpyDeviceToHost));
    program::did_copy(program::to_host, bytes);
    REQUIRE(seen == std::vector<unsigned char>(bytes, 0x5c));
    const auto source = program::pattern(bytes, 4);
    CHECK(hipMemcpy(a, source.data(), bytes, hipMemcpyHostToDevice));
    program::did_copy(program::to_device, bytes);
    CHECK(hipMemcpy(b, a, bytes, hipMemcpyDeviceToDevice));
    program::did_copy(program::inside, bytes);
    CHECK(hipMemcpy(seen.data(), b, bytes, hipMemcpyDeviceToHost));
    program::did_copy(program::to_host, bytes);
    REQUIRE(seen == source);
    CHECK(hipMemcpy(b + 13, a + 5, bytes - 20, hipMemcpyDeviceToDevice));
    program::did_copy(program::inside, bytes - 20);
    CHECK(hipMemcpy(seen.data(), b, bytes, hipMemcpyDeviceToHost));
    program::did_copy(program::to_host, bytes);
    REQUIRE(std::memcmp(&seen[13], &source[5], bytes - 20) == 0);
    CHECK(hipFree(a));
    CHECK(hipFree(b));
  }
  constexpr std::size_t words = 1UL << 18U;
  auto* const wide = program::device_memory<unsigned>(words * 4);
  CHECK(hipMemsetD32(wide, static_cast<int>(0xdeadbeef), words));
  program::did_fill(words * 4);
  std::vector<unsigned> seen(words);
  CHECK(hipMemcpy(seen.data(), wide, words * 4, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, words * 4);
  REQUIRE(seen == std::vector<unsigned>(words, 0xdeadbeef));
  CHECK(hipMemsetD16(wide, 0x1234, words));
  program::did_fill(words * 2);
  CHECK(hipMemcpy(seen.data(), wide, words * 4, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, words * 4);
  REQUIRE(seen.front() == 0x12341234 && seen[words / 2 - 1] == 0x12341234 &&
          seen[words / 2] == 0xdeadbeef);
  CHECK(hipFree(wide));
}
