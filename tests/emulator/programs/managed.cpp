// SPDX-License-Identifier: Apache-2.0
// Managed memory: advice and prefetches are recorded and answered, both sides see the data.
// Argument "no-hmm": the driver cannot migrate pages, so the runtime says that it has none.
#include "program.hpp"

namespace {

int range_attribute(const void* at, std::size_t bytes, hipMemRangeAttribute what) {
  int value = -7;
  CHECK(hipMemRangeGetAttribute(&value, sizeof(value), what, at, bytes));
  return value;
}

}  // namespace

int main(int argc, char**) {
  const bool hmm = argc == 1;
  constexpr std::size_t bytes = 4UL << 20U;
  int concurrent = -1;
  CHECK(hipDeviceGetAttribute(&concurrent, hipDeviceAttributeConcurrentManagedAccess, 0));
  REQUIRE((concurrent == 1) == hmm);
  unsigned char* memory = nullptr;
  CHECK(hipMallocManaged(reinterpret_cast<void**>(&memory), bytes, hipMemAttachGlobal));
  program::write_pattern(memory, bytes, 6);
  if (hmm) {
    CHECK(hipMemAdvise(memory, bytes, hipMemAdviseSetPreferredLocation, 0));
    CHECK(hipMemAdvise(memory, bytes, hipMemAdviseSetReadMostly, 0));
    CHECK(hipMemAdvise(memory, bytes, hipMemAdviseSetAccessedBy, 0));
    REQUIRE(range_attribute(memory, bytes, hipMemRangeAttributePreferredLocation) == 0);
    REQUIRE(range_attribute(memory, bytes, hipMemRangeAttributeReadMostly) == 1);
    REQUIRE(range_attribute(memory, bytes, hipMemRangeAttributeLastPrefetchLocation) ==
            hipInvalidDeviceId);
    CHECK(hipMemPrefetchAsync(memory, bytes, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(range_attribute(memory, bytes, hipMemRangeAttributeLastPrefetchLocation) == 0);
    CHECK(hipMemPrefetchAsync(memory, bytes, hipCpuDeviceId, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(range_attribute(memory, bytes, hipMemRangeAttributeLastPrefetchLocation) ==
            hipCpuDeviceId);
    CHECK(hipMemAdvise(memory, bytes, hipMemAdviseUnsetReadMostly, 0));
    REQUIRE(range_attribute(memory, bytes, hipMemRangeAttributeReadMostly) == 0);
  }
  auto* const device = program::device_memory(bytes);
  CHECK(hipMemcpy(device, memory, bytes, hipMemcpyDefault));
  CHECK(hipMemset(memory, 9, bytes));
  CHECK(hipDeviceSynchronize());
  REQUIRE(memory[0] == 9 && memory[bytes - 1] == 9);
  CHECK(hipMemcpy(memory, device, bytes, hipMemcpyDefault));
  CHECK(hipDeviceSynchronize());
  REQUIRE(program::has_pattern(memory, bytes, 6));
  hipPointerAttribute_t about{};
  CHECK(hipPointerGetAttributes(&about, memory));
  REQUIRE(about.isManaged != 0);
  CHECK(hipFree(device));
  CHECK(hipFree(memory));
}
