// SPDX-License-Identifier: Apache-2.0
// Small copies whose time is the queue in front of them.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(waiting_not_copying, four_bytes_of_133_ms_lie_over_the_kernels_of_their_stream) {
  trace_builder made;
  made.api(trace::gpu_api::hip).kernel(0ms, 69ms).kernel(70ms, 63ms).d2h(0ms, 133005us, 4);
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("waiting-not-copying"));
  const auto& found = shown.result.findings.front();
  EXPECT_EQ(found.severity, diagnose::severity::advice);
  EXPECT_THAT(found.headline, HasSubstr("1 small copy (4 B) seems slow but waits for kernels"));
  EXPECT_THAT(found.headline, HasSubstr("132.0 ms of waiting"));
  EXPECT_DOUBLE_EQ(saving_ms(found), 0);
  EXPECT_THAT(all_fixes(found), HasSubstr("Pinning would save nothing"));
  EXPECT_THAT(all_fixes(found), HasSubstr("hipMemcpyAsync"));
}

TEST(waiting_not_copying, kernels_of_another_stream_prove_no_queue) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 132ms).on(0, 2).d2h(0ms, 133ms, 4);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

TEST(waiting_not_copying, an_unknown_stream_proves_no_queue) {
  trace_builder made;
  made.on(0, std::nullopt).kernel(0ms, 132ms).d2h(0ms, 133ms, 4);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

// loss.item() in every step: the copy's call returns when the step's kernels have run.
trace_builder steps_with_item(bytes_or_unknown bytes = 4) {
  trace_builder made;
  for (int step = 0; step < 5; ++step) {
    const auto begin = step * 20ms;
    made.kernel(begin, 15ms);
    made.d2h(begin + 15ms, 2us, bytes, memory_kind::pinned).called(begin + 1ms, 20us);
    made.synchronised(begin + 1020us, 14ms).range_of_operator(begin + 900us, 15ms, "aten::item");
  }
  return made;
}

TEST(waiting_not_copying, item_waits_in_the_synchronisation_behind_its_call) {
  auto made = steps_with_item();
  made.pytorch();
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("waiting-not-copying"));
  const auto& found = shown.result.findings.front();
  EXPECT_THAT(found.headline, HasSubstr("5 small copies (20 B) seem slow but wait"));
  EXPECT_THAT(found.headline, HasSubstr("70.0 ms of waiting"));
  ASSERT_EQ(found.places.size(), 1U);
  EXPECT_EQ(found.places[0].where, "aten::item");
  EXPECT_THAT(all_fixes(found), HasSubstr(".item()"));
}

TEST(waiting_not_copying, a_blocking_call_waits_by_itself) {
  trace_builder made;
  made.api(trace::gpu_api::cuda);
  for (int step = 0; step < 5; ++step) {
    const auto begin = step * 20ms;
    made.kernel(begin, 15ms).d2h(begin + 15ms, 2us, 4).called(begin + 1ms, 14010us, "cudaMemcpy");
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_THAT(shown.rules(), ElementsAre("waiting-not-copying"));
  EXPECT_THAT(all_fixes(shown.result.findings.front()), HasSubstr("cudaMemcpyAsync"));
}

TEST(waiting_not_copying, work_between_call_and_synchronisation_breaks_the_tie) {
  trace_builder made;
  for (int step = 0; step < 5; ++step) {
    const auto begin = step * 20ms;
    made.kernel(begin, 15ms)
        .d2h(begin + 15ms, 2us, 4, memory_kind::pinned)
        .called(begin + 1ms, 20us);
    made.launch(begin + 1100us, 10us).synchronised(begin + 1200us, 14ms);
  }
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

TEST(waiting_not_copying, a_synchronisation_of_another_thread_is_none_of_its_own) {
  trace_builder made;
  for (int step = 0; step < 5; ++step) {
    const auto begin = step * 20ms;
    made.kernel(begin, 15ms).d2h(begin + 15ms, 2us, 4, memory_kind::pinned);
    made.on_thread("main").called(begin + 1ms, 20us);
    made.on_thread("other").synchronised(begin + 1020us, 14ms);
  }
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

TEST(waiting_not_copying, an_asynchronous_copy_that_nobody_waits_for_is_none) {
  trace_builder made;
  for (int step = 0; step < 5; ++step) {
    const auto begin = step * 20ms;
    made.kernel(begin, 15ms)
        .d2h(begin + 15ms, 2us, 4, memory_kind::pinned)
        .called(begin + 1ms, 20us);
  }
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

TEST(waiting_not_copying, a_copy_that_takes_long_by_itself_is_none) {
  trace_builder made;
  made.kernel(0ms, 20ms).d2h(0ms, 23ms, 4).kernel(23ms, 1ms);  // 3 ms of its own
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

TEST(waiting_not_copying, ten_times_its_own_length_is_the_border) {
  trace_builder below;
  below.kernel(0ms, 9990us).d2h(0ms, 10990us, 4);
  EXPECT_THAT(diagnose_on_round_machine(below).rules(), Not(Contains("waiting-not-copying")));
  trace_builder at;
  at.kernel(0ms, 10ms).d2h(0ms, 11ms, 4);
  EXPECT_THAT(diagnose_on_round_machine(at).rules(), Contains("waiting-not-copying"));
}

TEST(waiting_not_copying, several_copies_behind_one_kernel_wait_once) {
  // Old ROCm stamps copies when they are submitted.
  trace_builder made;
  made.kernel(0ms, 100ms);
  for (int copy = 0; copy < 10; ++copy) {
    made.h2d(copy * 10us, 100ms, 256);
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("waiting-not-copying");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("100.0 ms of waiting"));
}

TEST(waiting_not_copying, unknown_bytes_are_not_small) {
  auto made = steps_with_item(std::nullopt);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

TEST(waiting_not_copying, a_small_share_of_the_span_is_not_worth_a_finding) {
  auto made = steps_with_item();
  made.kernel(100ms, 2000ms);
  EXPECT_THAT(diagnose_on_round_machine(made).rules(), Not(Contains("waiting-not-copying")));
}

}  // namespace
}  // namespace berth::test
