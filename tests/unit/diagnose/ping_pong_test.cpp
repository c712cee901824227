// SPDX-License-Identifier: Apache-2.0
// Symptom 3, and the traffic that looks like it: what tells them apart.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;
using testing::Not;

struct turn {
  int count = 6;
  bytes_or_unknown up = 50 * mb;
  bytes_or_unknown down = 50 * mb;
  memory_kind up_kind = memory_kind::pinned;
  memory_kind down_kind = memory_kind::pinned;
  std::optional<std::uint64_t> up_address = {};
  std::optional<std::uint64_t> down_address = {};
  nanoseconds kernel_time = 5ms;
};

// Upload, kernel, download; upload, kernel, download: 10 ms each.
trace_builder turns(const turn& how) {
  trace_builder made;
  for (int step = 0; step < how.count; ++step) {
    const auto begin = step * 10ms;
    made.h2d(begin, 1ms, how.up, how.up_kind);
    if (how.up_address) {
      made.host_address(*how.up_address);
    }
    made.kernel(begin + 1ms, how.kernel_time);
    made.d2h(begin + 8ms, 1ms, how.down, how.down_kind);
    if (how.down_address) {
      made.host_address(*how.down_address);
    }
  }
  return made;
}

diagnosed diagnosed_turns(const turn& how) {
  auto made = turns(how);
  return diagnose_on_round_machine(made);
}

TEST(ping_pong, the_same_host_address_to_and_fro_is_a_fault) {
  const auto shown = diagnosed_turns({.up_address = 0x1000, .down_address = 0x1000});
  const auto* const found = shown.find("ping-pong");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_THAT(found->headline, HasSubstr("goes to and fro: 5 round trips"));
  EXPECT_THAT(found->headline, HasSubstr("same host addresses"));
  EXPECT_DOUBLE_EQ(saving_ms(*found), 10);  // five downloads, and the uploads that follow them
  EXPECT_EQ(found->saving->bound, diagnose::bound::at_most);
}

// The host works on the data for 5 ms of each 12: that is no filling of a buffer.
TEST(ping_pong, the_host_s_part_counts_and_is_no_staging) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    const auto begin = step * 12ms;
    made.h2d(begin, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000);
    made.kernel(begin + 1ms, 5ms);
    made.d2h(begin + 6ms, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000);
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("ping-pong");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 10 + 5 * 5);
  EXPECT_THAT(found->headline, HasSubstr("move 477 MiB in 10.0 ms, and the GPU idles 25.0 ms while "
                                         "the host has it: together 52 % of the span"));
  EXPECT_EQ(shown.find("fill-bound-staging"), nullptr);
}

TEST(ping_pong, equal_sizes_in_strict_turns_are_a_suspicion_and_no_fault) {
  const auto shown = diagnosed_turns({});
  const auto* const found = shown.find("ping-pong");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::advice);
  EXPECT_THAT(found->headline, HasSubstr("seems to go to and fro"));
  EXPECT_THAT(found->headline, HasSubstr("the trace has no addresses"));
}

TEST(ping_pong, unknown_kinds_do_not_hide_it) {
  EXPECT_NE(diagnosed_turns({.up_kind = memory_kind::unknown, .down_kind = memory_kind::unknown})
                .find("ping-pong"),
            nullptr);
}

TEST(ping_pong, other_host_addresses_are_other_data) {
  EXPECT_EQ(diagnosed_turns({.up_address = 0x1000, .down_address = 0x9000}).find("ping-pong"),
            nullptr);
}

TEST(ping_pong, a_known_and_an_unknown_address_are_not_the_same) {
  EXPECT_EQ(diagnosed_turns({.up_address = 0x1000}).find("ping-pong"), nullptr);
}

TEST(ping_pong, other_sizes_are_other_data) {
  EXPECT_EQ(diagnosed_turns({.down = 49 * mb}).find("ping-pong"), nullptr);
}

TEST(ping_pong, unknown_bytes_are_not_equal_bytes) {
  EXPECT_EQ(diagnosed_turns({.up = std::nullopt, .down = std::nullopt}).find("ping-pong"), nullptr);
}

TEST(ping_pong, pinned_uploads_and_pageable_downloads_are_different_buffers) {
  EXPECT_EQ(diagnosed_turns({.down_kind = memory_kind::pageable}).find("ping-pong"), nullptr);
}

TEST(ping_pong, tiny_copies_are_none) {
  EXPECT_EQ(diagnosed_turns({.up = 4 * kib, .down = 4 * kib}).find("ping-pong"), nullptr);
}

TEST(ping_pong, two_round_trips_are_too_few) {
  EXPECT_EQ(diagnosed_turns({.count = 3}).find("ping-pong"), nullptr);
  EXPECT_NE(diagnosed_turns({.count = 4}).find("ping-pong"), nullptr);
}

TEST(ping_pong, without_kernels_between_it_is_no_round_trip) {
  EXPECT_EQ(diagnosed_turns({.kernel_time = 0ms}).find("ping-pong"), nullptr);
}

TEST(ping_pong, all_uploads_and_then_all_downloads_are_none) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 2ms, 1ms, 50 * mb, memory_kind::pinned);
    made.kernel(step * 2ms + 1ms, 1ms);
    made.d2h(20ms + step * 2ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("ping-pong"), nullptr);
}

TEST(ping_pong, double_buffering_on_two_streams_is_a_pipeline) {
  trace_builder made;
  for (int step = 0; step < 12; ++step) {
    const auto begin = step * 5ms;  // each step takes 10 ms and begins in the middle of the other's
    made.on(0, step % 2).h2d(begin, 1ms, 50 * mb, memory_kind::pinned);
    made.kernel(begin + 1ms, 5ms).d2h(begin + 8ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("ping-pong"), nullptr);
}

TEST(ping_pong, an_upload_beside_the_download_is_a_pipeline) {
  trace_builder made;
  for (int step = 0; step < 8; ++step) {
    made.h2d(step * 10ms, 1ms, 50 * mb, memory_kind::pinned).kernel(step * 10ms + 1ms, 8ms);
    made.d2h(step * 10ms + 9500us, 1ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("ping-pong"), nullptr);
}

TEST(ping_pong, other_devices_are_other_data) {
  trace_builder made;
  for (int step = 0; step < 8; ++step) {
    made.on(0, 7).h2d(step * 10ms, 1ms, 50 * mb, memory_kind::pinned);
    made.on(1, 7).kernel(step * 10ms + 1ms, 5ms);
    made.d2h(step * 10ms + 8ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("ping-pong"), nullptr);
}

TEST(ping_pong, a_small_share_of_the_span_is_not_worth_a_finding) {
  auto made = turns({.up_address = 0x1000, .down_address = 0x1000});
  made.kernel(100ms, 150ms);  // 10 of 250 ms
  EXPECT_EQ(diagnose_on_round_machine(made).find("ping-pong"), nullptr);
  auto more = turns({.up_address = 0x1000, .down_address = 0x1000});
  more.kernel(100ms, 80ms);  // 10 of 180 ms
  const auto shown = diagnose_on_round_machine(more);
  ASSERT_NE(shown.find("ping-pong"), nullptr);
  EXPECT_EQ(shown.find("ping-pong")->severity, severity::advice);
}

TEST(ping_pong, certain_and_suspected_trips_are_told_apart) {
  auto made = turns({.up_address = 0x1000, .down_address = 0x1000});
  for (int step = 0; step < 6; ++step) {
    const auto begin = 60ms + step * 10ms;
    made.h2d(begin, 1ms, 25 * mb).kernel(begin + 1ms, 5ms).d2h(begin + 8ms, 1ms, 25 * mb);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(std::count_if(shown.result.findings.begin(), shown.result.findings.end(),
                          [](const auto& one) { return one.rule == "ping-pong"; }),
            2);
  EXPECT_THAT(shown.find("ping-pong")->headline, HasSubstr("same host addresses"));
}

TEST(ping_pong, the_fix_speaks_the_program_s_terms) {
  auto torch = turns({});
  torch.pytorch();
  EXPECT_THAT(all_fixes(*diagnose_on_round_machine(torch).find("ping-pong")),
              HasSubstr("Keep the tensor on the GPU"));
  EXPECT_THAT(all_fixes(*diagnosed_turns({}).find("ping-pong")), Not(HasSubstr("tensor")));
}

}  // namespace
}  // namespace berth::test
