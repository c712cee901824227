// SPDX-License-Identifier: Apache-2.0
// What the expected time of a copy rests on.
#include "diagnose/expectation.hpp"

#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::expectation;
using diagnose::host_end;
using testing::HasSubstr;

constexpr auto up = direction::host_to_device;
constexpr auto down = direction::device_to_host;

trace_builder pinned_uploads(int count) {
  trace_builder made;
  for (int copy = 0; copy < count; ++copy) {
    made.h2d(copy * 10ms, 2ms, 40 * mb, memory_kind::pinned);
  }
  return made;
}

TEST(expectation, a_profile_comes_first) {
  const auto events = pinned_uploads(5).gpu("NVIDIA H200").build();
  const auto machine = round_machine();
  const expectation expected(events, &machine);
  EXPECT_DOUBLE_EQ(*expected.rate(up, host_end::pinned), 50);
  EXPECT_DOUBLE_EQ(*expected.time_ns(down, host_end::pageable, 50 * mb), 5e6);
  EXPECT_EQ(expected.known(up, host_end::pinned), provenance::measured);
  EXPECT_THAT(expected.basis(), HasSubstr("'round'"));
}

TEST(expectation, the_gpu_s_model_comes_next_and_is_nominal) {
  const auto events = pinned_uploads(5).gpu("NVIDIA H200").build();
  const expectation expected(events, nullptr);
  EXPECT_NEAR(*expected.rate(up, host_end::pinned), 55.4, 0.1);
  EXPECT_EQ(expected.known(up, host_end::pinned), provenance::nominal);
  EXPECT_THAT(expected.basis(), HasSubstr("NVIDIA H200"));
  EXPECT_THAT(expected.basis(), HasSubstr("not measured on this machine"));
}

TEST(expectation, then_the_pinned_copies_of_the_trace) {
  const auto events = pinned_uploads(3).gpu("Unheard-of 9000").build();
  const expectation expected(events, nullptr);
  EXPECT_DOUBLE_EQ(*expected.rate(up, host_end::pinned), 20);
  EXPECT_EQ(expected.known(up, host_end::pinned), provenance::measured);
  EXPECT_FALSE(expected.rate(down, host_end::pinned).has_value());
  EXPECT_FALSE(expected.rate(up, host_end::pageable).has_value());
  EXPECT_THAT(expected.basis(), HasSubstr("pinned copies of this trace"));
}

TEST(expectation, two_copies_are_too_few_to_go_by) {
  const auto events = pinned_uploads(2).build();
  const expectation expected(events, nullptr);
  EXPECT_FALSE(expected.time_ns(up, host_end::pinned, mb).has_value());
  EXPECT_EQ(expected.known(up, host_end::pinned), provenance::unknown);
  EXPECT_THAT(expected.basis(), HasSubstr("nothing"));
}

TEST(expectation, small_unfinished_and_unknown_copies_are_nothing_to_go_by) {
  trace_builder made;
  for (int copy = 0; copy < 5; ++copy) {
    made.h2d(copy * 10ms, 2ms, mib - 1, memory_kind::pinned);
    made.h2d(copy * 10ms, 0ms, 40 * mb, memory_kind::pinned);
    made.h2d(copy * 10ms, 2ms, std::nullopt, memory_kind::pinned);
    made.h2d(copy * 10ms, 2ms, 40 * mb, memory_kind::pageable);
  }
  const auto events = made.build();
  EXPECT_FALSE(expectation(events, nullptr).rate(up, host_end::pinned).has_value());
}

TEST(expectation, one_outlier_does_not_move_the_rate) {
  auto made = pinned_uploads(4);
  made.h2d(100ms, 40ms, 40 * mb, memory_kind::pinned);
  const auto events = made.build();
  EXPECT_DOUBLE_EQ(*expectation(events, nullptr).rate(up, host_end::pinned), 20);
}

TEST(expectation, copies_without_a_host_end_have_none) {
  const auto events = pinned_uploads(5).gpu("NVIDIA H200").build();
  const expectation expected(events, nullptr);
  for (const auto way : {direction::unknown, direction::device_to_device, direction::peer_to_peer,
                         direction::host_to_host}) {
    EXPECT_FALSE(expected.time_ns(way, host_end::pinned, mb).has_value()) << to_string(way);
    EXPECT_EQ(expected.known(way, host_end::pinned), provenance::unknown);
  }
}

}  // namespace
}  // namespace berth::test
