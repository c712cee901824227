// SPDX-License-Identifier: Apache-2.0
// Blocks of page-locked memory between a program's free and its next allocation.
#include "interpose/fix/pinned_pool.hpp"

#include <array>

#include <gtest/gtest.h>

namespace berth::interpose::fix {
namespace {

class PinnedPool : public testing::Test {
protected:
  static constexpr pinned_pool::sort sort_of(bytes_t bytes) {
    return {.device = 0, .call = 7, .flags = 1, .bytes = bytes};
  }
  void* block(std::size_t index) { return &memory_.at(index); }

  pinned_pool pool_{8 * mib};  // NOLINT: a fixture

private:
  std::array<std::byte, 8> memory_{};
};

TEST_F(PinnedPool, AFreedBlockServesTheNextAllocationOfItsSort) {
  EXPECT_EQ(pool_.take(sort_of(mib)), nullptr);
  pool_.note(block(0), sort_of(mib));
  EXPECT_TRUE(pool_.keep(block(0)));
  EXPECT_EQ(pool_.kept_bytes(), mib);
  EXPECT_EQ(pool_.take(sort_of(mib)), block(0));
  EXPECT_EQ(pool_.take(sort_of(mib)), nullptr) << "it is in use again";
  EXPECT_EQ(pool_.kept_bytes(), 0U);
  EXPECT_TRUE(pool_.keep(block(0))) << "and may be freed again";
}

TEST_F(PinnedPool, NothingElseServes) {
  pool_.note(block(0), sort_of(mib));
  ASSERT_TRUE(pool_.keep(block(0)));
  auto other = sort_of(mib);
  other.device = 1;
  EXPECT_EQ(pool_.take(other), nullptr);
  other = sort_of(mib);
  other.flags = 2;
  EXPECT_EQ(pool_.take(other), nullptr);
  other = sort_of(mib);
  other.call = 8;
  EXPECT_EQ(pool_.take(other), nullptr);
  EXPECT_EQ(pool_.take(sort_of(mib - 1)), nullptr) << "its range would be another";
}

TEST_F(PinnedPool, KeepsNoMoreThanItsBudget) {
  for (std::size_t index = 0; index < 3; ++index) {
    pool_.note(block(index), sort_of(4 * mib));
  }
  EXPECT_TRUE(pool_.keep(block(0)));
  EXPECT_TRUE(pool_.keep(block(1)));
  EXPECT_FALSE(pool_.keep(block(2)));
  EXPECT_TRUE(pool_.find(block(2))) << "it is in use still: the runtime is to free it";
  pool_.note(block(3), sort_of(9 * mib));
  EXPECT_FALSE(pool_.keep(block(3)));
}

TEST_F(PinnedPool, KnowsOnlyWhatIsInUse) {
  EXPECT_FALSE(pool_.keep(block(0))) << "never noted";
  pool_.note(block(0), sort_of(mib));
  ASSERT_TRUE(pool_.find(block(0)));
  EXPECT_EQ(pool_.find(block(0))->bytes, mib);
  pool_.forget(block(0));
  EXPECT_FALSE(pool_.find(block(0)));
  EXPECT_FALSE(pool_.keep(block(0)));
}

TEST_F(PinnedPool, AnAddressThatComesAgainIsOfItsNewSort) {
  pool_.note(block(0), sort_of(mib));
  pool_.note(block(0), sort_of(2 * mib));  // freed unseen, and given anew
  ASSERT_TRUE(pool_.keep(block(0)));
  EXPECT_EQ(pool_.take(sort_of(mib)), nullptr);
  EXPECT_EQ(pool_.take(sort_of(2 * mib)), block(0));
}

TEST_F(PinnedPool, ReleaseGivesAllThatIsKept) {
  for (std::size_t index = 0; index < 3; ++index) {
    pool_.note(block(index), sort_of(mib << index));
  }
  ASSERT_TRUE(pool_.keep(block(0)));
  ASSERT_TRUE(pool_.keep(block(2)));
  EXPECT_EQ(pool_.release().size(), 2U);
  EXPECT_TRUE(pool_.release().empty());
  EXPECT_EQ(pool_.take(sort_of(mib)), nullptr);
  EXPECT_TRUE(pool_.keep(block(1))) << "what the program has is not touched";
}

}  // namespace
}  // namespace berth::interpose::fix
