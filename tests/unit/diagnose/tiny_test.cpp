// SPDX-License-Identifier: Apache-2.0
// Many tiny copies: when they could be one, and what that would save.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;

struct burst {
  int copies = 100;
  bytes_t bytes = 4 * kib;
  memory_kind kind = memory_kind::pageable;
  std::string_view range = {};  // the operator around each
};

// A copy each 30 us: 10 us in the call, 10 us in the wait behind it, 1 us on the device.
trace_builder& add(trace_builder& made, nanoseconds at, const burst& how) {
  for (int copy = 0; copy < how.copies; ++copy) {
    const auto begin = at + copy * 30us;
    made.h2d(begin + 8us, 1us, how.bytes, how.kind)
        .called(begin, 10us)
        .synchronised(begin + 10us, 10us);
    if (!how.range.empty()) {
      made.range_of_operator(begin - 2us, 28us, how.range);
    }
  }
  return made;
}

diagnosed one_burst(const burst& how) {
  trace_builder made;
  add(made.api(trace::gpu_api::hip), 1ms, how).kernel(5ms, 100us);
  return diagnose_on_round_machine(made);
}

TEST(tiny_copies, a_burst_costs_calls_and_waits_and_could_be_one_copy) {
  const auto shown = one_burst({});
  const auto* const found = shown.find("tiny-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  // 100 x 20 us; batched one of them, and 400 KiB packed at 10 GB/s and copied at 10 GB/s.
  EXPECT_NEAR(saving_ms(*found), 2.0 - 0.02 - 2 * 0.04096, 1e-5);
  EXPECT_THAT(found->headline, HasSubstr("100 copies of 4 KiB on average cost 2.00 ms"));
  EXPECT_THAT(found->headline, HasSubstr("20.0 us each"));
  EXPECT_THAT(found->headline, HasSubstr("as 1 batched copy they would cost"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("one hipMemcpyAsync"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("Pinning is not the cure"));
}

TEST(tiny_copies, pinned_ones_cost_the_same) {
  EXPECT_NE(one_burst({.kind = memory_kind::pinned}).find("tiny-copies"), nullptr);
  EXPECT_NE(one_burst({.kind = memory_kind::unknown}).find("tiny-copies"), nullptr);
}

TEST(tiny_copies, no_other_rule_blames_their_memory) {
  EXPECT_EQ(one_burst({}).result.findings.size(), 1U);
}

TEST(tiny_copies, an_operator_that_only_copies_is_part_of_the_cost) {
  const auto shown = one_burst({.range = "aten::to"});
  ASSERT_NE(shown.find("tiny-copies"), nullptr);
  EXPECT_THAT(shown.find("tiny-copies")->headline, HasSubstr("cost 2.80 ms"));
}

TEST(tiny_copies, an_operator_that_does_more_is_not) {
  const auto shown = one_burst({.range = "aten::embedding"});
  ASSERT_NE(shown.find("tiny-copies"), nullptr);
  EXPECT_THAT(shown.find("tiny-copies")->headline, HasSubstr("cost 2.00 ms"));
}

TEST(tiny_copies, an_operator_around_all_of_them_is_no_cost_of_each) {
  trace_builder made;
  add(made, 1ms, {}).range_of_operator(1ms - 10us, 3020us, "aten::to").kernel(5ms, 100us);
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("tiny-copies"), nullptr);
  EXPECT_THAT(shown.find("tiny-copies")->headline, HasSubstr("cost 2.00 ms"));
  EXPECT_LE(saving_ms(*shown.find("tiny-copies")), 2.0);
}

TEST(tiny_copies, host_time_beside_kernels_is_not_waited_for) {
  trace_builder made;
  add(made, 1ms, {}).on(0, 8).kernel(1ms, 3ms);
  EXPECT_EQ(diagnose_on_round_machine(made).find("tiny-copies"), nullptr);
}

TEST(tiny_copies, eight_are_a_burst) {
  trace_builder seven;
  add(seven, 1ms, {.copies = 7});
  EXPECT_EQ(diagnose_on_round_machine(seven).find("tiny-copies"), nullptr);
  trace_builder eight;
  add(eight, 1ms, {.copies = 8});
  EXPECT_NE(diagnose_on_round_machine(eight).find("tiny-copies"), nullptr);
}

TEST(tiny_copies, kernels_between_make_each_copy_one_that_cannot_wait) {
  trace_builder made;
  for (int step = 0; step < 100; ++step) {
    add(made, step * 50us, {.copies = 1}).kernel(step * 50us + 20us, 5us);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("tiny-copies"), nullptr);
}

TEST(tiny_copies, directions_in_turns_are_no_burst) {
  trace_builder made;
  for (int step = 0; step < 50; ++step) {
    made.h2d(step * 60us, 1us, 4096).called(step * 60us, 10us);
    made.d2h(step * 60us + 30us, 1us, 4096).called(step * 60us + 30us, 10us);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("tiny-copies"), nullptr);
}

TEST(tiny_copies, bursts_are_counted_and_batched_each) {
  trace_builder made;
  for (int step = 0; step < 3; ++step) {
    add(made, 1ms + step * 5ms, {}).kernel(4ms + step * 5ms + 500us, 100us);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("tiny-copies"), nullptr);
  EXPECT_THAT(shown.find("tiny-copies")->headline, HasSubstr("as 3 batched copies"));
}

TEST(tiny_copies, larger_and_unknown_sizes_are_none) {
  EXPECT_NE(one_burst({.bytes = 64 * kib}).find("tiny-copies"), nullptr);
  EXPECT_EQ(one_burst({.bytes = 64 * kib + 1}).find("tiny-copies"), nullptr);
  trace_builder made;
  for (int copy = 0; copy < 100; ++copy) {
    made.h2d(copy * 30us, 1us, std::nullopt).called(copy * 30us, 20us);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("tiny-copies"), nullptr);
}

TEST(tiny_copies, without_calls_only_device_time_counts) {
  trace_builder made;
  for (int copy = 0; copy < 100; ++copy) {
    made.h2d(copy * 10us, 5us, 4 * kib);
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("tiny-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(saving_ms(*found), 0.5 - 0.005 - 2 * 0.04096, 1e-5);
  EXPECT_LE(found->saving->time_ns, shown.result.totals.copy_busy_ns);
}

TEST(tiny_copies, below_two_percent_of_the_span_they_are_none) {
  trace_builder made;
  add(made, 1ms, {}).kernel(5ms, 100ms);
  EXPECT_EQ(diagnose_on_round_machine(made).find("tiny-copies"), nullptr);
  trace_builder more;
  add(more, 1ms, {}).kernel(5ms, 60ms);
  ASSERT_EQ(diagnose_on_round_machine(more).rules().size(), 1U);
}

TEST(tiny_copies, on_an_unknown_machine_the_burst_is_still_found) {
  trace_builder made;
  add(made.api(trace::gpu_api::cuda), 1ms, {});
  const auto shown = diagnose_on_unknown_machine(made);
  ASSERT_NE(shown.find("tiny-copies"), nullptr);
  EXPECT_THAT(all_fixes(*shown.find("tiny-copies")), HasSubstr("one cudaMemcpyAsync"));
}

}  // namespace
}  // namespace berth::test
