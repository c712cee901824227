// SPDX-License-Identifier: Apache-2.0
// One battery for every resource and every pool: what gives memory must take it back, refuse what
// it cannot give, and name what it does not know.
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/pool.hpp"
#include "berth/unique_memory.hpp"
#include "unit/memory/memory_fixture.hpp"

namespace berth {
namespace {

using test::simulated;

struct makes_pinned {
  static auto make(const context& from) { return from.pinned(); }
};
struct makes_device {
  static auto make(const context& from) { return from.device(); }
};
struct makes_managed {
  static auto make(const context& from) { return from.managed(); }
};
struct makes_pageable {
  static auto make(const context& from) { return from.pageable(); }
};
template <typename Maker>
struct makes_pool {
  static auto make(const context& from) {
    return pool(Maker::make(from), {.smallest_growth = 4 * mib});
  }
};

template <typename Maker>
struct resource_battery : ::testing::Test {
  simulated machine;
};

using makers =
    ::testing::Types<makes_pinned, makes_device, makes_managed, makes_pageable,
                     makes_pool<makes_pinned>, makes_pool<makes_device>, makes_pool<makes_managed>>;
TYPED_TEST_SUITE(resource_battery, makers);

template <typename Resource>
void touch(const Resource&, void* memory, bytes_t bytes) {
  if constexpr (Resource::host_visible) {
    std::memset(memory, 0x5A, bytes);
  }
}

TYPED_TEST(resource_battery, GivesAlignedMemoryAndTakesItBack) {
  const auto from = TypeParam::make(this->machine.context);
  for (const bytes_t bytes : {bytes_t{1}, bytes_t{255}, bytes_t{4096}, mib, 3 * mib + 17}) {
    auto* const memory = from.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % resource_alignment, 0U);  // NOLINT
    touch(from, memory, bytes);
    EXPECT_TRUE(from.try_deallocate(memory));
  }
}

TYPED_TEST(resource_battery, LiveMemoryIsDistinct) {
  const auto from = TypeParam::make(this->machine.context);
  std::set<void*> live;
  for (int count = 0; count < 50; ++count) {
    auto* const memory = from.allocate(1000);
    touch(from, memory, 1000);
    EXPECT_TRUE(live.insert(memory).second);
  }
  for (auto* const memory : live) {
    from.deallocate(memory);
  }
}

TYPED_TEST(resource_battery, RefusesSizesThatCannotBe) {
  const auto from = TypeParam::make(this->machine.context);
  for (const bytes_t bytes : {bytes_t{0}, std::numeric_limits<bytes_t>::max(),
                              std::numeric_limits<bytes_t>::max() - 100, bytes_t{1} << 47U}) {
    const auto memory = from.try_allocate(bytes);
    ASSERT_FALSE(memory) << bytes;
    EXPECT_EQ(memory.error().code(), errc::memory_invalid_size);
  }
  EXPECT_THROW(static_cast<void>(from.allocate(0)), memory_error);
}

TYPED_TEST(resource_battery, RefusesAlignmentsThatCannotBe) {
  const auto from = TypeParam::make(this->machine.context);
  for (const bytes_t alignment : {bytes_t{0}, bytes_t{3}, bytes_t{24}, tib}) {
    const auto memory = from.try_allocate(64, alignment);
    ASSERT_FALSE(memory) << alignment;
    EXPECT_EQ(memory.error().code(), errc::memory_invalid_alignment);
  }
  auto* const memory = from.allocate(64, 8);
  from.deallocate(memory);
}

TYPED_TEST(resource_battery, NamesForeignAndFreedAddresses) {
  const auto from = TypeParam::make(this->machine.context);
  int mine = 0;
  const auto foreign = from.try_deallocate(&mine);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code(), errc::memory_foreign_pointer);
  auto* const memory = static_cast<std::byte*>(from.allocate(4096));
  const auto inside = from.try_deallocate(memory + 256);
  ASSERT_FALSE(inside);
  EXPECT_EQ(inside.error().code(), errc::memory_foreign_pointer);
  EXPECT_TRUE(from.try_deallocate(memory));
  const auto twice = from.try_deallocate(memory);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().code(),
              ::testing::AnyOf(errc::memory_double_free, errc::memory_foreign_pointer));
  // Nothing was corrupted.
  auto* const again = from.allocate(4096);
  from.deallocate(again);
}

TYPED_TEST(resource_battery, NullIsNothing) {
  const auto from = TypeParam::make(this->machine.context);
  EXPECT_TRUE(from.try_deallocate(nullptr));
}

TYPED_TEST(resource_battery, GivesNothingAfterTheContextsEndAndStillTakesBack) {
  auto other = std::make_unique<simulated>();
  const auto gpu = other->gpu;
  void* memory = nullptr;
  {
    const auto from = TypeParam::make(other->context);
    memory = from.allocate(4096);
    other.reset();
    const auto late = from.try_allocate(64);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), errc::memory_context_closed);
    EXPECT_THAT(late.error().to_string(), ::testing::HasSubstr("allocate"));
    EXPECT_TRUE(from.try_deallocate(memory));
  }
  EXPECT_EQ(gpu->held().allocations, 0U);
}

TYPED_TEST(resource_battery, UniqueMemoryFreesAtTheEndOfItsScope) {
  {
    const auto from = TypeParam::make(this->machine.context);
    auto owned = make_unique_memory<float>(from, 1000);
    EXPECT_EQ(owned.size(), 1000U);
    EXPECT_EQ(owned.bytes(), 4000U);
    auto moved = std::move(owned);
    EXPECT_EQ(owned.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is the test
    EXPECT_NE(moved.data(), nullptr);
    if constexpr (decltype(from)::host_visible) {
      moved[999] = 1.5F;
      EXPECT_EQ(moved.span().back(), 1.5F);
    }
    EXPECT_THROW(static_cast<void>(
                     make_unique_memory<double>(from, std::numeric_limits<std::size_t>::max() / 2)),
                 memory_error);
  }
  EXPECT_EQ(this->machine.gpu->held().allocations, 0U);
}

// Whatever call fails: the right error, nothing lost, and all works afterwards.
TYPED_TEST(resource_battery, SurvivesTheFailureOfEveryCall) {
  for (std::uint64_t nth = 1; nth < 40; ++nth) {
    simulated other;
    {
      const auto from = TypeParam::make(other.context);
      other.gpu->inject({.kind = runtime::sim::fault_kind::fail_call, .nth = nth});
      std::vector<void*> live;
      for (const bytes_t bytes : {bytes_t{100}, mib, 5 * mib}) {
        if (auto memory = from.try_allocate(bytes)) {
          live.push_back(*memory);
        }
      }
      other.gpu->clear_faults();
      for (auto* const memory : live) {
        EXPECT_TRUE(from.try_deallocate(memory));
      }
      auto* const memory = from.allocate(mib);
      from.deallocate(memory);
    }
    EXPECT_EQ(other.gpu->held().allocations, 0U) << "call " << nth;
  }
}

TEST(Resources, NameWhatAForeignAddressIs) {
  const simulated machine;
  const auto pinned = machine.context.pinned();
  auto* const memory = machine.context.device().allocate(64);
  const auto freed = pinned.try_deallocate(memory);
  ASSERT_FALSE(freed);
  EXPECT_THAT(freed.error().to_string(), ::testing::HasSubstr("is device memory"));
  machine.context.device().deallocate(memory);
}

TEST(Resources, TwoContextsDoNotSeeEachOther) {
  const simulated one;
  const simulated other;
  auto* const memory = one.context.pinned().allocate(64);
  EXPECT_FALSE(other.context.pinned().try_deallocate(memory));
  EXPECT_EQ(other.context.pinned_memory().used, 0U);
  one.context.pinned().deallocate(memory);
}

TEST(Resources, DevicesAreChecked) {
  const simulated machine;
  EXPECT_EQ(machine.context.try_device(99).error().code(), errc::gpu_device_out_of_range);
  EXPECT_EQ(machine.context.try_managed(-1).error().code(), errc::gpu_device_out_of_range);
  EXPECT_EQ(machine.context.try_pinned({.device = 7}).error().code(),
            errc::gpu_device_out_of_range);
  EXPECT_EQ(machine.context.try_create_stream(7).error().code(), errc::gpu_device_out_of_range);
}

TEST(Resources, PagesCanBeLocated) {
  std::vector<std::byte> memory(64 * kib);
  std::memset(memory.data(), 1, memory.size());
  const auto placement = try_locate_pages(memory.data(), memory.size());
  if (!placement) {
    GTEST_SKIP() << placement.error().to_string();
  }
  std::uint64_t pages = placement->absent_pages;
  for (const auto& [node, count] : placement->pages_by_node) {
    pages += count;
  }
  EXPECT_GE(pages, 16U);
}

}  // namespace
}  // namespace berth
