// SPDX-License-Identifier: Apache-2.0
#include "core/interval.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using berth::interval;
using berth::interval_set;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<interval> parts_of(const interval_set& set) {
  return {set.parts().begin(), set.parts().end()};
}

TEST(interval_set, of_nothing_is_empty) {
  const interval_set set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.length(), 0);
  EXPECT_EQ(set.covered({-100, 100}), 0);
  EXPECT_THAT(parts_of(interval_set(std::vector<interval>{})), IsEmpty());
}

TEST(interval_set, drops_what_has_no_length) {
  EXPECT_TRUE(interval_set({{5, 5}, {9, 3}}).empty());
  EXPECT_THAT(parts_of(interval_set({{5, 5}, {1, 2}, {9, 3}})), ElementsAre(interval{1, 2}));
}

TEST(interval_set, sorts_and_merges_what_overlaps_or_touches) {
  EXPECT_THAT(parts_of(interval_set({{20, 30}, {0, 10}})),
              ElementsAre(interval{0, 10}, interval{20, 30}));
  EXPECT_THAT(parts_of(interval_set({{0, 10}, {10, 20}})), ElementsAre(interval{0, 20}));
  EXPECT_THAT(parts_of(interval_set({{5, 15}, {0, 10}})), ElementsAre(interval{0, 15}));
  EXPECT_THAT(parts_of(interval_set({{0, 100}, {10, 20}, {30, 40}})),
              ElementsAre(interval{0, 100}));
  EXPECT_THAT(parts_of(interval_set({{0, 1}, {0, 9}, {0, 1}})), ElementsAre(interval{0, 9}));
}

// Ten copies side by side on two streams keep the GPU busy once, not ten times.
TEST(interval_set, busy_time_counts_overlapping_work_once) {
  const std::vector<interval> copies(10, interval{1000, 2000});
  EXPECT_EQ(interval_set(copies).length(), 1000);
}

TEST(interval_set, is_exact_where_a_double_would_not_be) {
  constexpr std::int64_t late = 1'700'000'000'000'000'001;  // ns since 1970: above 2^53
  const interval_set set({{late, late + 1}, {late + 2, late + 3}});
  EXPECT_EQ(set.length(), 2);
  EXPECT_EQ(set.covered({late + 1, late + 3}), 1);
}

TEST(interval_set, covered_counts_only_what_is_inside_the_window) {
  const interval_set set({{0, 10}, {20, 30}, {40, 50}});
  EXPECT_EQ(set.covered({0, 50}), 30);
  EXPECT_EQ(set.covered({5, 25}), 10);
  EXPECT_EQ(set.covered({10, 20}), 0);
  EXPECT_EQ(set.covered({22, 24}), 2);
  EXPECT_EQ(set.covered({-9, 0}), 0);
  EXPECT_EQ(set.covered({50, 99}), 0);
  EXPECT_EQ(set.covered({-9, 99}), 30);
}

TEST(interval_set, covered_of_a_window_without_length_is_zero) {
  const interval_set set({{0, 20}});
  EXPECT_EQ(set.covered({5, 5}), 0);
  EXPECT_EQ(set.covered({10, 5}), 0);
}

TEST(interval_algebra, joins_cuts_and_removes) {
  const interval_set kernels({{0, 10}, {20, 30}});
  const interval_set copies({{5, 25}, {40, 50}});
  EXPECT_THAT(parts_of(united(kernels, copies)), ElementsAre(interval{0, 30}, interval{40, 50}));
  EXPECT_THAT(parts_of(intersected(kernels, copies)),
              ElementsAre(interval{5, 10}, interval{20, 25}));
  EXPECT_THAT(parts_of(without(copies, kernels)), ElementsAre(interval{10, 20}, interval{40, 50}));
  EXPECT_THAT(parts_of(without(kernels, copies)), ElementsAre(interval{0, 5}, interval{25, 30}));
}

TEST(interval_algebra, with_nothing) {
  const interval_set set({{0, 10}});
  const interval_set nothing;
  EXPECT_EQ(parts_of(united(set, nothing)), parts_of(set));
  EXPECT_EQ(parts_of(united(nothing, set)), parts_of(set));
  EXPECT_TRUE(intersected(set, nothing).empty());
  EXPECT_EQ(parts_of(without(set, nothing)), parts_of(set));
  EXPECT_TRUE(without(nothing, set).empty());
  EXPECT_TRUE(without(set, set).empty());
}

TEST(interval_algebra, one_hole_may_cut_many_parts_and_one_part_may_have_many_holes) {
  const interval_set many({{0, 10}, {20, 30}, {40, 50}});
  EXPECT_THAT(parts_of(without(many, interval_set({{5, 45}}))),
              ElementsAre(interval{0, 5}, interval{45, 50}));
  EXPECT_THAT(parts_of(without(interval_set({{-5, 60}}), many)),
              ElementsAre(interval{-5, 0}, interval{10, 20}, interval{30, 40}, interval{50, 60}));
}

// The model to compare with: one bit for each nanosecond of a short time.
constexpr std::int64_t span = 64;
using bits = std::bitset<static_cast<std::size_t>(span)>;

bits bits_of(std::span<const interval> parts) {
  bits set;
  for (const auto& part : parts) {
    for (std::int64_t time = part.begin; time < part.end; ++time) {
      set.set(static_cast<std::size_t>(time));
    }
  }
  return set;
}

// Sorted, disjoint, none empty, none touching: what all of the algebra relies on.
bool is_canonical(const interval_set& set) {
  const auto parts = set.parts();
  return std::all_of(parts.begin(), parts.end(),
                     [](const interval& part) { return part.begin < part.end; }) &&
         std::adjacent_find(parts.begin(), parts.end(), [](const interval& a, const interval& b) {
           return a.end >= b.begin;
         }) == parts.end();
}

class random_intervals {
public:
  explicit random_intervals(unsigned seed) : random_(seed) {}

  interval one() { return {time(), time()}; }  // some of them empty or backwards
  std::vector<interval> some() {
    std::vector<interval> parts(random_() % 12);
    std::generate(parts.begin(), parts.end(), [this] { return one(); });
    return parts;
  }

private:
  std::int64_t time() { return static_cast<std::int64_t>(random_() % (span + 1)); }

  std::mt19937 random_;
};

TEST(interval_algebra, agrees_with_a_bit_for_each_nanosecond) {
  random_intervals random(20240609);
  for (int round = 0; round < 20'000; ++round) {
    const auto left = random.some();
    const auto right = random.some();
    const interval_set a(left);
    const interval_set b(right);
    const bits in_a = bits_of(left);
    const bits in_b = bits_of(right);

    struct {
      interval_set set;
      bits expected;
    } const checks[] = {{a, in_a},
                        {b, in_b},
                        {united(a, b), in_a | in_b},
                        {intersected(a, b), in_a & in_b},
                        {without(a, b), in_a & ~in_b},
                        {without(b, a), in_b & ~in_a}};
    for (const auto& [set, expected] : checks) {
      ASSERT_TRUE(is_canonical(set)) << "round " << round;
      ASSERT_EQ(bits_of(set.parts()), expected) << "round " << round;
      ASSERT_EQ(set.length(), static_cast<std::int64_t>(expected.count())) << "round " << round;
      ASSERT_EQ(set.empty(), expected.none()) << "round " << round;
    }
    const interval window = random.one();
    const bits inside = bits_of(std::array{window});
    ASSERT_EQ(a.covered(window), static_cast<std::int64_t>((in_a & inside).count()))
        << "round " << round;
  }
}

}  // namespace
