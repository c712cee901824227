// SPDX-License-Identifier: Apache-2.0
// Downloads that are far slower than pageable memory explains.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Downloads of 50 MB, which take 5 ms into resident pageable memory.
diagnosed downloads(nanoseconds time, memory_kind kind = memory_kind::pageable,
                    bytes_t bytes = 50 * mb) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  for (int step = 0; step < 4; ++step) {
    made.kernel(step * 100ms, 20ms).d2h(step * 100ms + 20ms, time, bytes, kind);
  }
  return diagnose_on_round_machine(made);
}

TEST(fresh_pages, a_tenth_of_the_pageable_rate_is_a_suspicion) {
  const auto shown = downloads(50ms);
  const auto* const found = shown.find("fresh-pages");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::advice);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 4 * (50 - 5));
  EXPECT_THAT(found->headline, HasSubstr("1.00 GB/s"));
  EXPECT_THAT(found->headline, HasSubstr("10.0 GB/s"));
  EXPECT_THAT(found->headline, HasSubstr("probably"));
  EXPECT_THAT(found->saving->basis, HasSubstr("suspicion"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("hipHostMalloc"));
}

TEST(fresh_pages, resident_pageable_memory_is_not_fresh) {
  EXPECT_EQ(downloads(5ms).find("fresh-pages"), nullptr);
  EXPECT_EQ(downloads(10ms).find("fresh-pages"), nullptr);
}

TEST(fresh_pages, the_border_is_two_fifths_of_the_pageable_rate) {
  EXPECT_EQ(downloads(12500us).find("fresh-pages"), nullptr);
  EXPECT_NE(downloads(12501us).find("fresh-pages"), nullptr);
}

TEST(fresh_pages, pinned_memory_and_small_copies_are_no_matter_of_this_rule) {
  EXPECT_EQ(downloads(50ms, memory_kind::pinned).find("fresh-pages"), nullptr);
  EXPECT_EQ(downloads(50ms, memory_kind::unknown).find("fresh-pages"), nullptr);
  EXPECT_EQ(downloads(50ms, memory_kind::pageable, mib - 1).find("fresh-pages"), nullptr);
  EXPECT_NE(downloads(50ms, memory_kind::pageable, mib).find("fresh-pages"), nullptr);
}

TEST(fresh_pages, uploads_are_none) {
  trace_builder made;
  made.kernel(0ms, 20ms);
  for (int step = 0; step < 4; ++step) {
    made.h2d(20ms + step * 50ms, 50ms, 50 * mb);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("fresh-pages"), nullptr);
}

TEST(fresh_pages, without_an_expected_rate_nothing_is_suspected) {
  trace_builder made;
  for (int step = 0; step < 4; ++step) {
    made.kernel(step * 100ms, 20ms).d2h(step * 100ms + 20ms, 50ms, 50 * mb);
  }
  EXPECT_EQ(diagnose_on_unknown_machine(made).find("fresh-pages"), nullptr);
}

// Downloads of 50 MB whose pages the recorder has looked at.
diagnosed recorded(nanoseconds time, trace::host_pages pages) {
  trace_builder made;
  for (int step = 0; step < 4; ++step) {
    made.kernel(step * 100ms, 20ms).d2h(step * 100ms + 20ms, time, 50 * mb).pages(pages);
  }
  return diagnose_on_round_machine(made);
}

TEST(fresh_pages, what_the_recorder_saw_is_no_suspicion) {
  const auto shown = recorded(50ms, trace::host_pages::fresh);
  const auto* const found = shown.find("fresh-pages");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 4 * (50 - 5));
  EXPECT_THAT(found->headline, HasSubstr("were never touched before"));
  EXPECT_THAT(found->headline, testing::Not(HasSubstr("probably")));
  EXPECT_THAT(found->saving->basis, testing::Not(HasSubstr("suspicion")));
}

TEST(fresh_pages, known_fresh_pages_count_also_where_the_rate_alone_would_not_tell) {
  EXPECT_NE(recorded(10ms, trace::host_pages::fresh).find("fresh-pages"), nullptr);
  // But what costs nothing is no finding.
  EXPECT_EQ(recorded(5ms, trace::host_pages::fresh).find("fresh-pages"), nullptr);
}

TEST(fresh_pages, known_resident_pages_are_not_suspected_however_slow) {
  EXPECT_EQ(recorded(50ms, trace::host_pages::resident).find("fresh-pages"), nullptr);
  EXPECT_EQ(recorded(50ms, trace::host_pages::of_file).find("fresh-pages"), nullptr);
}

TEST(fresh_pages, known_fresh_pages_need_no_expected_rate_but_then_have_no_saving) {
  trace_builder made;
  for (int step = 0; step < 4; ++step) {
    made.kernel(step * 100ms, 20ms).d2h(step * 100ms + 20ms, 50ms, 50 * mb);
    made.pages(trace::host_pages::fresh);
  }
  const auto shown = diagnose_on_unknown_machine(made);
  ASSERT_NE(shown.find("fresh-pages"), nullptr);
  EXPECT_FALSE(shown.find("fresh-pages")->saving.has_value());
}

TEST(fresh_pages, its_saving_and_that_of_pinning_are_counted_once) {
  const auto shown = downloads(50ms);
  ASSERT_NE(shown.find("pageable-copies"), nullptr);
  EXPECT_DOUBLE_EQ(milliseconds_of(shown.result.saving_ns), 4 * (50 - 1));
}

}  // namespace
}  // namespace berth::test
