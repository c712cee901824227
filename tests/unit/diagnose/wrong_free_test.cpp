// SPDX-License-Identifier: Apache-2.0
// Frees that do not fit what they free, and other calls that fail.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;

struct free_of {
  std::string_view allocate;
  std::string_view release;
  memory_kind found = memory_kind::unknown;
  std::int32_t status = 0;
  trace::gpu_api api = trace::gpu_api::hip;
};

diagnosed diagnosed_free(const free_of& how) {
  trace_builder made;
  made.api(how.api).kernel(0ms, 1ms);
  made.allocated(1ms, 1ms, how.allocate, 0x1000, 4096);
  made.freed(3ms, 1ms, how.release, 0x1000, how.found).failed(how.status);
  return diagnose_on_round_machine(made);
}

TEST(wrong_free, right_frees_are_none) {
  for (const auto& how :
       {free_of{"hipMalloc", "hipFree"}, free_of{"hipMallocManaged", "hipFree"},
        free_of{"hipHostMalloc", "hipHostFree"}, free_of{"hipMallocAsync", "hipFreeAsync"},
        free_of{"cuMemHostAlloc", "cuMemFreeHost"}, free_of{"cuMemAllocHost_v2", "cuMemFreeHost"},
        free_of{"cuMemAlloc_v2", "cuMemFree_v2"},
        free_of{"hipHostRegister", "hipHostUnregister"}}) {
    EXPECT_EQ(diagnosed_free(how).find("wrong-free"), nullptr) << how.allocate;
  }
}

TEST(wrong_free, what_amd_lets_pass_is_advice) {
  const auto shown = diagnosed_free({"hipHostMalloc", "hipFree"});
  const auto* const found = shown.find("wrong-free");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::advice);
  EXPECT_EQ(found->headline,
            "hipFree is given pinned memory once: this runtime lets it pass, the interface does "
            "not promise it.");
  EXPECT_THAT(all_fixes(*found), HasSubstr("Free pinned memory with hipHostFree"));
  EXPECT_EQ(found->saving->time_ns, 0);
}

TEST(wrong_free, a_wrong_free_that_fails_leaves_the_memory) {
  const auto shown = diagnosed_free({.allocate = "cuMemHostAlloc",
                                     .release = "cuMemFree_v2",
                                     .status = 1,
                                     .api = trace::gpu_api::cuda});
  const auto* const found = shown.find("wrong-free");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_THAT(found->headline, HasSubstr("fails (1, invalid value): the memory stays allocated"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("cudaFreeHost"));
  EXPECT_EQ(shown.find("failed-calls"), nullptr);  // told once
}

TEST(wrong_free, registered_memory_is_not_freed_by_the_runtime) {
  const auto shown = diagnosed_free({"hipHostRegister", "hipFree", memory_kind::registered});
  ASSERT_NE(shown.find("wrong-free"), nullptr);
  EXPECT_EQ(shown.find("wrong-free")->severity, severity::fault);
  EXPECT_THAT(all_fixes(*shown.find("wrong-free")), HasSubstr("hipHostUnregister"));
}

TEST(wrong_free, the_recorder_knows_best_what_it_was) {
  EXPECT_NE(diagnosed_free({"hipMalloc", "hipFree", memory_kind::pinned}).find("wrong-free"),
            nullptr);
  EXPECT_EQ(diagnosed_free({"hipHostMalloc", "hipFree", memory_kind::device}).find("wrong-free"),
            nullptr);
}

TEST(wrong_free, a_second_free_that_fails_is_one) {
  trace_builder made;
  made.api(trace::gpu_api::hip).kernel(0ms, 1ms).allocated(1ms, 1ms, "hipMalloc", 0x1000, 4096);
  made.freed(3ms, 1ms, "hipFree", 0x1000, memory_kind::device);
  made.freed(5ms, 1ms, "hipFree", 0x1000).failed(1);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("wrong-free");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_THAT(found->headline, HasSubstr("was freed before"));
}

TEST(wrong_free, a_second_free_that_succeeds_was_of_memory_given_anew) {
  trace_builder made;
  made.kernel(0ms, 1ms).allocated(1ms, 1ms, "hipMalloc", 0x1000, 4096);
  made.freed(3ms, 1ms, "hipFree", 0x1000).freed(5ms, 1ms, "hipFree", 0x1000);
  EXPECT_EQ(diagnose_on_round_machine(made).find("wrong-free"), nullptr);
}

TEST(wrong_free, an_address_that_nobody_knows_fails) {
  trace_builder made;
  made.kernel(0ms, 1ms).freed(3ms, 1ms, "hipFree", 0x1000).failed(1);
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("wrong-free"), nullptr);
  EXPECT_THAT(shown.find("wrong-free")->headline, HasSubstr("does not know"));
}

TEST(wrong_free, nothing_is_freed_by_freeing_null) {
  trace_builder made;
  made.kernel(0ms, 1ms).freed(3ms, 1ms, "hipFree", 0, memory_kind::pinned);
  EXPECT_EQ(diagnose_on_round_machine(made).find("wrong-free"), nullptr);
}

TEST(wrong_free, a_free_behind_a_crash_or_a_shutdown_is_not_wrong) {
  EXPECT_EQ(diagnosed_free({.allocate = "hipMalloc", .release = "hipFree", .status = 4})
                .find("wrong-free"),
            nullptr);
  const auto crashed =
      diagnosed_free({.allocate = "hipMalloc", .release = "hipFree", .status = 700});
  EXPECT_EQ(crashed.find("wrong-free"), nullptr);
  EXPECT_NE(crashed.find("failed-calls"), nullptr);
}

TEST(failed_calls, are_listed_with_their_status) {
  trace_builder made;
  made.api(trace::gpu_api::hip).kernel(0ms, 1ms);
  for (int call = 0; call < 3; ++call) {
    made.allocated(call * 2ms, 1ms, "hipMalloc", 0, 1024 * mib).failed(2);
  }
  made.synchronised(8ms, 1ms).failed(719);
  made.synchronised(9ms, 1ms).failed(600);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("failed-calls");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::note);
  EXPECT_EQ(found->headline,
            "4 GPU calls failed, most often hipMalloc 3 times (status 2, out of memory).");
  ASSERT_EQ(found->places.size(), 2U);
  EXPECT_EQ(found->places[0].where, "hipMalloc (status 2, out of memory)");
  EXPECT_EQ(found->places[0].what, diagnose::counted::calls);
}

TEST(failed_calls, are_none_where_all_succeed) {
  trace_builder made;
  made.kernel(0ms, 1ms).allocated(1ms, 1ms, "hipMalloc", 0x1000, 4096);
  EXPECT_EQ(diagnose_on_round_machine(made).find("failed-calls"), nullptr);
}

}  // namespace
}  // namespace berth::test
