// SPDX-License-Identifier: Apache-2.0
// Graph capture: its status and mode. The contract does not begin captures, a program does.
#include <array>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::capture_mode;
using runtime::capture_status;

class capture_suite : public suite {};
BERTH_CONFORMANCE_SUITE(capture_suite);

TEST_P(capture_suite, no_stream_captures) {
  for (const auto one : {stream(), blocking_stream(), default_stream}) {
    EXPECT_THAT(gpu().stream_capture_status(one), gives(capture_status::none));
  }
  if (has(capability::per_thread_stream)) {
    EXPECT_THAT(gpu().stream_capture_status(per_thread_stream), gives(capture_status::none));
  }
}

TEST_P(capture_suite, a_busy_stream_does_not_capture) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  EXPECT_THAT(gpu().stream_capture_status(work), gives(capture_status::none));
  EXPECT_THAT(gpu().query_stream(work), gives(progress::pending)) << "nor did the answer wait";
  held.open();
}

TEST_P(capture_suite, a_mode_is_exchanged_for_the_former) {
  BERTH_NEEDS(lacks(capability::stream_capture));
  const auto first = must(gpu().exchange_capture_mode(capture_mode::relaxed));
  EXPECT_EQ(first, capture_mode::global) << "what a thread starts with";
  EXPECT_THAT(gpu().exchange_capture_mode(capture_mode::this_thread), gives(capture_mode::relaxed));
  EXPECT_THAT(gpu().exchange_capture_mode(first), gives(capture_mode::this_thread));
  EXPECT_THAT(gpu().exchange_capture_mode(first), gives(first));
}

TEST_P(capture_suite, each_thread_has_its_own_mode) {
  BERTH_NEEDS(lacks(capability::stream_capture));
  std::thread([&] { must(gpu().exchange_capture_mode(capture_mode::relaxed)); }).join();
  EXPECT_THAT(gpu().exchange_capture_mode(capture_mode::global), gives(capture_mode::global));
}

TEST_P(capture_suite, a_mode_does_nothing_where_there_is_no_capture) {
  BERTH_NEEDS(has_after_all(capability::stream_capture));
  for (const auto mode : {capture_mode::relaxed, capture_mode::this_thread, capture_mode::global}) {
    EXPECT_THAT(gpu().exchange_capture_mode(mode), gives(mode));
  }
}

TEST_P(capture_suite, work_goes_on_in_any_mode) {
  for (const auto mode : {capture_mode::relaxed, capture_mode::this_thread, capture_mode::global}) {
    EXPECT_THAT(gpu().exchange_capture_mode(mode), succeeds());
    expect_usable();
  }
}

}  // namespace
}  // namespace berth::conformance
