// SPDX-License-Identifier: Apache-2.0
// Staging by the program that waits for its filling, and what looks like it.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Pieces of 50 MB through one pinned buffer: 1 ms on the link, `gap` between them.
struct staging {
  int count = 10;
  nanoseconds gap = 5ms;
  direction way = direction::host_to_device;
  memory_kind kind = memory_kind::pinned;
  std::optional<std::uint64_t> address = 0x1000;
  std::uint64_t stride = 0;
  nanoseconds kernel = 0ms;  // in the gap
  std::string framework = {};
};

trace_builder pieces(const staging& how) {
  trace_builder made;
  made.api(trace::gpu_api::cuda).framework(how.framework);
  for (int piece = 0; piece < how.count; ++piece) {
    const auto at = piece * (1ms + how.gap);
    how.way == direction::host_to_device ? made.h2d(at, 1ms, 50 * mb, how.kind)
                                         : made.d2h(at, 1ms, 50 * mb, how.kind);
    if (how.address) {
      made.host_address(*how.address + static_cast<std::uint64_t>(piece) * how.stride);
    }
    if (how.kernel > 0ms) {
      made.kernel(at + 1ms, how.kernel);
    }
  }
  return made;
}

diagnosed diagnosed_pieces(const staging& how) {
  auto made = pieces(how);
  return diagnose_on_round_machine(made);
}

TEST(fill_bound, the_link_idles_while_one_thread_fills) {
  const auto shown = diagnosed_pieces({});
  const auto* const found = shown.find("fill-bound-staging");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::advice);
  EXPECT_THAT(found->headline, HasSubstr("Bound by filling, not by the link: the program sends"));
  EXPECT_THAT(found->headline,
              HasSubstr("the link idles 45.0 ms, as long as a CPU takes that fills the buffer at "
                        "10.0 GB/s"));
  EXPECT_THAT(found->headline, HasSubstr("the copies run at 50.0 GB/s"));
  // Now 6 ms for a piece, then 5 ms / 3.4.
  EXPECT_NEAR(saving_ms(*found), 9 * (6 - 5 / 3.4), 0.01);
  EXPECT_DOUBLE_EQ(milliseconds_of(found->lost_ns), 9 * 5);
  EXPECT_LE(found->saving->time_ns, found->lost_ns);
}

TEST(fill_bound, downloads_wait_for_the_emptying) {
  const auto shown = diagnosed_pieces({.way = direction::device_to_host});
  ASSERT_NE(shown.find("fill-bound-staging"), nullptr);
  EXPECT_THAT(shown.find("fill-bound-staging")->headline,
              HasSubstr("a CPU takes that empties the buffer"));
}

TEST(fill_bound, frameworks_are_named_and_advised) {
  const auto cupy = diagnosed_pieces({.framework = "CuPy"});
  ASSERT_NE(cupy.find("fill-bound-staging"), nullptr);
  EXPECT_THAT(cupy.find("fill-bound-staging")->headline, HasSubstr("CuPy sends"));
  EXPECT_THAT(all_fixes(*cupy.find("fill-bound-staging")), HasSubstr("cupyx.empty_pinned"));
  const auto jax = diagnosed_pieces({.framework = "JAX"});
  ASSERT_NE(jax.find("fill-bound-staging"), nullptr);
  EXPECT_THAT(all_fixes(*jax.find("fill-bound-staging")), HasSubstr("pinned_host"));
}

TEST(fill_bound, a_link_that_is_busy_is_link_bound) {
  EXPECT_EQ(diagnosed_pieces({.gap = 10us}).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, gaps_that_are_too_long_for_filling_are_something_else) {
  EXPECT_EQ(diagnosed_pieces({.gap = 60ms}).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, a_gpu_that_works_meanwhile_loses_nothing) {
  EXPECT_EQ(diagnosed_pieces({.kernel = 4ms}).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, buffers_that_are_used_once_are_no_staging) {
  EXPECT_EQ(diagnosed_pieces({.stride = 50 * mb}).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, pageable_memory_and_unknown_addresses_are_none) {
  EXPECT_EQ(diagnosed_pieces({.kind = memory_kind::pageable}).find("fill-bound-staging"), nullptr);
  EXPECT_EQ(diagnosed_pieces({.address = {}}).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, four_fillings_are_the_least) {
  EXPECT_EQ(diagnosed_pieces({.count = 4}).find("fill-bound-staging"), nullptr);
  EXPECT_NE(diagnosed_pieces({.count = 5}).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, two_buffers_in_turns_by_one_thread_are_fill_bound_still) {
  trace_builder made;
  for (int piece = 0; piece < 10; ++piece) {
    made.h2d(piece * 6ms, 1ms, 50 * mb, memory_kind::pinned);
    made.host_address(0x1000 + static_cast<std::uint64_t>(piece % 2) * 50 * mb);
  }
  EXPECT_NE(diagnose_on_round_machine(made).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, unchanged_data_was_not_filled) {
  trace_builder made;
  for (int piece = 0; piece < 10; ++piece) {
    made.h2d(piece * 6ms, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000).content(7);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, where_kernels_have_no_times_a_launch_in_the_gap_may_be_work) {
  trace_builder made;
  for (int piece = 0; piece < 10; ++piece) {
    made.h2d(piece * 6ms, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000);
    made.launch(piece * 6ms + 2ms, 5us);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("fill-bound-staging"), nullptr);
}

TEST(fill_bound, devices_that_idle_side_by_side_share_the_time) {
  trace_builder made;
  for (std::uint32_t device = 0; device < 4; ++device) {
    made.on(device, 1);
    for (int piece = 0; piece < 10; ++piece) {
      made.h2d(piece * 6ms, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000 + device);
    }
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("fill-bound-staging");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(saving_ms(*found), 9 * (6 - 5 / 3.4), 0.01);
  EXPECT_NEAR(milliseconds_of(found->lost_ns), 9 * 5, 0.01);
}

}  // namespace
}  // namespace berth::test
