// SPDX-License-Identifier: Apache-2.0
// Data that is copied again unchanged, and data that only looks like it.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

// An upload of 50 MB in each step of 10 ms; its content and addresses by step.
struct upload {
  std::uint64_t content;
  std::uint64_t from;
  std::uint64_t to;
};

template <typename UploadOf>
trace_builder uploads(UploadOf upload_of, trace::timing how = trace::timing::device) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  for (std::uint64_t step = 0; step < 8; ++step) {
    const nanoseconds at = step * 10ms;
    const upload each = upload_of(step);
    made.h2d(at, how == trace::timing::unknown ? 0ms : 1ms, 50 * mb, memory_kind::pinned);
    made.host_address(each.from).device_address(each.to).content(each.content).timed_by(how);
    made.kernel(at + 2ms, 7ms);
  }
  return made;
}

constexpr std::uint64_t far = 0x1'0000'0000;

TEST(repeated, the_same_content_to_the_same_place) {
  auto made = uploads([](std::uint64_t step) { return upload{7, 0x1000 + step * far, 0x5000}; });
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("repeated-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 7);
  EXPECT_EQ(found->saving->bound, diagnose::bound::at_most);
  EXPECT_THAT(found->headline, HasSubstr("7 copies bring data again"));
  EXPECT_THAT(found->headline, HasSubstr("88 % of all bytes"));
  EXPECT_EQ(found->gains.size(), 7U);
}

TEST(repeated, the_same_source_to_another_place_each_time) {
  auto made = uploads([](std::uint64_t step) { return upload{7, 0x1000, step * far}; });
  EXPECT_NE(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, new_content_is_none) {
  auto made = uploads([](std::uint64_t step) { return upload{step, 0x1000, 0x5000}; });
  EXPECT_EQ(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, content_that_takes_turns_with_other_content_in_one_place_is_none) {
  auto made = uploads([](std::uint64_t step) {
    return upload{step % 2, 0x1000 + step * far, 0x5000};
  });
  EXPECT_EQ(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, without_hashes_nothing_is_said) {
  trace_builder made;
  for (int step = 0; step < 8; ++step) {
    made.h2d(step * 10ms, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000);
    made.device_address(0x5000).kernel(step * 10ms + 2ms, 7ms);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, a_place_that_was_given_anew_holds_nothing) {
  trace_builder made;
  for (std::uint64_t step = 0; step < 8; ++step) {
    const nanoseconds at = step * 10ms;
    made.allocated(at, 10us, "hipMalloc", 0x4000, 100 * mb);
    made.h2d(at + 1ms, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000 + step * far);
    made.device_address(0x5000).content(7).kernel(at + 3ms, 6ms);
    made.freed(at + 9ms, 10us, "hipFree", 0x4000);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, a_place_that_another_copy_touches_holds_nothing) {
  trace_builder made;
  for (std::uint64_t step = 0; step < 8; ++step) {
    const nanoseconds at = step * 10ms;
    made.h2d(at, 1ms, 50 * mb, memory_kind::pinned).host_address(0x1000 + step * far);
    made.device_address(0x5000).content(7).kernel(at + 3ms, 6ms);
    made.h2d(at + 9ms, 10us, 100 * kib, memory_kind::pinned).host_address(0x2000 + step * far);
    made.device_address(0x5000 + mb);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, two_are_chance) {
  trace_builder made;
  for (std::uint64_t step = 0; step < 3; ++step) {
    made.h2d(step * 10ms, 5ms, 50 * mb).host_address(0x1000).device_address(0x5000).content(7);
  }
  EXPECT_EQ(diagnose_on_round_machine(made).find("repeated-copies"), nullptr);
}

TEST(repeated, copies_of_unknown_time_count_by_bytes) {
  auto made = uploads(
      [](std::uint64_t step) {
        return upload{7, 0x1000 + step * far, 0x5000};
      },
      trace::timing::unknown);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("repeated-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->saving.has_value());
  EXPECT_THAT(found->gains, IsEmpty());
}

TEST(repeated, results_that_are_fetched_again_count_too) {
  trace_builder made;
  for (std::uint64_t step = 0; step < 8; ++step) {
    made.d2h(step * 10ms, 5ms, 50 * mb).host_address(0x1000).device_address(0x5000).content(7);
  }
  const auto shown = diagnose_on_round_machine(made);
  EXPECT_NE(shown.find("repeated-copies"), nullptr);
  // Pinning and leaving out are about the same copies.
  EXPECT_LE(shown.result.saving_ns, shown.result.totals.copy_busy_ns);
}

}  // namespace
}  // namespace berth::test
