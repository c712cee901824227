// SPDX-License-Identifier: Apache-2.0
#include "memory/size_classes.hpp"

#include <gtest/gtest.h>

namespace berth::memory {
namespace {

TEST(SizeClasses, HoldWhatWasAskedForAndWasteLessThanAnEighth) {
  for (bytes_t bytes = 1; bytes < bytes_t{1} << 45U; bytes += 1 + bytes / 37) {
    const auto held = size_of(class_of(bytes));
    ASSERT_GE(held, bytes);
    ASSERT_EQ(held % granule, 0U);
    if (bytes > linear_limit) {
      ASSERT_LT(held - bytes, bytes / 8 + 1) << bytes;
    } else {
      ASSERT_LT(held - bytes, granule) << bytes;
    }
  }
}

TEST(SizeClasses, AreTheSmallestThatFit) {
  for (size_class which = 1; which < class_count; ++which) {
    ASSERT_LT(size_of(which - 1), size_of(which));
    ASSERT_EQ(class_of(size_of(which)), which);
    ASSERT_EQ(class_of(size_of(which - 1) + 1), which);
  }
}

TEST(SizeClasses, ListsHoldBlocksThatServeTheirClass) {
  for (bytes_t bytes = granule; bytes < bytes_t{1} << 40U; bytes += granule * (1 + bytes / 9000)) {
    const auto list = list_of(bytes);
    ASSERT_LE(size_of(list), bytes);
    ASSERT_GT(size_of(list + 1), bytes);
  }
}

TEST(SizeClasses, ReachTheLargestBlock) {
  EXPECT_EQ(class_of(largest_block), class_count - 1);
  EXPECT_EQ(class_of(1), 0U);
  EXPECT_EQ(size_of(0), granule);
}

}  // namespace
}  // namespace berth::memory
