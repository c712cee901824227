// SPDX-License-Identifier: Apache-2.0
// Managed memory that moves by page faults, and what looks like it.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t managed_buffer = 0x10'0000;

struct managed_use {
  int rounds = 5;
  int faults = 100;  // of a round
  nanoseconds pause = 50us;
  bytes_t page = 100'000;
  bytes_t back = 10 * mb;
};

// Rounds of 20 ms: a kernel that ends when its last page has come, then the host's part.
trace_builder faulting(const managed_use& how) {
  trace_builder made;
  made.api(trace::gpu_api::cuda).gpu("NVIDIA H200");
  made.allocated(0ms, 1ms, "cuMemAllocManaged", managed_buffer, 10 * mb);
  made.at_frames({"main (model.cu:7)"});
  for (int round = 0; round < how.rounds; ++round) {
    const auto begin = 2ms + round * 20ms;
    for (int fault = 0; fault < how.faults; ++fault) {
      made.migration(begin + fault * (how.pause + 10us), 10us, how.page, direction::host_to_device);
    }
    made.kernel(begin, how.faults * (how.pause + 10us));
    made.migration(begin + 15ms, 1ms, how.back, direction::device_to_host);
  }
  return made;
}

diagnosed diagnosed_use(const managed_use& how) {
  auto made = faulting(how);
  return diagnose_on_unknown_machine(made);
}

TEST(page_faults, kernels_that_wait_for_pages_are_a_fault) {
  const auto shown = diagnosed_use({});
  const auto* const found = shown.find("managed-page-faults");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_THAT(found->headline, HasSubstr("5 kernels wait 29.8 ms in all for 500 migrations that "
                                         "bring 47.7 MiB"));
  EXPECT_THAT(found->headline, HasSubstr("the same pages go to and fro"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("cudaMemPrefetchAsync"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("one owner"));
  ASSERT_EQ(found->places.size(), 2U);
  EXPECT_EQ(found->places[0].count, 5U);
  EXPECT_EQ(found->places[0].bytes, 50 * mb);
  EXPECT_EQ(found->places[1].where, "cuMemAllocManaged at main (model.cu:7)");
}

TEST(page_faults, the_saving_is_the_waiting_less_a_prefetch) {
  const auto shown = diagnosed_use({});
  const auto* const found = shown.find("managed-page-faults");
  ASSERT_NE(found, nullptr);
  // 50 MB at the 48 GB/s of the model H200.
  EXPECT_NEAR(saving_ms(*found), 29.75 - 50.0 / 48, 0.01);
  EXPECT_LT(found->saving->time_ns, found->lost_ns);
  EXPECT_EQ(found->saving->bound, diagnose::bound::at_most);
  EXPECT_GE(shown.result.saving_ns, found->saving->time_ns);
}

TEST(page_faults, long_pauses_are_the_kernel_s_own_work) {
  const auto shown = diagnosed_use({.faults = 10, .pause = 500us});
  const auto* const found = shown.find("managed-page-faults");
  // 10 us of each 510.
  EXPECT_EQ(found, nullptr);
}

TEST(page_faults, pages_that_stay_do_not_go_to_and_fro) {
  const auto shown = diagnosed_use({.back = 0});
  const auto* const found = shown.find("managed-page-faults");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->headline, Not(HasSubstr("to and fro")));
  EXPECT_THAT(all_fixes(*found), Not(HasSubstr("one owner")));
}

TEST(page_faults, a_prefetch_beside_kernels_is_none) {
  // 2 MiB in 42 us: 50 GB/s.
  EXPECT_EQ(diagnosed_use({.pause = 0us, .page = 500'000}).find("managed-page-faults"), nullptr);
}

TEST(page_faults, without_kernels_nobody_waits) {
  trace_builder made;
  made.gpu("NVIDIA H200").migration(0ms, 10ms, 50 * mb, direction::host_to_device);
  EXPECT_EQ(diagnose_on_unknown_machine(made).find("managed-page-faults"), nullptr);
}

TEST(page_faults, on_an_unknown_machine_the_saving_is_unknown) {
  auto made = faulting({});
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("managed-page-faults");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->saving.has_value());
}

TEST(page_faults, little_waiting_is_not_worth_a_finding) {
  EXPECT_EQ(diagnosed_use({.faults = 2}).find("managed-page-faults"), nullptr);
}

TEST(page_faults, migrations_without_bytes_or_direction_say_nothing) {
  trace_builder made;
  made.gpu("NVIDIA H200").kernel(0ms, 10ms).migration(1ms, 8ms);
  EXPECT_EQ(diagnose_on_unknown_machine(made).find("managed-page-faults"), nullptr);
}

}  // namespace
}  // namespace berth::test
