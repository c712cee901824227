// SPDX-License-Identifier: Apache-2.0
#include "berth/pmr.hpp"

#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/pool.hpp"
#include "unit/memory/memory_fixture.hpp"

namespace berth {
namespace {

using test::simulated;

TEST(PmrResource, PutsStandardContainersIntoPinnedMemory) {
  const simulated machine;
  const pool from(machine.context.pinned());
  pmr_resource pinned(from);
  {
    std::pmr::vector<float> samples(1000, 1.0F, &pinned);
    EXPECT_EQ(machine.gpu->classify(samples.data())->kind, memory_kind::pinned);
    std::pmr::map<int, std::pmr::string> names(&pinned);
    names.emplace(1, "a string that is too long for the small-string optimisation");
    std::pmr::list<int> list({1, 2, 3}, &pinned);
    EXPECT_GT(from.statistics().live_blocks, 4U);
  }
  EXPECT_EQ(from.statistics().live_blocks, 0U);
}

TEST(PmrResource, FailsAsContainersExpectAndSaysWhy) {
  const simulated machine;
  const pool from(machine.context.pinned(), {.name = "samples", .limit = 4 * mib});
  pmr_resource pinned(from);
  try {
    const std::pmr::vector<std::byte> large(100 * mib, &pinned);
    FAIL() << "the limit is lower";
  } catch (const std::bad_alloc& failure) {
    EXPECT_THAT(failure.what(), ::testing::HasSubstr("samples"));
  }
}

TEST(PmrResource, RefusesAlignmentsThatPoolsDoNotHave) {
  const simulated machine;
  pmr_resource pinned(machine.context.pinned());
  EXPECT_THROW(static_cast<void>(pinned.allocate(64, 4096)), bad_allocation);
  auto* const memory = pinned.allocate(0, 1);
  EXPECT_NE(memory, nullptr);
  pinned.deallocate(memory, 0, 1);
}

TEST(PinnedAllocator, ServesVectors) {
  const simulated machine;
  const pinned_allocator<double> allocator(machine.context.pinned());
  std::vector<double, pinned_allocator<double>> values(allocator);
  for (int count = 0; count < 10000; ++count) {
    values.push_back(count);
  }
  EXPECT_EQ(machine.gpu->classify(values.data())->kind, memory_kind::pinned);
  const auto copy = values;
  EXPECT_EQ(copy.back(), 9999);
  EXPECT_TRUE(copy.get_allocator() == values.get_allocator());
}

}  // namespace
}  // namespace berth
