// SPDX-License-Identifier: Apache-2.0
// Synchronous copies of ordinary memory: small ones go through a staging buffer of the runtime,
// large ones are pinned in place.
#include "program.hpp"

int main() {
  for (const std::size_t bytes : {100003UL, 1000003UL, 8UL << 20U, (64UL << 20U) + 12}) {
    const auto source = program::pattern(bytes, 1);
    std::vector<unsigned char> result(bytes);
    auto* const device = program::device_memory(bytes);
    CHECK(hipMemcpy(device, source.data(), bytes, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(result.data(), device, bytes, hipMemcpyDeviceToHost));
    REQUIRE(result == source);
    program::did_copies(program::to_device, bytes);
    program::did_copies(program::to_host, bytes);
    CHECK(hipFree(device));
  }
}
