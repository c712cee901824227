// SPDX-License-Identifier: Apache-2.0
// Symptom 1, and the uploads that look like it but happen once.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Steps of an upload of 50 MB and a kernel; 10 ms each.
trace_builder steps(int count, nanoseconds copy_time, nanoseconds kernel_time, memory_kind kind,
                    bytes_or_unknown bytes = 50 * mb) {
  trace_builder made;
  for (int step = 0; step < count; ++step) {
    const auto begin = step * 10ms;
    made.h2d(begin, copy_time, bytes, kind).kernel(begin + copy_time, kernel_time);
  }
  return made;
}

TEST(pageable_copies, large_uploads_in_every_step_are_a_fault_with_their_saving) {
  auto made = steps(6, 5ms, 5ms, memory_kind::pageable);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 24);  // 6 x (5 - 1)
  EXPECT_DOUBLE_EQ(milliseconds_of(found->lost_ns), 24);
  EXPECT_THAT(found->headline, HasSubstr("30.0 ms, 100 % of kernel time"));
  EXPECT_THAT(found->headline, HasSubstr("6.00 ms"));
  EXPECT_THAT(shown.result.verdict, HasSubstr("would save about 24.0 ms of 60.0 ms"));
}

TEST(pageable_copies, pinned_and_managed_memory_is_no_matter_of_this_rule) {
  for (const auto kind :
       {memory_kind::pinned, memory_kind::registered, memory_kind::managed, memory_kind::unknown}) {
    auto made = steps(6, 5ms, 5ms, kind);
    EXPECT_EQ(diagnose_on_round_machine(made).find("pageable-copies"), nullptr) << to_string(kind);
  }
}

TEST(pageable_copies, half_of_the_kernel_time_is_not_yet_a_fault) {
  auto half = steps(6, 3ms, 6ms, memory_kind::pageable);
  const auto at_half = diagnose_on_round_machine(half);
  ASSERT_NE(at_half.find("pageable-copies"), nullptr);
  EXPECT_EQ(at_half.find("pageable-copies")->severity, severity::advice);

  auto more = steps(6, 3ms, 6ms - 100us, memory_kind::pageable);
  EXPECT_EQ(diagnose_on_round_machine(more).find("pageable-copies")->severity, severity::fault);
}

TEST(pageable_copies, what_would_save_less_than_2_percent_of_the_span_is_not_worth_a_finding) {
  // Six uploads of 1 MB: 0.1 ms now, 0.02 ms pinned, in steps of 10 ms or 1 ms.
  auto rare = steps(6, 100us, 9800us, memory_kind::pageable, mb);
  EXPECT_TRUE(diagnose_on_round_machine(rare).rules().empty());
  trace_builder often;
  for (int step = 0; step < 6; ++step) {
    often.h2d(step * 1ms, 100us, mb).kernel(step * 1ms + 100us, 900us);
  }
  EXPECT_THAT(diagnose_on_round_machine(often).rules(), ElementsAre("pageable-copies"));
}

TEST(pageable_copies, tiny_ones_are_left_to_other_rules) {
  auto tiny = steps(6, 5ms, 5ms, memory_kind::pageable, 64 * kib);
  EXPECT_EQ(diagnose_on_round_machine(tiny).find("pageable-copies"), nullptr);
  auto larger = steps(6, 5ms, 5ms, memory_kind::pageable, 64 * kib + 1);
  EXPECT_NE(diagnose_on_round_machine(larger).find("pageable-copies"), nullptr);
}

TEST(pageable_copies, frameworks_are_advised_in_their_own_terms) {
  const auto fix_for = [](std::string framework) {
    auto made = steps(6, 5ms, 5ms, memory_kind::pageable);
    made.api(trace::gpu_api::cuda).framework(std::move(framework));
    return all_fixes(*diagnose_on_round_machine(made).find("pageable-copies"));
  };
  EXPECT_THAT(fix_for("CuPy"), HasSubstr("cupyx.empty_pinned"));
  EXPECT_THAT(fix_for("JAX"), HasSubstr("pinned_host"));
  EXPECT_THAT(fix_for("PyTorch"), HasSubstr("DataLoader(pin_memory=True)"));
  EXPECT_THAT(fix_for(""), HasSubstr("cudaMallocHost"));
}

// What comes later may make all before it look like the beginning.
TEST(pageable_copies, inputs_that_replace_each_other_are_no_initial_uploads) {
  const auto shown_with = [](std::uint64_t stride) {
    trace_builder made;
    for (std::uint64_t step = 0; step < 6; ++step) {
      made.h2d(step * 6ms, 5ms, 50 * mb).device_address(0x1000 + step * stride);
      made.kernel(step * 6ms + 5ms, 10us);
    }
    made.kernel(100ms, 500ms);
    return diagnose_on_round_machine(made);
  };
  const auto replaced = shown_with(0);
  EXPECT_NE(replaced.find("pageable-copies"), nullptr);
  EXPECT_EQ(replaced.find("one-off-copies"), nullptr);
  const auto loaded = shown_with(50 * mb);
  EXPECT_EQ(loaded.find("pageable-copies"), nullptr);
  EXPECT_NE(loaded.find("one-off-copies"), nullptr);
}

TEST(pageable_copies, unknown_machine_means_unknown_saving) {
  auto made = steps(6, 5ms, 5ms, memory_kind::pageable);
  const auto shown = diagnose_on_unknown_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_FALSE(found->saving.has_value());
  EXPECT_TRUE(found->gains.empty());
  EXPECT_THAT(found->headline, Not(HasSubstr("pinned they")));
  EXPECT_EQ(shown.result.saving_ns, 0);
}

TEST(pageable_copies, unknown_bytes_are_neither_zero_nor_a_rate) {
  auto made = steps(6, 5ms, 5ms, memory_kind::pageable, std::nullopt);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->saving.has_value());
  for (const auto& one : found->evidence) {
    EXPECT_NE(one.name, "bytes");
    EXPECT_NE(one.name, "rate reached");
  }
  ASSERT_EQ(found->places.size(), 1U);
  EXPECT_FALSE(found->places[0].bytes.has_value());
}

TEST(pageable_copies, the_rate_is_that_of_the_copies_that_know_their_bytes) {
  auto made = steps(6, 5ms, 5ms, memory_kind::pageable);
  made.h2d(60ms, 5ms, std::nullopt);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  const auto rate =
      std::find_if(found->evidence.begin(), found->evidence.end(),
                   [](const diagnose::measure& one) { return one.name == "rate reached"; });
  ASSERT_NE(rate, found->evidence.end());
  EXPECT_DOUBLE_EQ(rate->value, 10.0);
}

TEST(pageable_copies, without_kernels_the_comparison_is_left_out) {
  trace_builder made;
  made.h2d(0ms, 5ms, 50 * mb).h2d(5ms, 5ms, 50 * mb);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("10.0 ms, without any kernel"));
  EXPECT_DOUBLE_EQ(saving_ms(*found), 8);
}

TEST(pageable_copies, time_in_the_queue_is_not_the_memory_s_fault) {
  // Stamped when submitted: 45 ms, of which kernels of the same stream take 40.
  trace_builder made;
  made.kernel(0ms, 40ms).h2d(0ms, 45ms, 50 * mb).kernel(45ms, 40ms).h2d(45ms, 45ms, 50 * mb);
  made.kernel(90ms, 10ms);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 8);
  EXPECT_EQ(found->severity, severity::advice);
}

TEST(pageable_copies, copies_side_by_side_on_one_link_share_what_they_gain) {
  // Four streams at once: 20 ms of wall time, 80 ms of copies, of which 4 x 1 ms are needed.
  trace_builder made;
  for (int stream = 0; stream < 4; ++stream) {
    made.on(0, stream).h2d(0ms, 20ms, 50 * mb).h2d(30ms, 20ms, 50 * mb);
  }
  made.on(0, 9).kernel(20ms, 10ms).kernel(50ms, 10ms);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(saving_ms(*found), 2 * (20 - 4), 0.001);
  EXPECT_THAT(found->headline, HasSubstr("take 40.0 ms"));
}

TEST(pageable_copies, devices_side_by_side_save_wall_time_once) {
  trace_builder made;
  for (std::uint32_t device = 0; device < 8; ++device) {
    made.on(device, 7);
    for (int step = 0; step < 4; ++step) {
      made.h2d(step * 10ms, 5ms, 50 * mb).kernel(step * 10ms + 5ms, 5ms);
    }
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("pageable-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(saving_ms(*found), 4 * (5 - 1), 0.001);
  EXPECT_THAT(found->headline, HasSubstr("take 20.0 ms, 100 % of kernel time"));
  EXPECT_LE(shown.result.saving_ns, shown.result.totals.span_ns);
}

TEST(pageable_copies, devices_in_turns_save_the_sum) {
  trace_builder made;
  for (std::uint32_t device = 0; device < 4; ++device) {
    made.on(device, 7).h2d(device * 10ms, 5ms, 50 * mb).kernel(device * 10ms + 5ms, 5ms);
    made.h2d(device * 10ms + 40ms, 5ms, 50 * mb);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("pageable-copies"), nullptr);
  EXPECT_NEAR(saving_ms(*shown.find("pageable-copies")), 8 * 4, 0.001);
}

TEST(pageable_copies, the_fix_speaks_the_program_s_terms_and_directions) {
  const auto fixes_of = [](trace::gpu_api api, bool pytorch) {
    trace_builder made;
    made.api(api);
    if (pytorch) {
      made.pytorch();
    }
    for (int step = 0; step < 4; ++step) {
      made.h2d(step * 20ms, 5ms, 50 * mb).kernel(step * 20ms + 5ms, 5ms);
      made.d2h(step * 20ms + 10ms, 6ms, 51 * mb);
    }
    const auto shown = diagnose_on_round_machine(made);
    return all_fixes(*shown.find("pageable-copies"));
  };
  const auto hip = fixes_of(trace::gpu_api::hip, false);
  EXPECT_THAT(hip, HasSubstr("hipHostMalloc"));
  EXPECT_THAT(hip, HasSubstr("hipHostFree"));
  EXPECT_THAT(hip, HasSubstr("results"));
  EXPECT_THAT(hip, Not(HasSubstr("cuda")));
  const auto cuda = fixes_of(trace::gpu_api::cuda, false);
  EXPECT_THAT(cuda, HasSubstr("cudaMallocHost"));
  EXPECT_THAT(cuda, HasSubstr("cudaFreeHost"));
  EXPECT_THAT(cuda, Not(HasSubstr("hip")));
  const auto torch = fixes_of(trace::gpu_api::hip, true);
  EXPECT_THAT(torch, HasSubstr("pin_memory"));
  EXPECT_THAT(torch, HasSubstr("non_blocking=True"));

  auto only_up = steps(6, 5ms, 5ms, memory_kind::pageable);
  EXPECT_EQ(diagnose_on_round_machine(only_up).find("pageable-copies")->fix.size(), 1U);
}

// 250 MB of weights before `kernel_time` of work.
diagnosed with_weights(nanoseconds kernel_time) {
  trace_builder made;
  for (int layer = 0; layer < 5; ++layer) {
    made.h2d(layer * 5ms, 5ms, 50 * mb);
  }
  for (int step = 0; step < 10; ++step) {
    made.kernel(25ms + step * kernel_time / 10, kernel_time / 10);
  }
  return diagnose_on_round_machine(made);
}

TEST(one_off_copies, uploads_before_long_work_are_a_note) {
  const auto shown = with_weights(1000ms);  // 20 of 1025 ms to gain
  EXPECT_THAT(shown.rules(), ElementsAre("one-off-copies"));
  const auto& found = *shown.find("one-off-copies");
  EXPECT_EQ(found.severity, severity::note);
  EXPECT_DOUBLE_EQ(saving_ms(found), 20);
  EXPECT_EQ(found.saving->bound, diagnose::bound::at_most);
  EXPECT_THAT(found.headline, HasSubstr("5 pageable uploads"));
  EXPECT_THAT(shown.result.verdict, HasSubstr("nothing worth changing"));
}

TEST(one_off_copies, uploads_before_short_work_are_pageable_copies) {
  const auto shown = with_weights(40ms);  // 20 of 65 ms to gain
  EXPECT_THAT(shown.rules(), ElementsAre("pageable-copies"));
  EXPECT_EQ(shown.result.worst, severity::fault);
  // Pinned memory of that size would cost more than one copy saves.
  EXPECT_THAT(all_fixes(shown.result.findings.front()), HasSubstr("happen once"));
}

TEST(one_off_copies, five_percent_of_the_span_are_the_border) {
  EXPECT_THAT(with_weights(376ms).rules(), ElementsAre("one-off-copies"));   // 20 of 401
  EXPECT_THAT(with_weights(374ms).rules(), ElementsAre("pageable-copies"));  // 20 of 399
}

TEST(one_off_copies, on_an_unknown_machine_the_time_decides) {
  const auto make = [](nanoseconds kernel_time) {
    trace_builder made;
    made.h2d(0ms, 25ms, 250 * mb).kernel(25ms, kernel_time);
    return diagnose_on_unknown_machine(made);
  };
  const auto little = make(1000ms);
  EXPECT_THAT(little.rules(), ElementsAre("one-off-copies"));
  EXPECT_FALSE(little.result.findings.front().saving.has_value());
  EXPECT_THAT(make(40ms).rules(), ElementsAre("pageable-copies"));
}

TEST(one_off_copies, uploads_in_every_step_are_none) {
  auto made = steps(20, 1ms, 9ms, memory_kind::pageable, 10 * mb);
  EXPECT_EQ(diagnose_on_round_machine(made).find("one-off-copies"), nullptr);
}

TEST(one_off_copies, without_kernels_nothing_is_initialisation) {
  trace_builder made;
  made.h2d(0ms, 5ms, 50 * mb);
  EXPECT_EQ(diagnose_on_round_machine(made).find("one-off-copies"), nullptr);
}

}  // namespace
}  // namespace berth::test
