// SPDX-License-Identifier: Apache-2.0
// A trace beside the machine that it was made on.
#include <algorithm>

#include "support/findings.hpp"
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// What an MI210 uploads in a slot of 8 lanes: 14 GB/s, half of what it could.
trace_builder uploads(memory_kind host = memory_kind::pinned) {
  trace_builder made;
  made.api(trace::gpu_api::hip).gpu("AMD Instinct MI210");
  for (int step = 0; step < 8; ++step) {
    made.h2d(step * 10ms, 5ms, 70 * mb, host).kernel(step * 10ms + 5ms, 5ms);
  }
  return made;
}

machine::survey one_mi210() {
  auto seen = instinct_node(1);
  seen.machine.gpus[0].model = "mi210";
  return seen;
}

// Lanes that both ends have are lost.
machine::survey with_8_of_16_lanes() {
  auto seen = one_mi210();
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained.width = 8;
  }
  return seen;
}

// The slot has no more.
machine::survey in_a_slot_of_8() {
  auto seen = with_8_of_16_lanes();
  seen.machine.gpus[0].pci_path[1].capable.width = 8;
  return seen;
}

diagnosed on(trace_builder& builder, const machine::survey& seen) {
  diagnosed made{builder.build(), {}};
  made.result = diagnose::diagnose(made.events, nullptr, &seen);
  return made;
}

TEST(machine_beside_trace, lost_lanes_are_a_fault_with_what_they_cost) {
  auto trace = uploads();
  const auto shown = on(trace, with_8_of_16_lanes());
  const auto* const found = shown.find("link-limit");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::fault);
  EXPECT_THAT(found->headline, HasSubstr("16 GT/s x8"));
  // 70 MB take 5 ms at 14 GB/s and 2.5 at 28.
  EXPECT_NEAR(saving_ms(*found), 8 * 2.5, 0.1);
  EXPECT_THAT(all_fixes(*found), HasSubstr("Reseat"));
  EXPECT_THAT(shown.result.expectation_basis, HasSubstr("this machine's link (16 GT/s x8)"));
  // At the rate of the link that there is, the copies are not slow.
  EXPECT_EQ(shown.find("slow-pinned-copies"), nullptr);
}

TEST(machine_beside_trace, a_slot_with_fewer_lanes_is_a_note_without_a_saving) {
  auto trace = uploads();
  const auto shown = on(trace, in_a_slot_of_8());
  const auto* const found = shown.find("link-limit");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, diagnose::severity::note);
  EXPECT_FALSE(found->saving.has_value());
  EXPECT_TRUE(found->gains.empty());
}

TEST(machine_beside_trace, a_full_link_is_none_and_the_copies_are_slow) {
  auto trace = uploads();
  const auto shown = on(trace, one_mi210());
  EXPECT_EQ(shown.find("link-limit"), nullptr);
  EXPECT_NE(shown.find("slow-pinned-copies"), nullptr);
}

TEST(machine_beside_trace, pageable_copies_that_the_cpu_limits_lose_nothing_by_the_link) {
  auto trace = uploads(memory_kind::pageable);
  EXPECT_EQ(on(trace, with_8_of_16_lanes()).find("link-limit"), nullptr);
}

TEST(machine_beside_trace, an_idle_link_is_not_what_copies_get) {
  auto trace = uploads();
  auto seen = one_mi210();
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained.generation = 1;
  }
  EXPECT_EQ(on(trace, seen).find("link-limit"), nullptr);
}

TEST(machine_beside_trace, another_machine_is_left_aside_and_that_is_said) {
  auto trace = uploads();
  auto seen = with_8_of_16_lanes();
  seen.machine.gpus[0].model = "mi100";
  seen.machine.gpus[0].isa = "gfx908";
  const auto shown = on(trace, seen);
  EXPECT_EQ(shown.find("link-limit"), nullptr);
  EXPECT_THAT(shown.result.notes, testing::Contains(HasSubstr("The machine was left aside")));
  EXPECT_THAT(shown.result.expectation_basis, HasSubstr("not measured on this machine"));
}

TEST(machine_beside_trace, an_unknown_gpu_gets_the_model_of_the_machine) {
  trace_builder trace;
  trace.api(trace::gpu_api::hip).gpu("AMD Radeon Graphics").h2d(0ms, 10ms, 28 * mb);
  EXPECT_THAT(on(trace, one_mi210()).result.expectation_basis, HasSubstr("AMD Instinct MI210"));
}

// Which of two GPUs the program used is not sure: only what both have counts.
TEST(machine_beside_trace, of_several_gpus_only_what_they_have_in_common_counts) {
  auto trace = uploads();
  auto seen = instinct_node(2);
  for (auto& gpu : seen.machine.gpus) {
    gpu.model = "mi210";
  }
  for (auto& device : seen.machine.gpus[1].pci_path) {
    device.trained.width = 8;
  }
  EXPECT_EQ(on(trace, seen).find("link-limit"), nullptr);
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained.width = 8;
  }
  auto again = uploads();
  EXPECT_NE(on(again, seen).find("link-limit"), nullptr);
}

TEST(machine_beside_trace, tells_the_node_of_a_gpu_that_the_trace_does_not) {
  trace_builder trace;
  trace.api(trace::gpu_api::hip).gpu("AMD Instinct MI210");
  for (int step = 0; step < 8; ++step) {
    trace.h2d(step * 10ms, 5ms, 70 * mb, memory_kind::pinned).host_node(1);
    trace.kernel(step * 10ms + 5ms, 5ms);
  }
  const auto shown = on(trace, one_mi210());
  const auto* const found = shown.find("remote-numa");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("node 1, the GPU to node 0"));
}

diagnosed managed_on(const machine::survey& seen, const std::string& xnack) {
  trace_builder trace;
  trace.api(trace::gpu_api::hip).fact("environment.HSA_XNACK", xnack);
  trace.allocated(0ms, 1ms, "hipMallocManaged", 0x1000'0000, 64 * mb);
  for (int step = 0; step < 8; ++step) {
    trace.kernel(step * 10ms + 5ms, 5ms);
  }
  return on(trace, seen);
}

TEST(machine_beside_trace, hsa_xnack_changes_nothing_where_the_gpu_cannot) {
  auto seen = instinct_node(1, "gfx1100");
  const auto shown = managed_on(seen, "1");
  const auto* const found = shown.find("managed-without-migration");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("cannot retry"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("changes nothing on this machine"));
}

TEST(machine_beside_trace, hsa_xnack_works_where_the_gpu_and_the_kernel_can) {
  EXPECT_EQ(managed_on(instinct_node(1), "1").find("managed-without-migration"), nullptr);
  auto barred = instinct_node(1);
  barred.machine.set.hmm = machine::setting_state::off;
  const auto shown = managed_on(barred, "1");
  const auto* const found = shown.find("managed-without-migration");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("cannot migrate pages"));
}

}  // namespace
}  // namespace berth::test
