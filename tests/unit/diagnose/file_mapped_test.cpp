// SPDX-License-Identifier: Apache-2.0
// Copies from mapped files, and pageable copies that are none.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;
using trace::host_pages;

// Uploads of 50 MB that take 10 ms each: 5 GB/s; pinned they take 1 ms.
diagnosed uploads(host_pages pages, trace::gpu_api api = trace::gpu_api::hip) {
  trace_builder made;
  made.api(api);
  for (int step = 0; step < 5; ++step) {
    made.kernel(step * 20ms, 10ms).h2d(step * 20ms + 10ms, 10ms, 50 * mb).pages(pages);
  }
  return diagnose_on_round_machine(made);
}

TEST(file_mapped, is_a_finding_of_its_own_with_its_own_fix) {
  const auto shown = uploads(host_pages::of_file);
  const auto* const found = shown.find("file-mapped-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_NEAR(saving_ms(*found), 5 * (10 - 1 / 0.45), 0.01);
  EXPECT_EQ(found->saving->bound, diagnose::bound::at_most);
  EXPECT_THAT(found->headline, HasSubstr("5 copies straight from a mapped file take 50.0 ms"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("Do not hipHostRegister the mapping"));
  EXPECT_EQ(shown.find("pageable-copies"), nullptr);
}

TEST(file_mapped, other_pageable_copies_stay_what_they_are) {
  for (const auto pages : {host_pages::unknown, host_pages::resident}) {
    const auto shown = uploads(pages);
    EXPECT_EQ(shown.find("file-mapped-copies"), nullptr);
    EXPECT_NE(shown.find("pageable-copies"), nullptr);
  }
}

TEST(file_mapped, a_trace_may_have_both_and_counts_each_copy_once) {
  trace_builder made;
  for (int step = 0; step < 5; ++step) {
    made.kernel(step * 40ms, 10ms).h2d(step * 40ms + 10ms, 10ms, 50 * mb);
    made.h2d(step * 40ms + 20ms, 10ms, 50 * mb).pages(host_pages::of_file);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("file-mapped-copies"), nullptr);
  ASSERT_NE(shown.find("pageable-copies"), nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*shown.find("pageable-copies")), 5 * 9);
  EXPECT_NEAR(milliseconds_of(shown.result.saving_ns), 5 * 9 + 5 * (10 - 1 / 0.45), 0.01);
}

TEST(file_mapped, a_model_that_is_loaded_once_is_worth_little) {
  trace_builder made;
  made.h2d(0ms, 10ms, 50 * mb).pages(host_pages::of_file).kernel(10ms, 1000ms);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(shown.find("file-mapped-copies"), nullptr);
  EXPECT_NE(shown.find("one-off-copies"), nullptr);
}

TEST(file_mapped, downloads_into_a_file_are_told_to_write_it) {
  trace_builder made;
  made.api(trace::gpu_api::cuda);
  for (int step = 0; step < 5; ++step) {
    made.kernel(step * 20ms, 10ms).d2h(step * 20ms + 10ms, 10ms, 50 * mb);
    made.pages(host_pages::of_file);
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("file-mapped-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("straight into a mapped file"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("write()"));
}

TEST(file_mapped, without_an_expected_rate_there_is_no_saving) {
  trace_builder made;
  for (int step = 0; step < 5; ++step) {
    made.kernel(step * 20ms, 10ms).h2d(step * 20ms + 10ms, 10ms, 50 * mb);
    made.pages(host_pages::of_file);
  }
  const auto shown = diagnose_on_unknown_machine(made);
  ASSERT_NE(shown.find("file-mapped-copies"), nullptr);
  EXPECT_FALSE(shown.find("file-mapped-copies")->saving.has_value());
}

}  // namespace
}  // namespace berth::test
