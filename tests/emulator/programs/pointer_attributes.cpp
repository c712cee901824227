// SPDX-License-Identifier: Apache-2.0
// What the runtime says of pointers, of free memory, and when memory has run out.
#include "program.hpp"

int main() {
  constexpr std::size_t bytes = 64UL << 20U;
  std::size_t free_before = 0;
  std::size_t free_after = 0;
  std::size_t total = 0;
  CHECK(hipMemGetInfo(&free_before, &total));
  auto* const device = program::device_memory(bytes);
  CHECK(hipMemGetInfo(&free_after, &total));
  REQUIRE(free_before - free_after >= bytes && free_before <= total);
  auto* const host = program::pinned_memory(1UL << 20U);
  hipPointerAttribute_t about{};
  CHECK(hipPointerGetAttributes(&about, device + 100));
  REQUIRE(about.memoryType == hipMemoryTypeDevice && about.device == 0);
  REQUIRE(about.devicePointer == device + 100);
  CHECK(hipPointerGetAttributes(&about, host));
  REQUIRE(about.memoryType == hipMemoryTypeHost && about.hostPointer == host);
  int ordinary = 0;
  REQUIRE(hipPointerGetAttributes(&about, &ordinary) != hipSuccess);
  hipDeviceptr_t base = nullptr;
  std::size_t size = 0;
  CHECK(hipMemGetAddressRange(&base, &size, device + 12345));
  REQUIRE(base == device && size == bytes);
  void* too_much = nullptr;
  REQUIRE(hipMalloc(&too_much, total + (1UL << 30U)) == hipErrorOutOfMemory);
  unsigned flags = 0;
  CHECK(hipHostGetFlags(&flags, host));
  // All but a little can be had, and comes back.
  std::vector<void*> all;
  constexpr std::size_t piece = 1UL << 30U;
  for (void* more = nullptr; hipMalloc(&more, piece) == hipSuccess; more = nullptr) {
    all.push_back(more);
  }
  REQUIRE(all.size() >= (free_after / piece) - 1 && all.size() <= total / piece);
  for (void* const one : all) {
    CHECK(hipFree(one));
  }
  CHECK(hipMemGetInfo(&free_before, &total));
  REQUIRE(free_before == free_after);
  CHECK(hipFree(device));
  CHECK(hipHostFree(host));
}
