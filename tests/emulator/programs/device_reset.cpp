// SPDX-License-Identifier: Apache-2.0
// Large copies, a reset of the device, and large copies again.
#include "program.hpp"

namespace {

constexpr std::size_t large = (6UL << 20U) + 4097;

void copies(unsigned seed) {
  auto* const device = program::device_memory(large);
  for (unsigned round = 0; round < 4; ++round) {
    const auto source = program::pattern(large, seed + round);
    std::vector<unsigned char> result(large);
    CHECK(hipMemcpy(device, source.data(), large, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(result.data(), device, large, hipMemcpyDeviceToHost));
    REQUIRE(result == source);
  }
  CHECK(hipFree(device));
  std::printf("copies: right\n");
}

}  // namespace

int main() {
  copies(1);
  std::printf("reset: %d\n", static_cast<int>(hipDeviceReset()));
  copies(10);
}
