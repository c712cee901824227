// SPDX-License-Identifier: Apache-2.0
// Traces of ROCm do not say whether host memory is pageable or pinned.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

trace_builder steps(nanoseconds copy_time, nanoseconds kernel_time,
                    bytes_or_unknown bytes = 50 * mb) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  for (int step = 0; step < 6; ++step) {
    made.h2d(step * 20ms, copy_time, bytes, memory_kind::unknown);
    made.kernel(step * 20ms + copy_time, kernel_time);
  }
  return made;
}

TEST(unknown_memory_kind, far_below_the_pinned_rate_is_probably_pageable) {
  auto made = steps(5ms, 5ms);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("unknown-memory-kind"));
  const auto& found = *shown.find("unknown-memory-kind");
  EXPECT_EQ(found.severity, severity::fault);
  EXPECT_DOUBLE_EQ(saving_ms(found), 24);
  EXPECT_THAT(found.headline, HasSubstr("probably pageable (the trace does not say)"));
  EXPECT_THAT(found.headline, HasSubstr("10.0 GB/s"));
  EXPECT_THAT(found.headline, HasSubstr("50.0 GB/s"));
  EXPECT_THAT(all_fixes(found), HasSubstr("hipPointerGetAttributes"));
  EXPECT_THAT(all_fixes(found),
              HasSubstr("If pageable: Allocate the host buffer with hipHostMalloc"));
}

TEST(unknown_memory_kind, below_half_of_the_kernel_time_it_is_advice) {
  auto made = steps(5ms, 12ms);
  EXPECT_EQ(diagnose_on_round_machine(made).find("unknown-memory-kind")->severity,
            severity::advice);
}

TEST(unknown_memory_kind, sixty_percent_of_the_pinned_rate_are_the_border) {
  auto fast = steps(1660us, 1ms);
  EXPECT_EQ(diagnose_on_round_machine(fast).find("unknown-memory-kind"), nullptr);
  auto slow = steps(1670us, 1ms);
  EXPECT_NE(diagnose_on_round_machine(slow).find("unknown-memory-kind"), nullptr);
}

TEST(unknown_memory_kind, at_the_link_s_rate_all_is_well) {
  auto made = steps(1ms, 19ms);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), testing::Not(testing::Contains("unknown-memory-kind")));
}

TEST(unknown_memory_kind, on_an_unknown_machine_only_the_cost_is_said) {
  auto made = steps(5ms, 5ms);
  const auto shown = diagnose_on_unknown_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("unknown-memory-kind"));
  const auto& found = *shown.find("unknown-memory-kind");
  EXPECT_EQ(found.severity, severity::advice);
  EXPECT_FALSE(found.saving.has_value());
  EXPECT_THAT(found.headline, HasSubstr("nor what this machine's link gives"));
}

TEST(unknown_memory_kind, unknown_bytes_too_leave_only_the_cost) {
  auto made = steps(5ms, 5ms, std::nullopt);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("unknown-memory-kind"));
  EXPECT_FALSE(shown.find("unknown-memory-kind")->saving.has_value());
  EXPECT_THAT(shown.find("unknown-memory-kind")->headline, HasSubstr("nor how many bytes"));
}

TEST(unknown_memory_kind, a_small_cost_on_an_unknown_machine_is_none) {
  auto made = steps(2ms, 10ms);
  const auto shown = diagnose_on_unknown_machine(made);
  EXPECT_THAT(shown.rules(), IsEmpty());
  EXPECT_THAT(shown.result.verdict, HasSubstr("nothing in this trace says that they could take"));
}

TEST(unknown_memory_kind, one_upload_before_long_work_is_none) {
  trace_builder made;
  made.h2d(0ms, 5ms, 50 * mb, memory_kind::unknown).kernel(5ms, 1000ms);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), IsEmpty());
}

TEST(unknown_memory_kind, tiny_copies_are_none) {
  auto made = steps(5ms, 5ms, 64 * kib);
  EXPECT_EQ(diagnose_on_round_machine(made).find("unknown-memory-kind"), nullptr);
}

}  // namespace
}  // namespace berth::test
