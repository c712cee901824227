// SPDX-License-Identifier: Apache-2.0
// The budget of page-locked memory, and the registration of memory that exists already.
#include <sys/mman.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/pinned_budget.hpp"
#include "unit/memory/memory_fixture.hpp"

namespace berth {
namespace {

using test::simulated;

TEST(PinnedBudget, AdmitsUpToItsLimit) {
  memory::pinned_budget budget(100);
  EXPECT_TRUE(budget.admit(60));
  const auto refused = budget.admit(41);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::memory_over_budget);
  ASSERT_TRUE(refused.error().shortage());
  EXPECT_EQ(refused.error().shortage()->free, 40U);
  EXPECT_TRUE(budget.admit(40));
  budget.release(100);
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(budget.peak(), 100U);
}

TEST(PinnedBudget, DefaultsToHalfOfWhatThereIsAtMost) {
  const auto budget = memory::default_pinned_budget();
  EXPECT_GT(budget, 16 * mib);
  EXPECT_LT(budget, bytes_t{1} << 46U);
}

TEST(PinnedBudget, CountsPinnedAndRegisteredMemory) {
  const simulated machine({}, {.runtime = {}, .pinned_budget = 64 * mib});
  auto* const pinned = machine.context.pinned().allocate(48 * mib);
  std::vector<std::byte> mine(32 * mib);
  const auto refused = machine.context.try_register(mine);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::memory_over_budget);
  machine.context.pinned().deallocate(pinned);
  {
    const auto registered = machine.context.register_memory(mine);
    EXPECT_GE(machine.context.pinned_memory().used, 32 * mib);
  }
  EXPECT_EQ(machine.context.pinned_memory().used, 0U);
  EXPECT_GE(machine.context.pinned_memory().peak, 48 * mib);
}

struct pages {
  static constexpr std::size_t size = 16 * 4096;
  std::byte* start = static_cast<std::byte*>(
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pages() = default;
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  ~pages() { ::munmap(start, size); }
  [[nodiscard]] std::span<std::byte> part(std::size_t first, std::size_t count) const {
    return {start + first, count};
  }
};

TEST(RegisteredMemory, LocksWholePagesWhateverTheAlignment) {
  const simulated machine;
  const pages mine;
  {
    const auto registered = machine.context.register_memory(mine.part(4096 + 17, 100));
    EXPECT_EQ(registered.bytes().data(), mine.start + 4096 + 17);
    EXPECT_EQ(machine.gpu->held().registrations, 1U);
    EXPECT_EQ(machine.context.pinned_memory().used, 4096U);
  }
  EXPECT_EQ(machine.gpu->held().registrations, 0U);
}

TEST(RegisteredMemory, OverlappingRangesShareTheirPages) {
  const simulated machine;
  const pages mine;
  auto first = std::make_unique<registered_memory>(
      machine.context.register_memory(mine.part(2 * 4096, 4 * 4096)));
  const auto second = machine.context.register_memory(mine.part(0, 8 * 4096));
  EXPECT_EQ(machine.context.pinned_memory().used, 8U * 4096);
  first.reset();
  EXPECT_EQ(machine.context.pinned_memory().used, 8U * 4096);
  const auto third = machine.context.register_memory(mine.part(3 * 4096, 10));
  EXPECT_EQ(machine.context.pinned_memory().used, 8U * 4096);
}

TEST(RegisteredMemory, LeavesWhatTheProgramRegisteredItself) {
  const simulated machine;
  const pages mine;
  ASSERT_TRUE(machine.gpu->register_host(mine.start, pages::size));
  {
    const auto registered = machine.context.register_memory(mine.part(0, 4096));
    EXPECT_EQ(machine.context.pinned_memory().used, 0U);
  }
  EXPECT_EQ(machine.gpu->held().registrations, 1U);
  EXPECT_TRUE(machine.gpu->unregister_host(mine.start));
}

TEST(RegisteredMemory, AFailureLeavesNothingLocked) {
  const simulated machine;
  const pages mine;
  const auto middle = machine.context.register_memory(mine.part(4 * 4096, 4096));
  machine.gpu->inject({.kind = runtime::sim::fault_kind::fail_call, .nth = 2});
  EXPECT_FALSE(machine.context.try_register(mine.part(0, pages::size)));
  machine.gpu->clear_faults();
  EXPECT_EQ(machine.gpu->held().registrations, 1U);
  EXPECT_EQ(machine.context.pinned_memory().used, 4096U);
}

TEST(RegisteredMemory, RefusesEmptyRanges) {
  const simulated machine;
  EXPECT_EQ(machine.context.try_register({}).error().code(), errc::memory_invalid_size);
}

}  // namespace
}  // namespace berth
