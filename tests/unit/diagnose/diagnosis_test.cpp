// SPDX-License-Identifier: Apache-2.0
// The verdict, the order of findings, and savings together.
#include "diagnose/rule.hpp"
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(diagnosis, an_empty_trace_says_so) {
  trace_builder made;
  const auto shown = diagnose_on_unknown_machine(made);
  EXPECT_EQ(shown.result.verdict, "No GPU activity in this trace: nothing can be said of copies.");
  EXPECT_THAT(shown.rules(), IsEmpty());
  EXPECT_EQ(shown.result.saving_ns, 0);
}

TEST(diagnosis, kernels_alone_have_no_copies_to_gain_from) {
  trace_builder made;
  made.kernel(0ms, 1ms).kernel(50ms, 1ms);
  EXPECT_EQ(diagnose_on_round_machine(made).result.verdict,
            "No copies in this trace: nothing to gain here.");
}

TEST(diagnosis, copies_inside_the_gpu_are_no_copies_between_host_and_gpu) {
  trace_builder made;
  made.kernel(0ms, 10ms).copy(10ms, 10ms, mb, direction::device_to_device, memory_kind::device,
                              memory_kind::device);
  EXPECT_EQ(diagnose_on_round_machine(made).result.verdict,
            "No copies between host and GPU in this trace: nothing to gain here.");
}

TEST(diagnosis, copies_of_unknown_direction_are_not_called_harmless) {
  trace_builder made;
  made.kernel(0ms, 10ms).copy(10ms, 10ms, mb, direction::unknown, memory_kind::unknown,
                              memory_kind::unknown);
  EXPECT_THAT(diagnose_on_round_machine(made).result.verdict,
              HasSubstr("does not say which way its copies go"));
}

TEST(diagnosis, copies_alone_are_judged_by_their_rate) {
  trace_builder made;
  made.h2d(0ms, 1ms, 50 * mb, memory_kind::pinned).h2d(1ms, 1ms, 50 * mb, memory_kind::pinned);
  EXPECT_EQ(diagnose_on_round_machine(made).result.verdict,
            "Copies are pinned and at the link's rate, and take 100 % of the span: nothing to "
            "gain.");
}

TEST(diagnosis, a_gpu_that_idles_for_other_reasons_is_told_so) {
  trace_builder made;
  for (int step = 0; step < 10; ++step) {
    made.h2d(step * 10ms, 100us, 4 * mb, memory_kind::pinned).kernel(step * 10ms + 1ms, 1ms);
  }
  EXPECT_THAT(diagnose_on_round_machine(made).result.verdict,
              HasSubstr("The GPU idles 88 % of the span, but not in copies."));
}

TEST(diagnosis, queueing_does_not_spoil_the_link_s_rate) {
  trace_builder made;
  for (int step = 0; step < 4; ++step) {
    made.kernel(step * 50ms, 48ms).h2d(step * 50ms, 49ms, 50 * mb, memory_kind::pinned);
  }
  EXPECT_THAT(diagnose_on_round_machine(made).result.verdict,
              HasSubstr("pinned and at the link's rate"));
}

TEST(diagnosis, zero_durations_give_no_findings_and_no_nonsense) {
  trace_builder made;
  for (int step = 0; step < 20; ++step) {
    made.h2d(step * 1ms, 0ms, 50 * mb).kernel(step * 1ms, 0ms).d2h(step * 1ms, 0ms, 4);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(shown.result.saving_ns, 0);
  EXPECT_THAT(shown.result.verdict, Not(HasSubstr("pinned")));
  EXPECT_THAT(shown.result.verdict, Not(HasSubstr("nan")));
  EXPECT_THAT(shown.result.verdict, Not(HasSubstr("inf")));
}

// Ping-pong in pageable memory with fresh destinations: three findings about the same copies.
trace_builder everything() {
  trace_builder made;
  for (int step = 0; step < 8; ++step) {
    const auto begin = step * 100ms;
    made.h2d(begin, 5ms, 50 * mb).kernel(begin + 5ms, 10ms).d2h(begin + 15ms, 50ms, 50 * mb);
  }
  return made;
}

TEST(diagnosis, savings_of_the_same_copies_count_once) {
  auto made = everything();
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(shown.result.findings.size(), 3U);
  std::int64_t sum = 0;
  for (const auto& one : shown.result.findings) {
    sum += one.saving->time_ns;
    EXPECT_LE(one.saving->time_ns, shown.result.saving_ns);
  }
  EXPECT_LT(shown.result.saving_ns, sum);
  EXPECT_LE(shown.result.saving_ns, shown.result.totals.copy_busy_ns);
  // Ping-pong takes seven downloads and seven uploads away; pinning helps what remains.
  EXPECT_DOUBLE_EQ(milliseconds_of(shown.result.saving_ns), 7 * 55 + (5 - 1) + (50 - 1));
}

TEST(diagnosis, faults_come_first_and_then_the_largest_saving) {
  auto made = everything();
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), testing::ElementsAre("pageable-copies", "ping-pong", "fresh-pages"));
  EXPECT_EQ(shown.result.worst, severity::fault);
  EXPECT_THAT(shown.result.verdict, HasSubstr("2 more findings below"));
}

TEST(diagnosis, a_note_does_not_make_the_verdict) {
  trace_builder made;
  made.h2d(0ms, 5ms, 50 * mb).kernel(5ms, 1000ms);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_EQ(shown.result.worst, severity::note);
  EXPECT_THAT(shown.result.verdict, HasSubstr("nothing worth changing"));
}

TEST(diagnosis, python_lines_are_asked_for_where_they_are_missing) {
  auto without = everything();
  without.pytorch();
  EXPECT_THAT(diagnose_on_round_machine(without).result.notes,
              testing::Contains(HasSubstr("with_stack=True")));
  auto other = everything();
  EXPECT_THAT(diagnose_on_round_machine(other).result.notes, IsEmpty());

  trace_builder with;
  with.pytorch().range_of_python(0ms, 100ms, "train.py(1): main").kernel(0ms, 5ms);
  for (int step = 1; step < 5; ++step) {
    with.h2d(step * 10ms, 5ms, 50 * mb).called(step * 10ms, 5ms);
  }
  EXPECT_THAT(diagnose_on_round_machine(with).result.notes, IsEmpty());
}

TEST(rules, ids_are_unique_and_found_by_name) {
  for (const auto& one : diagnose::rules()) {
    EXPECT_EQ(diagnose::find_rule(one.id), &one);
    EXPECT_THAT(std::string(one.id), testing::MatchesRegex("[a-z]+(-[a-z]+)*"));
    EXPECT_FALSE(one.title.empty());
  }
  EXPECT_EQ(diagnose::find_rule("no-such-rule"), nullptr);
}

}  // namespace
}  // namespace berth::test
