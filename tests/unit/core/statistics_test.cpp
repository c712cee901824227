// SPDX-License-Identifier: Apache-2.0
// Against values computed by hand, or by R's quantile(type = 7) and mad(constant = 1).
#include "core/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace statistics = berth::statistics;

TEST(percentile, of_no_samples_is_nothing) {
  EXPECT_FALSE(statistics::percentile({}, 50).has_value());
  EXPECT_FALSE(statistics::median({}).has_value());
  EXPECT_FALSE(statistics::summarise({}).has_value());
}

TEST(percentile, of_one_sample_is_that_sample) {
  const std::array samples{7.5};
  for (const double percent : {0.0, 12.0, 50.0, 100.0}) {
    EXPECT_EQ(statistics::percentile(samples, percent), 7.5);
  }
}

TEST(percentile, interpolates_between_the_closest_ranks) {
  const std::array samples{15.0, 20.0, 35.0, 40.0, 50.0};
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 0), 15.0);
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 5), 16.0);
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 25), 20.0);
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 40), 29.0);
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 50), 35.0);
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 95), 48.0);
  EXPECT_DOUBLE_EQ(*statistics::percentile(samples, 100), 50.0);
}

TEST(percentile, outside_of_0_to_100_is_the_nearest_end) {
  const std::array samples{1.0, 2.0, 3.0};
  EXPECT_EQ(statistics::percentile(samples, -10), 1.0);
  EXPECT_EQ(statistics::percentile(samples, 1000), 3.0);
}

TEST(median, of_an_even_count_is_the_middle_of_the_two_middle_ones) {
  EXPECT_DOUBLE_EQ(*statistics::median(std::array{4.0, 1.0, 3.0, 2.0}), 2.5);
  EXPECT_DOUBLE_EQ(*statistics::median(std::array{3.0, 1.0, 2.0}), 2.0);
}

TEST(summarise, describes_known_samples) {
  const std::array samples{2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0};
  const auto summary = statistics::summarise(samples);
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->count, 8U);
  EXPECT_EQ(summary->minimum, 2.0);
  EXPECT_EQ(summary->maximum, 9.0);
  EXPECT_DOUBLE_EQ(summary->mean, 5.0);
  EXPECT_DOUBLE_EQ(summary->median, 4.5);
  EXPECT_DOUBLE_EQ(summary->p5, 2.7);
  EXPECT_DOUBLE_EQ(summary->p95, 8.3);
  EXPECT_DOUBLE_EQ(summary->deviation, 0.5);
}

TEST(summarise, the_deviation_is_not_moved_by_one_outlier) {
  const auto calm = statistics::summarise(std::array{10.0, 11.0, 12.0, 13.0, 14.0});
  const auto wild = statistics::summarise(std::array{10.0, 11.0, 12.0, 13.0, 1e9});
  EXPECT_DOUBLE_EQ(calm->deviation, 1.0);
  EXPECT_DOUBLE_EQ(wild->deviation, 1.0);
  EXPECT_DOUBLE_EQ(wild->median, 12.0);
}

TEST(summarise, of_equal_samples_has_no_spread) {
  const std::vector<double> samples(100, 3.25);
  const auto summary = statistics::summarise(samples);
  EXPECT_EQ(summary->deviation, 0.0);
  EXPECT_EQ(summary->p5, 3.25);
  EXPECT_EQ(summary->p95, 3.25);
  EXPECT_EQ(summary->mean, 3.25);
}

TEST(summarise, does_not_depend_on_the_order_of_samples) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> skewed(0, 2);
  std::vector<double> samples(501);
  std::generate(samples.begin(), samples.end(), [&] { return skewed(random); });
  const auto before = statistics::summarise(samples);
  std::shuffle(samples.begin(), samples.end(), random);
  const auto after = statistics::summarise(samples);
  EXPECT_EQ(before->median, after->median);
  EXPECT_EQ(before->mean, after->mean);
  EXPECT_EQ(before->deviation, after->deviation);
  EXPECT_LE(before->minimum, before->p5);
  EXPECT_LE(before->p5, before->median);
  EXPECT_LE(before->median, before->p95);
  EXPECT_LE(before->p95, before->maximum);
}

}  // namespace
