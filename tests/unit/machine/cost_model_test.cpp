// SPDX-License-Identifier: Apache-2.0
// Time by size, and the words of a path.
#include "machine/cost_model.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace berth::machine {
namespace {

TEST(cost, is_a_fixed_part_and_a_rate) {
  const auto pinned = cost::linear(1000, 50);
  EXPECT_DOUBLE_EQ(pinned.nanoseconds(0), 1000);
  EXPECT_DOUBLE_EQ(pinned.nanoseconds(50'000), 2000);
  EXPECT_DOUBLE_EQ(pinned.gb_per_s(50'000), 25);
  EXPECT_DOUBLE_EQ(pinned.large_gb_per_s(), 50);
}

TEST(cost, may_not_depend_on_the_size) {
  const auto flat = cost::constant(1100);
  EXPECT_DOUBLE_EQ(flat.nanoseconds(0), 1100);
  EXPECT_DOUBLE_EQ(flat.nanoseconds(tib), 1100);
  EXPECT_TRUE(std::isinf(flat.large_gb_per_s()));
}

TEST(cost, passes_through_what_was_observed) {
  const std::vector<cost::knot> observed{{1000, 500}, {10'000, 1400}, {100'000, 20'000}};
  const auto curve = cost::through(observed);
  for (const auto& point : observed) {
    EXPECT_DOUBLE_EQ(curve.nanoseconds(point.bytes), point.ns);
  }
  EXPECT_DOUBLE_EQ(curve.nanoseconds(5500), 950);    // between two
  EXPECT_DOUBLE_EQ(curve.nanoseconds(0), 400);       // along the first line
  EXPECT_DOUBLE_EQ(curve.gb_per_s(1'000'000), 5.0);  // as the last one
}

TEST(cost, of_small_sizes_never_falls_below_zero) {
  // The line of these two would meet size 0 at -9900 ns.
  const auto curve = cost::through({{1000, 100}, {2000, 10'100}});
  EXPECT_DOUBLE_EQ(curve.nanoseconds(0), 0);
  EXPECT_DOUBLE_EQ(curve.nanoseconds(500), 50);
}

TEST(cost, of_one_observation_is_in_proportion) {
  const auto curve = cost::through({{1000, 100}});
  EXPECT_DOUBLE_EQ(curve.nanoseconds(10), 1);
  EXPECT_DOUBLE_EQ(curve.nanoseconds(5000), 500);
}

TEST(cost, segment_gives_the_same_time_as_the_curve) {
  const auto curve = cost::through({{1000, 500}, {10'000, 1400}, {100'000, 20'000}});
  for (const bytes_t size : {bytes_t{1}, bytes_t{5000}, bytes_t{50'000}, bytes_t{5'000'000}}) {
    const auto line = curve.segment_at(size);
    EXPECT_NEAR(line.a_ns + static_cast<double>(size) / line.b_gb_per_s, curve.nanoseconds(size),
                1e-6)
        << size;
  }
}

TEST(cost, slowed_keeps_its_fixed_part) {
  const auto slowed = cost::linear(1000, 50).with_rate_divided_by(2);
  EXPECT_DOUBLE_EQ(slowed.nanoseconds(0), 1000);
  EXPECT_DOUBLE_EQ(slowed.large_gb_per_s(), 25);
  const auto curve = cost::through({{1000, 500}, {10'000, 1400}}).with_rate_divided_by(2);
  EXPECT_DOUBLE_EQ(curve.nanoseconds(10'000), 400 + 2 * 1000);
}

TEST(cost, shifted_stops_at_zero) {
  const auto moved = cost::linear(1000, 50).shifted(-3000);
  EXPECT_DOUBLE_EQ(moved.nanoseconds(0), 0);
  EXPECT_DOUBLE_EQ(cost::linear(1000, 50).shifted(500).nanoseconds(0), 1500);
}

TEST(cost, refuses_knots_that_make_no_curve) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::array wrong{
      std::vector<cost::knot>{},
      std::vector<cost::knot>{{0, 100}},                  // no slope
      std::vector<cost::knot>{{1000, -1}},                // negative
      std::vector<cost::knot>{{1000, nan}},               // not a time
      std::vector<cost::knot>{{1000, 100}, {1000, 100}},  // same size
      std::vector<cost::knot>{{2000, 100}, {1000, 200}},  // sizes fall
      std::vector<cost::knot>{{1000, 100}, {2000, 99}},   // times fall
  };
  for (const auto& knots : wrong) {
    EXPECT_FALSE(cost::valid_knots(knots));
  }
  EXPECT_TRUE(cost::valid_knots({{0, 100}, {1000, 100}}));
}

TEST(trait_set, holds_what_was_put_in) {
  const trait_set both{trait::fresh_pages, trait::huge_pages};
  EXPECT_TRUE(both.has(trait::fresh_pages));
  EXPECT_FALSE(both.has(trait::numa_remote));
  EXPECT_EQ(both.without(trait::fresh_pages), trait_set(trait::huge_pages));
  EXPECT_EQ(trait_set{}.with(trait::huge_pages).with(trait::fresh_pages), both);
  EXPECT_EQ(to_string(both), "fresh_pages, huge_pages");
  EXPECT_EQ(to_string(trait_set{}), "");
}

TEST(trait, spellings_are_read_back) {
  for (const auto one :
       {trait::bidirectional, trait::write_combined, trait::huge_pages, trait::best_engine,
        trait::numa_remote, trait::file_mapped, trait::fresh_pages}) {
    EXPECT_EQ(parse_trait(to_string(one)), one);
  }
  EXPECT_EQ(parse_trait("unknown"), std::nullopt);
}

TEST(path, is_printed_in_words) {
  EXPECT_EQ(to_string(path{.way = direction::host_to_device,
                           .host = memory_kind::pageable,
                           .by = engine::dma,
                           .traits = trait::fresh_pages}),
            "host_to_device pageable dma (fresh_pages)");
  EXPECT_EQ(to_string(path{.way = direction::host_to_device,
                           .host = memory_kind::pinned,
                           .by = engine::kernel,
                           .parallelism = 4}),
            "host_to_device pinned kernel x4");
}

}  // namespace
}  // namespace berth::machine
