// SPDX-License-Identifier: Apache-2.0
// Totals, places and queueing of a prepared trace.
#include "diagnose/workload.hpp"

#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::workload;

TEST(workload, an_empty_trace_has_zeros_and_no_division_by_them) {
  const auto events = trace_builder().build();
  const workload work(events, nullptr);
  EXPECT_EQ(work.totals().devices, 0U);
  EXPECT_EQ(work.totals().span_ns, 0);
  EXPECT_EQ(work.share_of_span(100), 0.0);
  EXPECT_TRUE(work.copies().empty());
  EXPECT_TRUE(work.kernels_of(0).empty());
}

TEST(workload, busy_time_counts_side_by_side_once_on_a_device_and_adds_over_devices) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 10ms).on(0, 2).kernel(5ms, 10ms).h2d(12ms, 6ms, mb);
  made.on(1, 1).kernel(0ms, 10ms);
  const auto events = made.build();
  const workload work(events, nullptr);
  const auto& totals = work.totals();
  EXPECT_EQ(totals.kernels, 3U);
  EXPECT_EQ(totals.devices, 2U);
  EXPECT_EQ(totals.kernel_busy_ns, (25ms / 1ns));
  EXPECT_EQ(totals.copy_busy_ns, (6ms / 1ns));
  EXPECT_EQ(totals.copy_beside_kernels_ns, (3ms / 1ns));
  EXPECT_EQ(totals.busy_ns, (28ms / 1ns));
  EXPECT_EQ(totals.span_ns, (18ms / 1ns));
}

TEST(workload, fills_are_neither_copies_nor_kernels) {
  trace_builder made;
  made.fill(0ms, 2ms).kernel(5ms, 1ms);
  const auto events = made.build();
  const workload work(events, nullptr);
  const auto& totals = work.totals();
  EXPECT_EQ(totals.fills, 1U);
  EXPECT_EQ(totals.kernel_busy_ns, (1ms / 1ns));
  EXPECT_EQ(totals.copy_busy_ns, 0);
  EXPECT_EQ(totals.busy_ns, (3ms / 1ns));
  EXPECT_EQ(totals.span_ns, (6ms / 1ns));
}

TEST(workload, copies_are_grouped_by_direction_and_kinds_with_unknown_bytes_apart) {
  trace_builder made;
  made.h2d(0ms, 2ms, 10 * mb).h2d(2ms, 3ms, std::nullopt).h2d(5ms, 1ms, mb, memory_kind::pinned);
  const auto events = made.build();
  const workload work(events, nullptr);
  const auto& groups = work.totals().copies;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].source, memory_kind::pageable);  // more time, so first
  EXPECT_EQ(groups[0].count, 2U);
  EXPECT_EQ(groups[0].bytes, 10 * mb);
  EXPECT_EQ(groups[0].without_bytes, 1U);
  EXPECT_EQ(groups[0].time_ns, (5ms / 1ns));
  EXPECT_DOUBLE_EQ(*groups[0].rate(), 5.0);
  EXPECT_EQ(groups[1].source, memory_kind::pinned);
}

TEST(workload, a_group_that_knows_no_bytes_has_no_rate) {
  trace_builder made;
  made.h2d(0ms, 2ms, std::nullopt).d2h(2ms, 0ms, mb);
  const auto events = made.build();
  const workload work(events, nullptr);
  for (const auto& group : work.totals().copies) {
    EXPECT_FALSE(group.rate().has_value());
  }
}

TEST(workload, a_copy_over_kernels_of_its_own_stream_was_queued) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 6ms).on(0, 2).kernel(0ms, 20ms).on(1, 1).kernel(0ms, 20ms);
  made.on(0, 1).h2d(1ms, 9ms, mb);
  const auto events = made.build();
  const workload work(events, nullptr);
  ASSERT_EQ(work.copies().size(), 1U);
  EXPECT_EQ(work.copies()[0].queued_ns, (5ms / 1ns));
  EXPECT_EQ(work.copies()[0].working_ns(), (4ms / 1ns));
}

// The place of one copy whose call is at 10 to 11 ms.
std::string place_of(trace_builder& made) {
  made.h2d(12ms, 1ms, mb).called(10ms, 1ms, "hipMemcpyAsync");
  const auto events = made.build();
  const workload work(events, nullptr);
  return work.describe_place(work.copies()[0]);
}

TEST(workload, the_place_is_the_outermost_operator_and_the_innermost_own_function) {
  trace_builder made;
  made.range_of_python(0ms, 100ms, "train.py(90): main");
  made.range_of_python(1ms, 50ms, "train.py(12): step");
  made.range_of_python(2ms, 40ms, "torch/nn/modules/module.py(1500): _call_impl");
  made.range_of_operator(9ms, 5ms, "aten::to");
  made.range_of_operator(9500us, 3ms, "aten::copy_");
  EXPECT_EQ(place_of(made), "aten::to at train.py(12): step");
}

TEST(workload, ranges_that_have_ended_are_no_place) {
  trace_builder made;
  made.range_of_operator(0ms, 5ms, "aten::mul").range_of_python(6ms, 2ms, "data.py(3): load");
  EXPECT_EQ(place_of(made), "hipMemcpyAsync");
}

TEST(workload, ranges_of_other_threads_are_no_place) {
  trace_builder made;
  made.on_thread("loader").range_of_operator(9ms, 5ms, "aten::stack").on_thread("main");
  EXPECT_EQ(place_of(made), "hipMemcpyAsync");
}

TEST(workload, a_copy_without_a_call_has_an_unknown_place) {
  trace_builder made;
  made.h2d(0ms, 1ms, mb);
  const auto events = made.build();
  const workload work(events, nullptr);
  EXPECT_EQ(work.describe_place(work.copies()[0]), "unknown place");
}

TEST(workload, a_launch_may_be_the_call_of_a_copy_by_kernel) {
  trace_builder made;
  made.h2d(12ms, 1ms, mb).called(10ms, 1ms, "hipLaunchKernel", trace::event_kind::launch_call);
  const auto events = made.build();
  const workload work(events, nullptr);
  EXPECT_NE(work.copies()[0].call, trace::no_row);
}

TEST(workload, a_copy_without_a_time_counts_its_bytes_and_no_time) {
  trace_builder made;
  made.h2d(0ms, 2ms, 10 * mb).h2d(5ms, 0ms, 30 * mb).timed_by(trace::timing::unknown);
  const auto events = made.build();
  const workload work(events, nullptr);
  const auto& group = work.totals().copies.at(0);
  EXPECT_EQ(group.count, 2U);
  EXPECT_EQ(group.bytes, 40 * mb);
  EXPECT_EQ(group.without_time, 1U);
  EXPECT_EQ(group.rate(), 5.0);  // of the one whose time is known
  EXPECT_EQ(work.totals().without_time, 1U);
  EXPECT_FALSE(work.copies()[1].between_host_and_device());
}

TEST(workload, without_device_times_the_span_is_that_of_all_events) {
  trace_builder made;
  made.h2d(10ms, 2ms, mb).timed_by(trace::timing::call).launch(0ms, 1ms).synchronised(30ms, 10ms);
  const auto events = made.build();
  const workload work(events, nullptr);
  EXPECT_FALSE(work.totals().has_device_times());
  EXPECT_EQ(work.totals().span_ns, (40ms / 1ns));
  EXPECT_EQ(work.totals().copy_busy_ns, (2ms / 1ns));
  EXPECT_EQ(work.totals().timed_by_calls, 1U);
  EXPECT_EQ(work.totals().launches, 1U);
}

TEST(workload, one_activity_of_a_device_makes_the_span_the_devices) {
  trace_builder made;
  made.h2d(10ms, 2ms, mb).timed_by(trace::timing::call).kernel(12ms, 1ms).launch(0ms, 1ms);
  const auto events = made.build();
  const workload work(events, nullptr);
  EXPECT_TRUE(work.totals().has_device_times());
  EXPECT_EQ(work.totals().span_ns, (3ms / 1ns));
}

TEST(workload, the_call_s_own_stack_names_the_function) {
  trace_builder made;
  made.h2d(0ms, 1ms, mb)
      .called(0ms, 1ms, "hipMemcpy")
      .from({"hipMemcpy in libamdhip64.so.6", "libtorch_hip.so+0x12", "upload (model.cpp:12)"});
  const auto events = made.build();
  const workload work(events, nullptr);
  EXPECT_EQ(work.describe_place(work.copies()[0]), "hipMemcpy at upload (model.cpp:12)");
}

TEST(workload, zero_durations_are_counted_and_take_no_time) {
  trace_builder made;
  made.h2d(0ms, 0ms, mb).kernel(0ms, 0ms).kernel(1ms, 0ms);
  const auto events = made.build();
  const workload work(events, nullptr);
  const auto& totals = work.totals();
  EXPECT_EQ(totals.kernels, 2U);
  EXPECT_EQ(totals.copies.size(), 1U);
  EXPECT_EQ(totals.busy_ns, 0);
  EXPECT_EQ(totals.span_ns, 0);
}

}  // namespace
}  // namespace berth::test
