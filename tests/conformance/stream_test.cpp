// SPDX-License-Identifier: Apache-2.0
// Streams: order within one and between several, the default streams, progress.
#include <limits>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::kernel_fill;
using runtime::stream_ordering;
using runtime::stream_priority;

class stream_suite : public suite {
protected:
  static constexpr bytes_t size = 1 * mib;

  // Whether work of `second` comes after work of `first` that was queued before it. `first` is kept
  // busy, and a copy of `second` reads what it writes at last.
  void expect_ordered(stream_handle first, stream_handle second) {
    auto* device = device_memory(size);
    auto* back = pinned_memory(size);
    put(device, repeated(size, 0));
    must(gpu().synchronize_device(0));
    delay(first);
    EXPECT_THAT(gpu().launch(kernel_fill{device, size, 1}, first), succeeds());
    EXPECT_THAT(gpu().copy_async(back, device, size, second), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(second), succeeds());
    EXPECT_EQ(runtime::count_mismatches(back, size, 1), 0U);
  }
  // `second` gets on while `first` stands still.
  void expect_independent(stream_handle first, stream_handle second) {
    auto* back = pinned_memory(size);
    const auto held = new_gate();
    held.close(first);
    EXPECT_THAT(gpu().fill_async(back, std::byte{1}, size, second), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(second), succeeds());
    EXPECT_EQ(bytes(back, back + size), repeated(size, 1));
    EXPECT_THAT(gpu().query_stream(first), gives(progress::pending));
    held.open();
    EXPECT_THAT(gpu().synchronize_stream(first), succeeds());
  }
};
BERTH_CONFORMANCE_SUITE(stream_suite);

TEST_P(stream_suite, are_made_with_any_options) {
  for (const auto ordering : {stream_ordering::blocking, stream_ordering::non_blocking}) {
    for (const auto priority :
         {stream_priority::low, stream_priority::normal, stream_priority::high}) {
      const auto made = must(gpu().create_stream(0, {ordering, priority}));
      auto* back = pinned_memory(64);
      EXPECT_THAT(gpu().fill_async(back, std::byte{5}, 64, made), succeeds());
      EXPECT_THAT(gpu().synchronize_stream(made), succeeds());
      EXPECT_EQ(bytes(back, back + 64), repeated(64, 5));
      EXPECT_THAT(gpu().destroy_stream(made), succeeds());
    }
  }
}

TEST_P(stream_suite, no_device_has_none) {
  for (const int index : {-1, device_count(), std::numeric_limits<int>::max()}) {
    EXPECT_THAT(gpu().create_stream(index), fails_with(errc::gpu_device_out_of_range));
  }
}

TEST_P(stream_suite, handles_differ_from_each_other_and_from_the_default_ones) {
  const auto one = stream();
  const auto two = stream();
  EXPECT_NE(one, two);
  for (const auto made : {one, two}) {
    EXPECT_NE(made, default_stream);
    EXPECT_NE(made, per_thread_stream);
  }
}

TEST_P(stream_suite, an_empty_one_is_complete) {
  std::vector all{stream(), blocking_stream(), default_stream};
  if (has(capability::per_thread_stream)) {
    all.push_back(per_thread_stream);
  }
  must(gpu().synchronize_device(0));
  for (const auto one : all) {
    EXPECT_THAT(gpu().query_stream(one), gives(progress::complete));
    EXPECT_THAT(gpu().synchronize_stream(one), succeeds());
  }
}

TEST_P(stream_suite, progress_is_pending_until_all_work_is_done) {
  BERTH_NEEDS(lacks(capability::kernels));
  for (const auto one : {stream(), blocking_stream(), default_stream}) {
    const auto hold = new_gate();
    hold.close(one);
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(gpu().query_stream(one), gives(progress::pending));
    }
    hold.open();
    EXPECT_THAT(gpu().synchronize_stream(one), succeeds());
    EXPECT_THAT(gpu().query_stream(one), gives(progress::complete));
  }
}

TEST_P(stream_suite, queries_alone_see_the_work_through) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* back = pinned_memory(size);
  const auto work = stream();
  delay(work, 1ms);
  must(gpu().fill_async(back, std::byte{3}, size, work));
  while (must(gpu().query_stream(work)) == progress::pending) {
  }
  EXPECT_EQ(bytes(back, back + size), repeated(size, 3));
}

TEST_P(stream_suite, work_runs_in_order) {
  BERTH_NEEDS(lacks(capability::kernels));
  for (const auto one : {stream(), blocking_stream(), default_stream}) {
    expect_ordered(one, one);
  }
}

TEST_P(stream_suite, two_non_blocking_ones_are_independent) {
  BERTH_NEEDS(lacks(capability::kernels));
  expect_independent(stream(), stream());
}

TEST_P(stream_suite, two_blocking_ones_are_independent) {
  BERTH_NEEDS(lacks(capability::kernels));
  expect_independent(blocking_stream(), blocking_stream());
}

TEST_P(stream_suite, the_default_stream_waits_for_blocking_ones) {
  BERTH_NEEDS(lacks(capability::kernels));
  expect_ordered(blocking_stream(), default_stream);
}

TEST_P(stream_suite, blocking_ones_wait_for_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  expect_ordered(default_stream, blocking_stream());
}

TEST_P(stream_suite, the_default_stream_orders_blocking_ones_among_each_other) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* between = device_memory(64);
  auto* back = pinned_memory(size);
  const auto first = blocking_stream();
  const auto second = blocking_stream();
  delay(first);
  must(gpu().launch(kernel_fill{device, size, 2}, first));
  must(gpu().fill_async(between, std::byte{0}, 64, default_stream));
  must(gpu().copy_async(back, device, size, second));
  EXPECT_THAT(gpu().synchronize_stream(second), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 2), 0U);
}

TEST_P(stream_suite, the_default_stream_does_not_wait_for_non_blocking_ones) {
  BERTH_NEEDS(lacks(capability::kernels));
  expect_independent(stream(), default_stream);
}

TEST_P(stream_suite, non_blocking_ones_do_not_wait_for_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  expect_independent(default_stream, stream());
}

TEST_P(stream_suite, the_per_thread_stream_blocks_with_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(lacks(capability::per_thread_stream));
  expect_ordered(per_thread_stream, default_stream);
  expect_ordered(default_stream, per_thread_stream);
}

TEST_P(stream_suite, each_thread_has_its_own_per_thread_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(lacks(capability::per_thread_stream));
  auto* back = pinned_memory(size);
  const auto held = new_gate();
  held.close(per_thread_stream);
  std::thread([&] {
    EXPECT_THAT(gpu().query_stream(per_thread_stream), gives(progress::complete));
    EXPECT_THAT(gpu().fill_async(back, std::byte{1}, size, per_thread_stream), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(per_thread_stream), succeeds());
    EXPECT_EQ(bytes(back, back + size), repeated(size, 1));
  }).join();
  EXPECT_THAT(gpu().query_stream(per_thread_stream), gives(progress::pending));
  held.open();
}

TEST_P(stream_suite, the_default_stream_is_that_of_the_current_device) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(fewer_devices_than(2));
  const auto held = new_gate();
  held.close(default_stream);
  must(gpu().set_current_device(1));
  EXPECT_THAT(gpu().query_stream(default_stream), gives(progress::complete));
  must(gpu().set_current_device(0));
  EXPECT_THAT(gpu().query_stream(default_stream), gives(progress::pending));
  held.open();
}

TEST_P(stream_suite, a_destroyed_one_still_finishes_its_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto work = must(gpu().create_stream(0));
  delay(work, 5ms);
  must(gpu().launch(kernel_fill{device, size, 4}, work));
  must(gpu().copy_async(back, device, size, work));
  EXPECT_THAT(gpu().destroy_stream(work), succeeds());
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 4), 0U);
}

TEST_P(stream_suite, a_destroyed_one_is_still_waited_for_by_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto work = must(gpu().create_stream(0, {.ordering = stream_ordering::blocking}));
  delay(work, 5ms);
  must(gpu().launch(kernel_fill{device, size, 7}, work));
  EXPECT_THAT(gpu().destroy_stream(work), succeeds());
  must(gpu().copy_async(back, device, size, default_stream));
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 7), 0U);
}

TEST_P(stream_suite, the_per_thread_stream_of_a_thread_that_has_ended_finishes_its_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(lacks(capability::per_thread_stream));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  std::thread([&] {
    delay(per_thread_stream, 5ms);
    must(gpu().launch(kernel_fill{device, size, 8}, per_thread_stream));
    must(gpu().copy_async(back, device, size, per_thread_stream));
  }).join();
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 8), 0U);
}

TEST_P(stream_suite, waits_for_an_event_of_another) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto first = stream();
  const auto second = stream();
  const auto written = event();
  delay(first);
  must(gpu().launch(kernel_fill{device, size, 5}, first));
  must(gpu().record_event(written, first));
  EXPECT_THAT(gpu().wait_event(second, written), succeeds());
  must(gpu().copy_async(back, device, size, second));
  EXPECT_THAT(gpu().synchronize_stream(second), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 5), 0U);
}

TEST_P(stream_suite, sixty_four_work_side_by_side) {
  constexpr int count = 64;
  constexpr bytes_t piece = 64 * kib;
  auto* device = device_memory(count * piece);
  auto* from = pinned_memory(count * piece);
  auto* back = pinned_memory(count * piece);
  runtime::write_pattern(from, count * piece, 6);
  for (bytes_t i = 0; i < count; ++i) {
    const auto work = stream();
    must(gpu().copy_async(device + i * piece, from + i * piece, piece, work));
    must(gpu().copy_async(back + i * piece, device + i * piece, piece, work));
  }
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, count * piece, 6), 0U);
}

TEST_P(stream_suite, come_and_go) {
  for (int i = 0; i < 200; ++i) {
    const auto made = must(gpu().create_stream(0));
    EXPECT_THAT(gpu().destroy_stream(made), succeeds());
  }
}

TEST_P(stream_suite, a_destroyed_one_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  auto* device = device_memory(64);
  const auto marker = event();
  const auto gone = must(gpu().create_stream(0));
  must(gpu().destroy_stream(gone));
  for (const auto none : {gone, stream_handle{0xdead0}}) {
    EXPECT_THAT(gpu().query_stream(none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().synchronize_stream(none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().destroy_stream(none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().record_event(marker, none), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().wait_event(none, marker), fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().fill_async(device, std::byte{1}, 64, none),
                fails_with(errc::gpu_invalid_handle));
    EXPECT_THAT(gpu().copy_async(device, device, 64, none), fails_with(errc::gpu_invalid_handle));
    if (has(capability::kernels)) {
      EXPECT_THAT(gpu().launch(kernel_fill{device, 64, 1}, none),
                  fails_with(errc::gpu_invalid_handle));
    }
    EXPECT_THAT(gpu().stream_capture_status(none), fails_with(errc::gpu_invalid_handle));
  }
  expect_usable();
}

TEST_P(stream_suite, the_default_streams_are_not_destroyed) {
  BERTH_NEEDS(undefined_outside_sim());
  EXPECT_THAT(gpu().destroy_stream(default_stream), fails_with(errc::gpu_invalid_handle));
  EXPECT_THAT(gpu().destroy_stream(per_thread_stream), fails_with(errc::gpu_invalid_handle));
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
