// SPDX-License-Identifier: Apache-2.0
// Events: what they mark, waiting for them, time between them.
#include <array>
#include <limits>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::event_options;
using runtime::event_release;
using runtime::event_timing;
using runtime::event_wait;
using runtime::kernel_fill;

constexpr event_options timed{.timing = event_timing::enabled};

class event_suite : public suite {
protected:
  static constexpr bytes_t size = 1 * mib;
};
BERTH_CONFORMANCE_SUITE(event_suite);

TEST_P(event_suite, are_made_with_any_options) {
  for (const auto timing : {event_timing::none, event_timing::enabled}) {
    for (const auto wait : {event_wait::spin, event_wait::block}) {
      for (const auto release : {event_release::standard, event_release::system}) {
        auto* back = pinned_memory(64);
        const auto made = must(gpu().create_event(0, {timing, wait, release}));
        must(gpu().fill_async(back, std::byte{5}, 64, default_stream));
        EXPECT_THAT(gpu().record_event(made, default_stream), succeeds());
        EXPECT_THAT(gpu().synchronize_event(made), succeeds());
        EXPECT_EQ(bytes(back, back + 64), repeated(64, 5)) << "fine-grained memory is visible";
        EXPECT_THAT(gpu().destroy_event(made), succeeds());
      }
    }
  }
}

TEST_P(event_suite, no_device_has_none) {
  for (const int index : {-1, device_count(), std::numeric_limits<int>::max()}) {
    EXPECT_THAT(gpu().create_event(index), fails_with(errc::gpu_device_out_of_range));
  }
}

TEST_P(event_suite, one_never_recorded_is_complete) {
  const auto fresh = event();
  EXPECT_THAT(gpu().query_event(fresh), gives(progress::complete));
  EXPECT_THAT(gpu().synchronize_event(fresh), succeeds());
}

TEST_P(event_suite, waiting_for_one_never_recorded_does_nothing) {
  auto* back = pinned_memory(64);
  const auto work = stream();
  EXPECT_THAT(gpu().wait_event(work, event()), succeeds());
  must(gpu().fill_async(back, std::byte{2}, 64, work));
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(bytes(back, back + 64), repeated(64, 2));
}

TEST_P(event_suite, is_pending_until_the_work_before_it_is_done) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto work = stream();
  const auto marker = event();
  held.close(work);
  EXPECT_THAT(gpu().record_event(marker, work), succeeds());
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(gpu().query_event(marker), gives(progress::pending));
  }
  held.open();
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
  EXPECT_THAT(gpu().query_event(marker), gives(progress::complete));
}

TEST_P(event_suite, does_not_wait_for_work_after_it) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto work = stream();
  const auto marker = event();
  delay(work, 1ms);
  must(gpu().record_event(marker, work));
  held.close(work);
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
  EXPECT_THAT(gpu().query_stream(work), gives(progress::pending));
  held.open();
}

TEST_P(event_suite, results_are_visible_after_it) {
  BERTH_NEEDS(lacks(capability::kernels));
  for (const auto grain : {runtime::coherence::fine, runtime::coherence::coarse}) {
    auto* device = device_memory(size);
    auto* back = pinned_memory(size, {.grain = grain});
    const auto work = stream();
    const auto done = event({.release = event_release::system});
    delay(work, 2ms);
    must(gpu().launch(kernel_fill{device, size, 1}, work));
    must(gpu().copy_async(back, device, size, work));
    must(gpu().record_event(done, work));
    EXPECT_THAT(gpu().synchronize_event(done), succeeds());
    EXPECT_EQ(runtime::count_mismatches(back, size, 1), 0U);
  }
}

TEST_P(event_suite, results_are_visible_once_a_query_says_complete) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto work = stream();
  const auto done = event();
  delay(work, 2ms);
  must(gpu().launch(kernel_fill{device, size, 2}, work));
  must(gpu().copy_async(back, device, size, work));
  must(gpu().record_event(done, work));
  while (must(gpu().query_event(done)) == progress::pending) {
  }
  EXPECT_EQ(runtime::count_mismatches(back, size, 2), 0U);
}

TEST_P(event_suite, a_new_record_replaces_the_last) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto work = stream();
  const auto marker = event();
  must(gpu().record_event(marker, work));
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
  held.close(work);
  must(gpu().record_event(marker, work));
  EXPECT_THAT(gpu().query_event(marker), gives(progress::pending));
  held.open();
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
}

TEST_P(event_suite, a_new_record_in_another_stream_replaces_the_last) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto first = stream();
  const auto second = stream();
  const auto marker = event();
  held.close(first);
  must(gpu().record_event(marker, first));
  must(gpu().record_event(marker, second));
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds()) << "of the second record";
  EXPECT_THAT(gpu().query_stream(first), gives(progress::pending));
  held.open();
}

TEST_P(event_suite, a_wait_is_for_the_record_made_before_it) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* back = pinned_memory(size);
  const auto held = new_gate();
  const auto first = stream();
  const auto second = stream();
  const auto marker = event();
  must(gpu().record_event(marker, first));
  must(gpu().wait_event(second, marker));
  held.close(first);
  must(gpu().record_event(marker, first));
  must(gpu().fill_async(back, std::byte{1}, size, second));
  EXPECT_THAT(gpu().synchronize_stream(second), succeeds()) << "not held by the later record";
  EXPECT_THAT(gpu().query_event(marker), gives(progress::pending));
  held.open();
}

TEST_P(event_suite, a_wait_stays_in_force_after_a_new_record) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto first = stream();
  const auto second = stream();
  const auto third = stream();
  const auto marker = event();
  delay(first);
  must(gpu().launch(kernel_fill{device, size, 3}, first));
  must(gpu().record_event(marker, first));
  must(gpu().wait_event(second, marker));
  must(gpu().record_event(marker, third));
  must(gpu().copy_async(back, device, size, second));
  EXPECT_THAT(gpu().synchronize_stream(second), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 3), 0U);
}

TEST_P(event_suite, a_pending_one_may_be_destroyed) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto first = stream();
  const auto second = stream();
  const auto marker = must(gpu().create_event(0));
  delay(first);
  must(gpu().launch(kernel_fill{device, size, 4}, first));
  must(gpu().record_event(marker, first));
  must(gpu().wait_event(second, marker));
  EXPECT_THAT(gpu().destroy_event(marker), succeeds());
  must(gpu().copy_async(back, device, size, second));
  EXPECT_THAT(gpu().synchronize_stream(second), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 4), 0U) << "the wait was still in force";
}

TEST_P(event_suite, one_of_the_default_stream_follows_blocking_streams) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* back = pinned_memory(size);
  const auto other = blocking_stream();
  const auto marker = event();
  delay(other);
  must(gpu().fill_async(back, std::byte{6}, size, other));
  must(gpu().record_event(marker, default_stream));
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
  EXPECT_EQ(bytes(back, back + size), repeated(size, 6));
}

TEST_P(event_suite, one_wait_covers_several_streams) {
  auto* device = device_memory(4 * size);
  auto* from = pinned_memory(4 * size);
  auto* back = pinned_memory(4 * size);
  runtime::write_pattern(from, 4 * size, 7);
  const auto last = stream();
  for (bytes_t i = 0; i < 4; ++i) {
    const auto work = stream();
    const auto marker = event();
    must(gpu().copy_async(device + i * size, from + i * size, size, work));
    must(gpu().record_event(marker, work));
    must(gpu().wait_event(last, marker));
  }
  must(gpu().copy_async(back, device, 4 * size, last));
  EXPECT_THAT(gpu().synchronize_stream(last), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, 4 * size, 7), 0U);
}

TEST_P(event_suite, time_passes_between_two) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto begin = event(timed);
  const auto end = event(timed);
  const auto work = stream();
  must(gpu().record_event(begin, work));
  delay(work, 10ms);
  must(gpu().record_event(end, work));
  must(gpu().synchronize_event(end));
  const auto time = must(gpu().elapsed(begin, end));
  EXPECT_GE(time, 8ms);
  EXPECT_THAT(gpu().elapsed(begin, begin), gives(0ns));
  EXPECT_LE(must(gpu().elapsed(end, begin)), -8ms) << "backwards";
}

TEST_P(event_suite, longer_copies_take_longer) {
  constexpr bytes_t large = 32 * mib;
  auto* device = device_memory(large);
  auto* from = pinned_memory(large);
  const auto work = stream();
  const std::array marks{event(timed), event(timed), event(timed)};
  must(gpu().copy_async(device, from, large, work));  // the first may be slow
  must(gpu().record_event(marks[0], work));
  must(gpu().copy_async(device, from, 64 * kib, work));
  must(gpu().record_event(marks[1], work));
  must(gpu().copy_async(device, from, large, work));
  must(gpu().record_event(marks[2], work));
  must(gpu().synchronize_stream(work));
  const auto small_copy = must(gpu().elapsed(marks[0], marks[1]));
  const auto large_copy = must(gpu().elapsed(marks[1], marks[2]));
  EXPECT_GE(small_copy, 0ns);
  EXPECT_GT(large_copy, small_copy);
}

TEST_P(event_suite, no_time_without_timing) {
  const auto with = event(timed);
  const auto without = event();
  must(gpu().record_event(with, default_stream));
  must(gpu().record_event(without, default_stream));
  must(gpu().synchronize_stream(default_stream));
  EXPECT_THAT(gpu().elapsed(with, without), fails_with(errc::gpu_invalid_handle));
  EXPECT_THAT(gpu().elapsed(without, with), fails_with(errc::gpu_invalid_handle));
  EXPECT_THAT(gpu().elapsed(without, without), fails_with(errc::gpu_invalid_handle));
  expect_usable();
}

TEST_P(event_suite, no_time_without_a_record) {
  const auto recorded = event(timed);
  const auto fresh = event(timed);
  must(gpu().record_event(recorded, default_stream));
  must(gpu().synchronize_event(recorded));
  EXPECT_THAT(gpu().elapsed(recorded, fresh), fails_with(errc::gpu_invalid_handle));
  EXPECT_THAT(gpu().elapsed(fresh, recorded), fails_with(errc::gpu_invalid_handle));
  expect_usable();
}

TEST_P(event_suite, no_time_before_the_work_is_done) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto work = stream();
  const auto begin = event(timed);
  const auto end = event(timed);
  must(gpu().record_event(begin, work));
  held.close(work);
  must(gpu().record_event(end, work));
  EXPECT_THAT(gpu().elapsed(begin, end), fails_with(errc::gpu_not_ready));
  held.open();
  must(gpu().synchronize_event(end));
  EXPECT_THAT(gpu().elapsed(begin, end), succeeds());
}

TEST_P(event_suite, is_recorded_in_streams_of_its_device_only) {
  BERTH_NEEDS(fewer_devices_than(2));
  EXPECT_THAT(gpu().record_event(event({}, 0), stream({}, 1)),
              fails_with(errc::gpu_invalid_handle));
  EXPECT_THAT(gpu().record_event(event({}, 1), stream({}, 0)),
              fails_with(errc::gpu_invalid_handle));
  expect_usable();
}

TEST_P(event_suite, streams_of_another_device_wait_for_it) {
  BERTH_NEEDS(fewer_devices_than(2));
  BERTH_NEEDS(lacks(capability::kernels));
  auto* middle = pinned_memory(size);
  auto* first = device_memory(size, 0);
  auto* second = device_memory(size, 1);
  const auto on_first = stream({}, 0);
  const auto on_second = stream({}, 1);
  const auto sent = event({}, 0);
  delay(on_first);
  must(gpu().launch(kernel_fill{first, size, 8}, on_first));
  must(gpu().copy_async(middle, first, size, on_first));
  must(gpu().record_event(sent, on_first));
  EXPECT_THAT(gpu().wait_event(on_second, sent), succeeds());
  must(gpu().copy_async(second, middle, size, on_second));
  EXPECT_THAT(gpu().synchronize_stream(on_second), succeeds());
  EXPECT_EQ(mismatches_in(second, size, 8), 0U);
}

TEST_P(event_suite, another_thread_waits_for_it) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* back = pinned_memory(size);
  const auto work = stream();
  const auto done = event({.wait = event_wait::block});
  delay(work, 5ms);
  must(gpu().fill_async(back, std::byte{9}, size, work));
  must(gpu().record_event(done, work));
  std::thread([&] {
    EXPECT_THAT(gpu().synchronize_event(done), succeeds());
    EXPECT_EQ(bytes(back, back + size), repeated(size, 9));
  }).join();
}

TEST_P(event_suite, many_come_and_go) {
  const auto work = stream();
  for (int i = 0; i < 1000; ++i) {
    const auto made = must(gpu().create_event(0));
    must(gpu().record_event(made, work));
    EXPECT_THAT(gpu().destroy_event(made), succeeds());
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
}

TEST_P(event_suite, a_destroyed_one_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  const auto gone = must(gpu().create_event(0));
  must(gpu().destroy_event(gone));
  for (const auto none : {gone, event_handle{0}, event_handle{0xdead0}}) {
    EXPECT_THAT(gpu().query_event(none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().synchronize_event(none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().destroy_event(none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().record_event(none, default_stream), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().wait_event(default_stream, none), fails_with(errc::gpu_invalid_handle));
  }
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
