// SPDX-License-Identifier: Apache-2.0
// The data reproduces the tables that it was made from.
#include <cmath>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "machine/catalogue.hpp"

namespace berth::machine {
namespace {

constexpr auto h2d = direction::host_to_device;
constexpr auto d2h = direction::device_to_host;
constexpr auto p2p = direction::peer_to_peer;
constexpr auto d2d = direction::device_to_device;

void expect_within(double found, double low, double high, double tolerance,
                   const std::string& what) {
  EXPECT_GE(found, low * (1 - tolerance)) << what;
  EXPECT_LE(found, high * (1 + tolerance)) << what;
}

// ---- H200, within 10 %

struct call_time {
  bytes_t bytes;
  double us;
};

TEST(h200, pinned_calls_take_the_times_of_the_size_sweep) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  for (const auto& row : {call_time{4 * kib, 8},
                          {64 * kib, 9},
                          {mib, 27},
                          {4 * mib, 84},
                          {16 * mib, 310},
                          {64 * mib, 1217}}) {
    const auto time =
        profile.expected_call_time({.way = h2d, .host = memory_kind::pinned}, row.bytes);
    ASSERT_TRUE(time);
    expect_within(static_cast<double>(time->time.count()) / 1e3, row.us, row.us, 0.1,
                  std::to_string(row.bytes));
  }
}

TEST(h200, a_small_pinned_copy_keeps_the_engine_for_about_a_microsecond) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  const auto time = profile.expected_time({.way = h2d, .host = memory_kind::pinned}, 4 * kib);
  EXPECT_NEAR(static_cast<double>(time->time.count()), 1000, 150);
}

struct call_rate {
  path where;
  bytes_t bytes;
  double low;
  double high;
};

path host_path(direction way, memory_kind kind, trait_set traits = {}) {
  return {.way = way, .host = kind, .by = engine::dma, .traits = traits};
}

TEST(h200, calls_reach_the_rates_of_the_tables) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  const auto pageable = memory_kind::pageable;
  const trait_set fresh = trait::fresh_pages;
  const trait_set fresh_huge{trait::fresh_pages, trait::huge_pages};
  for (const auto& row : {
           call_rate{host_path(h2d, memory_kind::pinned), 512 * mib, 55.4, 55.4},
           call_rate{host_path(d2h, memory_kind::pinned), 512 * mib, 55.2, 55.2},
           call_rate{host_path(h2d, pageable), 64 * kib, 2.9, 4.3},
           call_rate{host_path(h2d, pageable), mib, 12.5, 12.5},
           call_rate{host_path(h2d, pageable), 16 * mib, 15.6, 15.6},
           call_rate{host_path(h2d, pageable), 64 * mib, 10.2, 10.2},
           call_rate{host_path(h2d, pageable), 256 * mib, 9.0, 9.0},
           call_rate{host_path(h2d, pageable), gib, 7.4, 9.3},
           call_rate{host_path(d2h, pageable), 64 * kib, 4.1, 4.1},
           call_rate{host_path(d2h, pageable), mib, 9.6, 9.6},
           call_rate{host_path(d2h, pageable), 16 * mib, 15.9, 15.9},
           call_rate{host_path(d2h, pageable), 64 * mib, 16.7, 16.7},
           call_rate{host_path(d2h, pageable), 256 * mib, 15.5, 15.5},
           call_rate{host_path(d2h, pageable), gib, 14.2, 16},
           call_rate{host_path(d2h, pageable, fresh), gib, 1.3, 1.3},
           call_rate{host_path(d2h, pageable, fresh_huge), gib, 3.0, 3.0},
           call_rate{host_path(h2d, pageable, fresh), gib, 2.8, 2.8},
       }) {
    const auto time = profile.expected_call_time(row.where, row.bytes);
    ASSERT_TRUE(time) << to_string(row.where);
    EXPECT_TRUE(time->dropped.empty()) << to_string(row.where);
    expect_within(gb_per_s(row.bytes, time->time), row.low, row.high, 0.1,
                  to_string(row.where) + " " + std::to_string(row.bytes));
  }
}

TEST(h200, kernel_copies_reach_their_rate_with_the_right_number_of_blocks) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  const auto rate = [&](direction way, std::uint32_t blocks) {
    return profile
        .expected_rate(
            {.way = way, .host = memory_kind::pinned, .by = engine::kernel, .parallelism = blocks},
            512 * mib)
        ->gb_per_s;
  };
  expect_within(rate(h2d, 4), 23, 23, 0.1, "4 blocks");
  expect_within(rate(h2d, 16), 51, 51, 0.1, "16 blocks");
  expect_within(rate(h2d, 32), 51, 51, 0.1, "32 blocks");
  expect_within(rate(d2h, 4), 52, 52, 0.1, "4 blocks back");
  expect_within(rate(d2h, 32), 52, 52, 0.1, "32 blocks back");
}

TEST(h200, both_directions_together) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  const auto rate = [&](direction way) {
    return profile
        .expected_rate(host_path(way, memory_kind::pinned, trait::bidirectional), 512 * mib)
        ->gb_per_s;
  };
  expect_within(rate(h2d) + rate(d2h), 98, 101, 0.1, "sum");
}

struct operation_time {
  operation what;
  trait_set traits;
  bytes_t bytes;
  double ms;
};

TEST(h200, allocation_and_pinning_take_their_time) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  for (const auto& row : {
           operation_time{operation::host_register, {}, mib, 0.12},
           {operation::host_register, {}, 16 * mib, 0.93},
           {operation::host_register, {}, 256 * mib, 12.6},
           {operation::host_register, {}, gib, 52},
           {operation::host_register, trait::huge_pages, gib, 1073.741824 / 34},
           {operation::host_unregister, {}, mib, 0.06},
           {operation::host_unregister, {}, 16 * mib, 0.38},
           {operation::host_unregister, {}, 256 * mib, 5.0},
           {operation::host_unregister, {}, gib, 19},
           {operation::pinned_alloc, {}, 4 * kib, 1.0},
           {operation::pinned_alloc, {}, mib, 0.86},
           {operation::pinned_alloc, {}, 64 * mib, 31},
           {operation::pinned_alloc, {}, gib, 521},
           {operation::pinned_free, {}, 4 * kib, 0.36},
           {operation::pinned_free, {}, mib, 0.35},
           {operation::pinned_free, {}, 64 * mib, 9.4},
           {operation::pinned_free, {}, gib, 154},
           {operation::device_alloc, {}, 4 * kib, 0.089},
           {operation::device_alloc, {}, 64 * mib, 0.269},
           {operation::device_alloc, {}, gib, 0.351},
           {operation::device_free, {}, 4 * kib, 0.054},
           {operation::device_free, {}, 64 * mib, 0.150},
           {operation::device_free, {}, gib, 0.698},
           {operation::stream_ordered_alloc_free, {}, mib, 0.0011},
           {operation::managed_touch_by_device, {}, 256 * mib, 268.435456 / 12.6},
           {operation::managed_touch_by_host, {}, 256 * mib, 268.435456 / 3.0},
           {operation::managed_prefetch_to_device, {}, 256 * mib, 268.435456 / 48},
           {operation::managed_prefetch_to_host, {}, 256 * mib, 268.435456 / 10.9},
           {operation::managed_resident_copy, {}, 256 * mib, 268.435456 / 1490},
       }) {
    const auto time = profile.expected_time(row.what, row.bytes, row.traits);
    ASSERT_TRUE(time) << to_string(row.what);
    EXPECT_TRUE(time->dropped.empty()) << to_string(row.what);
    expect_within(static_cast<double>(time->time.count()) / 1e6, row.ms, row.ms, 0.1,
                  std::string(to_string(row.what)) + " " + std::to_string(row.bytes));
  }
}

TEST(h200, quantities_are_those_of_the_tables) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  const auto value = [&](quantity what) { return profile.find(what)->value; };
  expect_within(value(quantity::kernel_slowdown_beside_dma), 1.01, 1.01, 0.001, "dma");
  expect_within(value(quantity::kernel_slowdown_beside_kernel_copy), 1.44, 1.44, 0.001, "kernel");
  expect_within(value(quantity::host_access_latency_ns), 1213, 1213, 0.001, "latency");
  const auto inside = profile.expected_rate({.way = d2d, .by = engine::dma}, gib);
  expect_within(2 * inside->gb_per_s, 4125, 4125, 0.1, "read and write");
  const auto kernel = profile.expected_rate({.way = d2d, .by = engine::kernel}, gib);
  expect_within(2 * kernel->gb_per_s, 3830, 3830, 0.1, "read and write by a kernel");
}

TEST(h200, host_copies_scale_with_threads) {
  const auto profile = nominal_profile(*find_by_name("h200"));
  const auto rate = [&](std::uint32_t threads) {
    return profile
        .expected_rate({.way = direction::host_to_host,
                        .host = memory_kind::pageable,
                        .by = engine::cpu,
                        .parallelism = threads},
                       gib)
        ->gb_per_s;
  };
  expect_within(rate(1), 10, 10, 0.1, "1 thread");
  expect_within(rate(4), 34, 34, 0.1, "4 threads");
  expect_within(rate(8), 35, 54, 0.1, "8 threads");
  expect_within(rate(16), 39, 75, 0.1, "16 threads");
}

// ---- AMD's published results of ROCm Bandwidth Test, within 5 %

struct published {
  const char* model;
  path where;
  double low;
  double high;
  double counted = 1;  // a copy inside a device is published as read and write
};

path between_peers(std::uint32_t links) {
  return {.way = p2p, .by = engine::dma, .parallelism = links};
}

TEST(amd, large_copies_reach_the_published_rates) {
  const auto pinned = memory_kind::pinned;
  const path inside{.way = d2d, .by = engine::kernel};
  for (const auto& row : {
           published{"mi300x", host_path(h2d, pinned), 57.3, 57.3},
           published{"mi300x", host_path(d2h, pinned), 48.4, 48.4},
           published{"mi300x", host_path(d2h, pinned, trait::best_engine), 56, 56},
           published{"mi300x", between_peers(1), 47.6, 49.4},
           published{"mi300x", inside, 2670, 3660, 2},
           published{"mi300a", host_path(h2d, pinned), 58.3, 58.3},
           published{"mi300a", host_path(d2h, pinned), 58.3, 58.3},
           published{"mi300a", between_peers(2), 91, 95},
           published{"mi300a", inside, 1890, 2140, 2},
           published{"mi250-x8", host_path(h2d, pinned), 14.0, 14.1},
           published{"mi250-x8", host_path(d2h, pinned), 14.0, 14.1},
           published{"mi250-x8", between_peers(4), 150, 152},
           published{"mi250-x8", between_peers(2), 70, 78},
           published{"mi250-x8", between_peers(1), 36, 39},
           published{"mi250-x8", inside, 980, 1058, 2},
           published{"mi210", host_path(h2d, pinned), 28, 28},
           published{"mi210", host_path(d2h, pinned), 28, 28},
           published{"radeon-pro-vii", host_path(h2d, pinned), 14.25, 14.25},
       }) {
    const auto profile = nominal_profile(*find_by_name(row.model));
    const auto rate = profile.expected_rate(row.where, 512 * mib);
    ASSERT_TRUE(rate) << row.model << " " << to_string(row.where);
    EXPECT_TRUE(rate->dropped.empty()) << row.model << " " << to_string(row.where);
    expect_within(row.counted * rate->gb_per_s, row.low, row.high, 0.05,
                  row.model + (" " + to_string(row.where)));
  }
}

struct published_sum {
  const char* model;
  direction way;
  std::optional<std::uint32_t> links;
  double low;
  double high;
};

TEST(amd, both_directions_reach_the_published_sums) {
  for (const auto& row : {
           published_sum{"mi300x", h2d, {}, 91.8, 91.8},
           published_sum{"mi300x", p2p, 1, 94, 97},
           published_sum{"mi300a", h2d, {}, 116.5, 116.5},
           published_sum{"mi300a", p2p, 2, 180, 186},
           published_sum{"mi250-x8", h2d, {}, 24, 25},
           published_sum{"mi210", h2d, {}, 45, 45},
           published_sum{"mi100", h2d, {}, 50, 50},
           published_sum{"mi100", p2p, 1, 70, 70},
       }) {
    const auto profile = nominal_profile(*find_by_name(row.model));
    const auto rate = [&](direction way) {
      const auto found = profile.expected_rate({.way = way,
                                                .host = memory_kind::pinned,
                                                .by = engine::dma,
                                                .traits = trait::bidirectional,
                                                .parallelism = row.links},
                                               512 * mib);
      EXPECT_TRUE(found && found->dropped.empty()) << row.model;
      return found ? found->gb_per_s : 0.0;
    };
    const double sum = rate(row.way) + rate(row.way == h2d ? d2h : row.way);
    expect_within(sum, row.low, row.high, 0.05, row.model);
  }
}

TEST(mi100, pinned_copies_take_the_times_of_the_benchmark_log) {
  const auto profile = nominal_profile(*find_by_name("mi100"));
  for (const auto& row : {call_time{4 * kib, 24.2},
                          {64 * kib, 27.1},
                          {mib, 64.2},
                          {8 * mib, 367.5},
                          {64 * mib, 2740.9},
                          {512 * mib, 21689.7}}) {
    const auto time =
        profile.expected_call_time({.way = h2d, .host = memory_kind::pinned}, row.bytes);
    ASSERT_TRUE(time);
    expect_within(static_cast<double>(time->time.count()) / 1e3, row.us, row.us, 0.05,
                  std::to_string(row.bytes));
  }
}

}  // namespace
}  // namespace berth::machine
