// SPDX-License-Identifier: Apache-2.0
// Pinned copies: beside kernels or in turns with them, at the link's rate or below it.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Uploads of 50 MB at the link's rate, 1 ms, and kernels of 9 ms.
trace_builder in_turns(int count, memory_kind kind = memory_kind::pinned) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  for (int step = 0; step < count; ++step) {
    made.h2d(step * 10ms, 1ms, 50 * mb, kind).kernel(step * 10ms + 1ms, 9ms);
  }
  return made;
}

TEST(no_overlap, pinned_copies_in_turns_with_kernels_are_advice) {
  auto made = in_turns(6);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("no-overlap"));
  const auto& found = shown.result.findings.front();
  EXPECT_EQ(found.severity, diagnose::severity::advice);
  EXPECT_DOUBLE_EQ(saving_ms(found), 6);
  EXPECT_EQ(found.saving->bound, diagnose::bound::at_most);
  EXPECT_THAT(found.headline, HasSubstr("pinned and at the link's rate (50.0 GB/s) but not"));
  EXPECT_THAT(found.headline, HasSubstr("6.00 ms of their 6.00 ms"));
  EXPECT_THAT(all_fixes(found), HasSubstr("hipStreamWaitEvent"));
}

TEST(no_overlap, registered_memory_counts_as_pinned) {
  auto made = in_turns(6, memory_kind::registered);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), ElementsAre("no-overlap"));
}

TEST(no_overlap, unknown_memory_at_the_link_s_rate_counts_as_pinned) {
  auto made = in_turns(6, memory_kind::unknown);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("no-overlap"));
  EXPECT_THAT(shown.result.findings.front().headline,
              HasSubstr("Copies run at the link's rate (50.0 GB/s) but are not overlapped"));
  auto unknown = in_turns(6, memory_kind::unknown);
  EXPECT_THAT(diagnose_on_unknown_machine(unknown).rules(), Not(Contains("no-overlap")));
}

TEST(no_overlap, pageable_copies_cannot_overlap_before_they_are_pinned) {
  auto made = in_turns(6, memory_kind::pageable);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("no-overlap")));
}

TEST(no_overlap, copies_beside_kernels_have_nothing_to_gain) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 60ms).on(0, 2);
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 10ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), IsEmpty());
  EXPECT_EQ(shown.result.verdict,
            "Copies are pinned and at the link's rate, and run beside kernels: nothing to gain.");
}

TEST(no_overlap, what_is_loaded_before_the_work_has_no_kernel_to_hide_behind) {
  trace_builder made;
  for (int layer = 0; layer < 10; ++layer) {
    made.h2d(layer * 1ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  made.kernel(10ms, 90ms);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), IsEmpty());
}

TEST(no_overlap, what_is_saved_after_the_work_has_no_kernel_to_hide_behind) {
  trace_builder made;
  made.kernel(0ms, 90ms);
  for (int layer = 0; layer < 10; ++layer) {
    made.d2h(90ms + layer * 1ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), IsEmpty());
}

TEST(no_overlap, only_as_much_hides_as_there_are_kernels) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 10ms, 8ms, 400 * mb, memory_kind::pinned).kernel(step * 10ms + 8ms, 2ms);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("no-overlap"), nullptr);
  EXPECT_NEAR(saving_ms(*shown.find("no-overlap")), 12, 0.001);
  EXPECT_NEAR(milliseconds_of(shown.result.saving_ns), 12, 0.001);
}

TEST(no_overlap, copies_side_by_side_hide_together) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    made.on(0, 1).h2d(step * 10ms, 2ms, 50 * mb, memory_kind::pinned);
    made.on(0, 2).h2d(step * 10ms, 2ms, 50 * mb, memory_kind::pinned);
    made.on(0, 3).kernel(step * 10ms + 2ms, 8ms);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("no-overlap"), nullptr);
  EXPECT_NEAR(saving_ms(*shown.find("no-overlap")), 12, 0.001);
}

TEST(no_overlap, devices_side_by_side_save_wall_time_once) {
  trace_builder made;
  for (std::uint32_t device = 0; device < 4; ++device) {
    made.on(device, 7);
    for (int step = 0; step < 6; ++step) {
      made.h2d(step * 10ms, 1ms, 50 * mb, memory_kind::pinned).kernel(step * 10ms + 1ms, 9ms);
    }
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("no-overlap"), nullptr);
  EXPECT_NEAR(saving_ms(*shown.find("no-overlap")), 6, 0.001);
}

TEST(no_overlap, five_percent_of_the_span_are_the_border) {
  const auto with_idle = [](nanoseconds last) {
    auto made = in_turns(6);
    made.kernel(60ms, last);
    return diagnose_on_round_machine(made).rules();
  };
  EXPECT_THAT(with_idle(59ms), ElementsAre("no-overlap"));  // 6 of 119 ms
  EXPECT_THAT(with_idle(61ms), IsEmpty());                  // 6 of 121 ms
}

TEST(no_overlap, one_copy_has_no_next) {
  trace_builder made;
  made.kernel(0ms, 4ms).h2d(4ms, 1ms, 50 * mb, memory_kind::pinned).kernel(5ms, 5ms);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), IsEmpty());
}

TEST(no_overlap, without_kernels_there_is_nothing_to_hide_behind) {
  trace_builder made;
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 10ms, 1ms, 50 * mb, memory_kind::pinned);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), IsEmpty());
  EXPECT_THAT(shown.result.verdict, HasSubstr("pinned and at the link's rate"));
}

// Pinned uploads of 50 MB beside a kernel, which take 1 ms at the link's rate.
diagnosed beside_a_kernel(nanoseconds time, bytes_t bytes = 50 * mb) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 60ms).on(0, 2);
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 10ms, time, bytes, memory_kind::pinned);
  }
  return diagnose_on_round_machine(made);
}

TEST(slow_pinned_copies, far_below_the_link_s_rate_the_path_is_suspected) {
  const auto shown = beside_a_kernel(4ms);
  EXPECT_THAT(shown.rules(), ElementsAre("slow-pinned-copies"));
  const auto& found = shown.result.findings.front();
  EXPECT_DOUBLE_EQ(saving_ms(found), 18);
  EXPECT_THAT(found.headline, HasSubstr("6 pinned copies reach 12.5 GB/s where about 50.0 GB/s"));
}

TEST(slow_pinned_copies, sixty_percent_of_the_rate_are_the_border) {
  EXPECT_THAT(beside_a_kernel(1660us).rules(), IsEmpty());
  EXPECT_THAT(beside_a_kernel(1670us).rules(), ElementsAre("slow-pinned-copies"));
}

TEST(slow_pinned_copies, below_4_mib_fixed_costs_decide) {
  EXPECT_THAT(beside_a_kernel(4ms, 4 * mib - 1).rules(), IsEmpty());
  EXPECT_THAT(beside_a_kernel(4ms, 4 * mib).rules(), ElementsAre("slow-pinned-copies"));
}

TEST(slow_pinned_copies, copies_that_share_the_link_are_not_slow) {
  trace_builder made;
  made.on(0, 9).kernel(0ms, 60ms);
  for (int step = 0; step < 6; ++step) {
    for (int stream = 0; stream < 4; ++stream) {  // four at once, each at a quarter
      made.on(0, stream).h2d(step * 10ms, 4ms, 50 * mb, memory_kind::pinned);
    }
  }
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), IsEmpty());
}

TEST(slow_pinned_copies, an_unknown_machine_has_no_rate_to_be_below) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 60ms).on(0, 2);
  for (int step = 0; step < 2; ++step) {
    made.h2d(step * 10ms, 9ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_THAT(diagnose_on_unknown_machine(made).rules(), IsEmpty());
}

}  // namespace
}  // namespace berth::test
