// SPDX-License-Identifier: Apache-2.0
// Copies whose time nobody has measured, whose time is that of the call, or that failed.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using trace::timing;

// Uploads, kernel, downloads; the kernels have no times, only the calls that launch them.
trace_builder turns(int count, timing how, nanoseconds time) {
  trace_builder made;
  for (int step = 0; step < count; ++step) {
    const auto at = step * 10ms;
    made.h2d(at, time, 50 * mb).host_address(0x1000).timed_by(how);
    made.launch(at + 6ms, 5us);
    made.d2h(at + 7ms, time, 50 * mb).host_address(0x1000).timed_by(how);
  }
  return made;
}

TEST(timing, a_copy_of_unknown_time_takes_no_part_in_rules_of_time) {
  trace_builder made;
  for (int step = 0; step < 20; ++step) {
    made.h2d(step * 10ms, 0ms, 50 * mb).timed_by(timing::unknown).kernel(step * 10ms + 5ms, 1ms);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), IsEmpty());
  EXPECT_THAT(shown.result.verdict, HasSubstr("20 copies between host and GPU"));
  EXPECT_THAT(shown.result.verdict, HasSubstr("nobody has measured"));
}

TEST(timing, copies_of_unknown_time_do_not_raise_the_rate_of_the_others) {
  trace_builder made;
  made.kernel(0ms, 10ms);
  for (int step = 1; step < 9; ++step) {
    made.h2d(step * 10ms, 5ms, 50 * mb);
    made.h2d(step * 10ms + 6ms, 0ms, 50 * mb).timed_by(timing::unknown);
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 8 * 4);
  const auto rate = std::find_if(found->evidence.begin(), found->evidence.end(),
                                 [](const auto& one) { return one.name == "rate reached"; });
  ASSERT_NE(rate, found->evidence.end());
  EXPECT_DOUBLE_EQ(rate->value, 10);
}

TEST(timing, the_time_of_a_call_counts_as_time) {
  trace_builder made;
  made.kernel(0ms, 10ms);
  for (int step = 1; step < 9; ++step) {
    made.h2d(step * 10ms, 5ms, 50 * mb).timed_by(timing::call);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("pageable-copies"), nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*shown.find("pageable-copies")), 8 * 4);
}

TEST(timing, ping_pong_is_seen_by_launches_where_kernels_have_no_times) {
  auto made = turns(6, timing::call, 2ms);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("ping-pong");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("5 round trips"));
  EXPECT_TRUE(found->saving.has_value());
}

TEST(timing, ping_pong_of_unknown_time_goes_by_bytes) {
  auto made = turns(6, timing::unknown, 0ms);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("ping-pong");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::advice);
  EXPECT_THAT(found->headline, HasSubstr("83 % of all bytes"));
  EXPECT_FALSE(found->saving.has_value());
  EXPECT_THAT(found->gains, IsEmpty());
}

TEST(timing, ping_pong_of_unknown_time_is_none_where_other_data_is_more) {
  auto made = turns(6, timing::unknown, 0ms);
  made.h2d(100ms, 0ms, 5000 * mb).timed_by(timing::unknown);
  EXPECT_EQ(diagnose_on_round_machine(made).find("ping-pong"), nullptr);
}

TEST(timing, tiny_copies_of_unknown_time_cost_what_their_calls_cost) {
  trace_builder made;
  made.kernel(0ms, 1ms);
  for (int copy = 0; copy < 20; ++copy) {
    made.h2d(2ms + copy * 1ms, 0ms, 4 * kib).timed_by(timing::unknown);
    made.called(2ms + copy * 1ms, 500us);
  }
  made.kernel(30ms, 1ms);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("tiny-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("10.0 ms of host time"));
  for (const auto& one : found->evidence) {
    EXPECT_NE(one.name, "time on the device");
  }
}

TEST(timing, a_launch_between_tiny_copies_ends_a_burst) {
  trace_builder made;
  for (int copy = 0; copy < 20; ++copy) {
    made.h2d(copy * 1ms, 0ms, 4 * kib).timed_by(timing::unknown).called(copy * 1ms, 500us);
    made.launch(copy * 1ms + 600us, 5us);
  }
  made.fill(40ms, 1ms);
  EXPECT_EQ(diagnose_on_round_machine(made).find("tiny-copies"), nullptr);
}

TEST(timing, a_copy_that_failed_has_moved_nothing) {
  trace_builder made;
  made.kernel(0ms, 10ms);
  for (int step = 1; step < 9; ++step) {
    made.h2d(step * 10ms, 5ms, 50 * mb).called(step * 10ms, 5ms, "hipMemcpy").failed(1);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(shown.find("pageable-copies"), nullptr);
  const auto* const found = shown.find("failed-calls");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::note);
  EXPECT_THAT(found->headline, HasSubstr("8 GPU calls failed: hipMemcpy 8 times"));
  EXPECT_THAT(found->headline, HasSubstr("invalid value"));
}

// Blocking downloads of 50 MB that take 20 ms, 15 of which may be the kernel's, and uploads.
diagnosed blocking_downloads(bool launches, bool waits) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    const auto at = step * 50ms;
    if (launches) {
      made.launch(at, 5us);
    }
    if (waits) {
      made.synchronised(at + 1ms, 15ms);
    }
    made.d2h(at + 20ms, 20ms, 50 * mb).timed_by(timing::call).called(at + 20ms, 20ms, "hipMemcpy");
  }
  return diagnose_on_round_machine(made);
}

TEST(timing, a_call_that_may_have_waited_for_kernels_is_not_blamed_for_all_of_its_time) {
  const auto shown = blocking_downloads(true, false);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  // 5 ms each is what pageable memory explains, 1 ms what pinned memory would take.
  EXPECT_DOUBLE_EQ(saving_ms(*found), 6 * 4);
  EXPECT_EQ(shown.find("fresh-pages"), nullptr);
}

TEST(timing, a_call_behind_a_synchronisation_has_not_waited) {
  for (const auto& shown : {blocking_downloads(true, true), blocking_downloads(false, false)}) {
    ASSERT_NE(shown.find("pageable-copies"), nullptr);
    EXPECT_DOUBLE_EQ(saving_ms(*shown.find("pageable-copies")), 6 * 19);
    EXPECT_NE(shown.find("fresh-pages"), nullptr);
  }
}

// Uploads that take `time` of each 20 ms, of which the rest may be a kernel's.
diagnosed uploads_beside_unknown(nanoseconds time) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 20ms, time, 50 * mb).timed_by(timing::call);
    made.called(step * 20ms, time, "hipMemcpy").launch(step * 20ms + time, 5us);
    made.synchronised(step * 20ms + time, 20ms - time);
  }
  made.fill(119ms, 1ms);
  return diagnose_on_round_machine(made);
}

TEST(timing, where_kernels_have_no_times_copies_are_compared_with_the_span) {
  const auto shown = uploads_beside_unknown(5ms);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::advice);
  EXPECT_THAT(found->headline, HasSubstr("25 % of the span (when kernels ran is not known)"));
  EXPECT_THAT(found->headline, Not(HasSubstr("without any kernel")));
}

TEST(timing, copies_above_half_of_all_that_kernels_can_have_taken_are_a_fault) {
  const auto shown = uploads_beside_unknown(8ms);
  ASSERT_NE(shown.find("pageable-copies"), nullptr);
  EXPECT_EQ(shown.find("pageable-copies")->severity, diagnose::severity::fault);
}

TEST(timing, a_call_that_may_have_waited_says_nothing_where_nothing_is_expected) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    const auto at = step * 50ms;
    made.launch(at, 5us);
    made.d2h(at + 20ms, 20ms, 50 * mb).timed_by(timing::call).called(at + 20ms, 20ms, "hipMemcpy");
  }
  EXPECT_EQ(diagnose_on_unknown_machine(made).find("pageable-copies"), nullptr);
}

TEST(timing, the_own_rate_of_a_trace_rests_on_device_times) {
  trace_builder made;
  for (int copy = 0; copy < 5; ++copy) {
    made.h2d(copy * 10ms, 2ms, 40 * mb, memory_kind::pinned).timed_by(timing::call);
  }
  const auto events = made.build();
  EXPECT_FALSE(diagnose::expectation(events, nullptr)
                   .rate(direction::host_to_device, diagnose::host_end::pinned)
                   .has_value());
}

}  // namespace
}  // namespace berth::test
