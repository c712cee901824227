// SPDX-License-Identifier: Apache-2.0
// What a profile answers when it knows the path, and how it falls back when it does not.
#include "machine/profile.hpp"

#include <limits>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::machine {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

path h2d_path(memory_kind kind, engine by = engine::dma, trait_set traits = {},
              std::optional<std::uint32_t> count = std::nullopt) {
  return {.way = direction::host_to_device,
          .host = kind,
          .by = by,
          .traits = traits,
          .parallelism = count};
}

path d2h_path(memory_kind kind, engine by = engine::dma, trait_set traits = {}) {
  return {.way = direction::device_to_host, .host = kind, .by = by, .traits = traits};
}

path_cost row(const path& where, double a_ns, double rate) {
  return {.where = where,
          .device_time = cost::linear(a_ns, rate),
          .known = provenance::measured,
          .source = "a test",
          .call_overhead_ns = std::nullopt};
}

machine_profile example() {
  auto pinned = row(h2d_path(memory_kind::pinned), 1000, 50);
  pinned.call_overhead_ns = figure{7000, provenance::nominal, "a call"};
  return {
      "example",
      {pinned, row(d2h_path(memory_kind::pinned), 1000, 40),
       row(h2d_path(memory_kind::pageable), 0, 10),
       row(h2d_path(memory_kind::pageable, engine::dma, trait::fresh_pages), 0, 2),
       row(h2d_path(memory_kind::pageable, engine::dma, trait::huge_pages), 0, 12),
       row(h2d_path(memory_kind::pinned, engine::kernel, {}, 4), 0, 20),
       row(h2d_path(memory_kind::pinned, engine::kernel, {}, 16), 0, 44),
       row({.way = direction::device_to_device, .host = memory_kind::device, .by = engine::kernel},
           0, 1000),
       row({.way = direction::host_to_host, .host = memory_kind::pageable, .by = engine::cpu}, 0,
           10)},
      {{.what = operation::host_register,
        .traits = {},
        .time = cost::linear(100, 20),
        .known = provenance::measured,
        .source = "a test"}},
      {{.what = quantity::host_bidirectional_gb_per_s,
        .number = {60, provenance::measured, "a test"}}}};
}

double rate(const path& wanted) {
  return example().lookup(wanted)->device_time.large_gb_per_s();
}

TEST(profile, answers_exactly_what_it_knows) {
  const auto profile = example();
  const auto found = profile.lookup(h2d_path(memory_kind::pinned));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->answered, h2d_path(memory_kind::pinned));
  EXPECT_EQ(found->known, provenance::measured);
  EXPECT_EQ(found->source, "a test");
  EXPECT_TRUE(found->dropped.empty());
  EXPECT_EQ(profile.expected_time(h2d_path(memory_kind::pinned), 50'000)->time, 2000ns);
  EXPECT_DOUBLE_EQ(profile.expected_rate(h2d_path(memory_kind::pinned), 50'000)->gb_per_s, 25);
}

TEST(profile, call_time_adds_the_overhead_and_takes_the_weaker_origin) {
  const auto call = example().expected_call_time(h2d_path(memory_kind::pinned), 50'000);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->time, 9000ns);
  EXPECT_EQ(call->known, provenance::nominal);
  EXPECT_EQ(call->source, "a test; call: a call");
  EXPECT_EQ(example().expected_call_time(d2h_path(memory_kind::pinned), 1), std::nullopt)
      << "no overhead is known for this path";
}

TEST(profile, registered_memory_costs_what_pinned_does) {
  const auto found = example().lookup(h2d_path(memory_kind::registered));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->answered.host, memory_kind::pinned);
  EXPECT_EQ(found->known, provenance::measured);
}

TEST(profile, unknown_engine_is_the_one_that_the_runtime_takes) {
  EXPECT_EQ(example().lookup(h2d_path(memory_kind::pinned, engine::unknown))->answered.by,
            engine::dma);
  const path inside{.way = direction::device_to_device};
  EXPECT_EQ(example().lookup(inside)->answered.by, engine::kernel);
  const path hosts{.way = direction::host_to_host, .host = memory_kind::pinned};
  EXPECT_EQ(example().lookup(hosts)->answered.by, engine::cpu);
}

TEST(profile, never_replaces_an_unknown_kind_or_direction) {
  const auto profile = example();
  EXPECT_FALSE(profile.lookup(h2d_path(memory_kind::unknown)));
  EXPECT_FALSE(profile.lookup({.host = memory_kind::pinned, .by = engine::dma}));
  EXPECT_FALSE(profile.lookup(h2d_path(memory_kind::managed)));
  EXPECT_FALSE(profile.lookup(d2h_path(memory_kind::pageable)));
  EXPECT_FALSE(profile.lookup(d2h_path(memory_kind::pinned, engine::kernel)))
      << "another engine is another path";
  EXPECT_FALSE(machine_profile().lookup(h2d_path(memory_kind::pinned)));
}

TEST(profile, interpolates_between_known_counts) {
  const auto at = [](std::uint32_t count) {
    return rate(h2d_path(memory_kind::pinned, engine::kernel, {}, count));
  };
  EXPECT_DOUBLE_EQ(at(4), 20);
  EXPECT_DOUBLE_EQ(at(16), 44);
  EXPECT_DOUBLE_EQ(at(10), 32);
  EXPECT_DOUBLE_EQ(at(1), 5);
  EXPECT_DOUBLE_EQ(at(64), 44);
  const auto between = example().lookup(h2d_path(memory_kind::pinned, engine::kernel, {}, 10));
  EXPECT_EQ(between->known, provenance::modelled);
  EXPECT_THAT(between->source, HasSubstr("between 4 and 16"));
  EXPECT_EQ(example().lookup(h2d_path(memory_kind::pinned, engine::kernel, {}, 4))->known,
            provenance::measured);
  EXPECT_DOUBLE_EQ(rate(h2d_path(memory_kind::pinned, engine::kernel)), 44);
}

TEST(profile, both_directions_share_the_limit_in_proportion) {
  const auto found =
      example().lookup(h2d_path(memory_kind::pinned, engine::dma, trait::bidirectional));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->device_time.large_gb_per_s(), 60 * 50.0 / 90, 1e-9);
  EXPECT_EQ(found->known, provenance::modelled);
  EXPECT_TRUE(found->dropped.empty());
  const auto back =
      example().lookup(d2h_path(memory_kind::pinned, engine::dma, trait::bidirectional));
  EXPECT_NEAR(found->device_time.large_gb_per_s() + back->device_time.large_gb_per_s(), 60, 1e-9);
}

TEST(profile, a_limit_above_both_rates_slows_nothing) {
  const machine_profile wide(
      "wide",
      {row(h2d_path(memory_kind::pinned), 0, 50), row(d2h_path(memory_kind::pinned), 0, 50)}, {},
      {{.what = quantity::host_bidirectional_gb_per_s,
        .number = {500, provenance::nominal, "a test"}}});
  const auto found = wide.lookup(h2d_path(memory_kind::pinned, engine::dma, trait::bidirectional));
  EXPECT_DOUBLE_EQ(found->device_time.large_gb_per_s(), 50);
}

TEST(profile, leaves_out_the_weakest_trait_first_and_says_so) {
  const auto found = example().lookup(
      h2d_path(memory_kind::pageable, engine::dma, {trait::fresh_pages, trait::huge_pages}));
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->device_time.large_gb_per_s(), 2);  // fresh pages matter most
  EXPECT_EQ(found->dropped, trait_set(trait::huge_pages));
  EXPECT_EQ(found->known, provenance::modelled);
  EXPECT_THAT(found->source, HasSubstr("without huge_pages"));

  const auto bare = example().expected_time(
      h2d_path(memory_kind::pinned, engine::dma, {trait::fresh_pages, trait::numa_remote}), 50'000);
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->time, 2000ns);
  EXPECT_EQ(bare->dropped, (trait_set{trait::fresh_pages, trait::numa_remote}));
}

TEST(profile, knows_operations_by_size_and_trait) {
  const auto profile = example();
  EXPECT_EQ(profile.expected_time(operation::host_register, 20'000)->time, 1100ns);
  const auto huge = profile.expected_time(operation::host_register, 20'000, trait::huge_pages);
  EXPECT_EQ(huge->dropped, trait_set(trait::huge_pages));
  EXPECT_EQ(huge->known, provenance::modelled);
  EXPECT_FALSE(profile.expected_time(operation::device_alloc, 1));
}

TEST(profile, says_nothing_of_unknown_quantities) {
  EXPECT_DOUBLE_EQ(example().find(quantity::host_bidirectional_gb_per_s)->value, 60);
  EXPECT_FALSE(example().find(quantity::memory_gb_per_s));
}

TEST(profile, stays_in_range_for_sizes_that_do_not_exist) {
  const machine_profile slow("slow", {row(h2d_path(memory_kind::pinned), 0, 1e-6)}, {}, {});
  const auto time =
      slow.expected_time(h2d_path(memory_kind::pinned), std::numeric_limits<bytes_t>::max());
  EXPECT_GT(time->time.count(), 0);
}

TEST(profile, spellings_are_read_back) {
  for (unsigned index = 0; index <= static_cast<unsigned>(operation::zero_copy_write); ++index) {
    const auto one = static_cast<operation>(index);
    EXPECT_EQ(parse_operation(to_string(one)), one);
  }
  for (unsigned index = 0; index <= static_cast<unsigned>(quantity::launch_ns); ++index) {
    const auto one = static_cast<quantity>(index);
    EXPECT_EQ(parse_quantity(to_string(one)), one);
  }
  EXPECT_EQ(parse_operation("hostregister"), std::nullopt);
  EXPECT_EQ(parse_quantity(""), std::nullopt);
}

}  // namespace
}  // namespace berth::machine
