// SPDX-License-Identifier: Apache-2.0
// Memory that is allocated over and over, and memory that is not.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;

// Steps of 10 ms: a kernel, and each step allocates (1 ms) and frees (1 ms) a buffer.
struct step_of {
  int count = 20;
  std::string_view allocate = "hipHostMalloc";
  std::string_view release = "hipHostFree";
  bytes_t bytes = 64 * mib;
  bytes_t growth = 0;
  nanoseconds time = 1ms;
};

trace_builder steps(const step_of& how) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  for (int step = 0; step < how.count; ++step) {
    const auto at = step * 10ms;
    const auto bytes = how.bytes + static_cast<bytes_t>(step) * how.growth;
    made.kernel(at, 10ms);
    made.allocated(at, how.time, how.allocate, 0x1000, bytes).at_frames({"fill() in a.out"});
    made.freed(at + 8ms, how.time, how.release, 0x1000);
  }
  return made;
}

diagnosed diagnosed_steps(const step_of& how) {
  auto made = steps(how);
  return diagnose_on_round_machine(made);
}

TEST(loops, pinned_memory_for_each_step_is_a_fault) {
  const auto shown = diagnosed_steps({});
  const auto* const found = shown.find("allocation-in-a-loop");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  // The first allocation and the last free are needed; a pool takes a microsecond for each.
  EXPECT_NEAR(saving_ms(*found), 19 * 2 - 19 * 0.001, 1e-6);
  EXPECT_THAT(found->headline, HasSubstr("19 times"));
  ASSERT_EQ(found->places.size(), 1U);
  EXPECT_EQ(found->places[0].where, "hipHostMalloc at fill() in a.out of 64 MiB");
  EXPECT_EQ(found->places[0].what, diagnose::counted::calls);
  EXPECT_EQ(found->places[0].count, 19U);
  EXPECT_THAT(all_fixes(*found), HasSubstr("hipMallocAsync"));
}

TEST(loops, cheap_calls_are_worth_nothing) {
  EXPECT_EQ(diagnosed_steps({.time = 50us}).find("allocation-in-a-loop"), nullptr);
}

TEST(loops, a_pool_of_the_runtime_is_none) {
  EXPECT_EQ(diagnosed_steps({.allocate = "hipMallocAsync", .release = "hipFreeAsync"})
                .find("allocation-in-a-loop"),
            nullptr);
}

TEST(loops, other_sizes_each_time_could_not_be_used_again) {
  EXPECT_EQ(diagnosed_steps({.growth = 4096}).find("allocation-in-a-loop"), nullptr);
}

TEST(loops, a_few_times_are_no_loop) {
  EXPECT_EQ(diagnosed_steps({.count = 8}).find("allocation-in-a-loop"), nullptr);
  EXPECT_NE(diagnosed_steps({.count = 9}).find("allocation-in-a-loop"), nullptr);
}

TEST(loops, buffers_that_live_side_by_side_are_none) {
  trace_builder made;
  made.kernel(0ms, 200ms);
  for (int buffer = 0; buffer < 40; ++buffer) {
    made.allocated(buffer * 2ms, 2ms, "hipMalloc",
                   0x1000 + static_cast<std::uint64_t>(buffer) * mib, 64 * kib);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("allocation-in-a-loop"), nullptr);
}

TEST(loops, registrations_count_too) {
  trace_builder made;
  for (int step = 0; step < 20; ++step) {
    const auto at = step * 10ms;
    made.kernel(at, 10ms).called_about(at, 2ms, "cuMemHostRegister_v2", 0x1000, 16 * mib);
    made.called_about(at + 5ms, 1ms, "cuMemHostUnregister", 0x1000);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("allocation-in-a-loop"), nullptr);
  EXPECT_NEAR(saving_ms(*shown.find("allocation-in-a-loop")), 19 * 3, 0.1);
}

TEST(loops, threads_side_by_side_count_once) {
  trace_builder made;
  for (int step = 0; step < 20; ++step) {
    const auto at = step * 10ms;
    made.kernel(at, 10ms);
    for (const auto* thread : {"1", "2", "3", "4"}) {
      const auto address = 0x1000U + static_cast<std::uint64_t>(thread[0]) * 16 * mib;
      made.on_thread(thread).allocated(at, 1ms, "hipHostMalloc", address, mib);
      made.freed(at + 8ms, 1ms, "hipHostFree", address);
    }
  }
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("allocation-in-a-loop");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, HasSubstr("76 times"));
  EXPECT_LE(saving_ms(*found), 2 * 20);
}

TEST(loops, calls_that_failed_are_not_counted) {
  trace_builder made;
  for (int step = 0; step < 20; ++step) {
    const auto at = step * 10ms;
    made.kernel(at, 10ms).allocated(at, 1ms, "hipMalloc", 0x1000, mib).failed(2);
    made.freed(at + 8ms, 1ms, "hipFree", 0x1000).failed(1);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("allocation-in-a-loop"), nullptr);
}

TEST(loops, calls_without_addresses_say_nothing) {
  trace_builder made;
  for (int step = 0; step < 20; ++step) {
    const auto at = step * 10ms;
    made.kernel(at, 10ms).called(at, 1ms, "hipHostMalloc", trace::event_kind::allocation);
    made.kernel(at, 1ms).called(at + 8ms, 1ms, "hipHostFree", trace::event_kind::free);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("allocation-in-a-loop"), nullptr);
}

}  // namespace
}  // namespace berth::test
