// SPDX-License-Identifier: Apache-2.0
// Copies that berth's copy engine made: before and after, and no fault of theirs any more.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using trace::host_pages;

// 500 MB in 12.5 ms: 40 GB/s; the runtime takes 50 ms for them.
trace_builder fixed_uploads() {
  trace_builder made;
  for (int step = 0; step < 4; ++step) {
    made.kernel(step * 20ms, 5ms).h2d(step * 20ms + 5ms, 12500us, 500 * mb).fixed();
  }
  return made;
}

TEST(fixed_copies, say_what_was_measured_and_what_is_estimated) {
  auto made = fixed_uploads();
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("fixed-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::note);
  EXPECT_THAT(found->headline, HasSubstr("4 copies to the GPU went through berth's copy engine: "
                                         "50.0 ms, 40.0 GB/s (measured)"));
  EXPECT_THAT(found->headline, HasSubstr("by the runtime about 200.0 ms, 10.0 GB/s (estimated)"));
  EXPECT_FALSE(found->saving);
  EXPECT_EQ(found->lost_ns, 0);
}

TEST(fixed_copies, are_no_pageable_copies_any_more) {
  auto made = fixed_uploads();
  EXPECT_EQ(diagnose_on_round_machine(made).find("pageable-copies"), nullptr);
  trace_builder once;
  once.h2d(0ms, 13ms, 500 * mb).fixed().kernel(13ms, 1000ms);
  EXPECT_EQ(diagnose_on_round_machine(once).find("one-off-copies"), nullptr);
}

TEST(fixed_copies, have_a_finding_for_each_direction) {
  trace_builder made;
  made.kernel(0ms, 5ms).h2d(5ms, 1ms, 40 * mb).fixed().d2h(6ms, 2ms, 40 * mb).fixed();
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(std::ranges::count(shown.rules(), "fixed-copies"), 2);
}

TEST(fixed_copies, of_an_unknown_machine_have_no_estimate) {
  auto made = fixed_uploads();
  const auto shown = diagnose_on_unknown_machine(made);
  ASSERT_NE(shown.find("fixed-copies"), nullptr);
  EXPECT_THAT(shown.find("fixed-copies")->headline, HasSubstr("is not known of this machine"));
  EXPECT_THAT(shown.find("fixed-copies")->headline, Not(HasSubstr("estimated")));
}

TEST(fixed_copies, into_fresh_pages_are_compared_with_fresh_pages) {
  trace_builder made;
  made.gpu("NVIDIA H200").kernel(0ms, 5ms);
  made.d2h(5ms, 2ms, 40 * mb).fixed().pages(host_pages::fresh);
  diagnosed fresh{made.build(), {}};
  fresh.result = diagnose::diagnose(fresh.events);
  ASSERT_NE(fresh.find("fixed-copies"), nullptr);
  const auto& evidence = fresh.find("fixed-copies")->evidence;
  // 1.3 to 1.6 GB/s there (docs/hardware.md), where resident pages give several times that.
  EXPECT_GT(evidence.back().value, 20e6);
  EXPECT_EQ(fresh.find("fresh-pages"), nullptr);
}

TEST(fixed_copies, are_silent_without_any) {
  trace_builder made;
  made.kernel(0ms, 5ms).h2d(5ms, 1ms, 40 * mb);
  EXPECT_EQ(diagnose_on_round_machine(made).find("fixed-copies"), nullptr);
}

}  // namespace
}  // namespace berth::test
