// SPDX-License-Identifier: Apache-2.0
// berth's own kernels: results, limits, and requests that are refused.
#include <array>
#include <limits>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::kernel_copy;
using runtime::kernel_fill;
using runtime::kernel_spin;
using runtime::kernel_touch;
using runtime::kernel_verify;
using runtime::launch_shape;
using runtime::touch_access;

class kernel_suite : public suite {
protected:
  static constexpr bytes_t size = 1 * mib;
  static constexpr std::array<bytes_t, 8> sizes{1, 7, 8, 9, 4095, 65536, 65537, 4 * mib + 5};

  void SetUp() override {
    suite::SetUp();
    BERTH_NEEDS(lacks(capability::kernels));
  }
  void run(const runtime::kernel_request& request, launch_shape shape = {}) {
    EXPECT_THAT(gpu().launch(request, default_stream, shape), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  }
  void expect_refused(const runtime::kernel_request& request, launch_shape shape = {}) {
    EXPECT_THAT(gpu().launch(request, default_stream, shape), fails_with(errc::gpu_invalid_value));
  }
};
BERTH_CONFORMANCE_SUITE(kernel_suite);

TEST_P(kernel_suite, can_be_prepared_again_and_again) {
  for (int index = 0; index < device_count(); ++index) {
    EXPECT_THAT(gpu().prepare_kernels(index), succeeds());
    EXPECT_THAT(gpu().prepare_kernels(index), succeeds());
  }
}

TEST_P(kernel_suite, no_device_can_be_prepared) {
  for (const int index : {-1, device_count(), std::numeric_limits<int>::max()}) {
    EXPECT_THAT(gpu().prepare_kernels(index), fails_with(errc::gpu_device_out_of_range));
  }
}

TEST_P(kernel_suite, fill_writes_the_pattern_and_nothing_else) {
  for (const auto length : sizes) {
    SCOPED_TRACE(length);
    auto* device = device_memory(length + 64);
    put(device, repeated(length + 64, 0xee));
    run(kernel_fill{device + 8, length, 5, 24});
    EXPECT_EQ(take(device, 8), repeated(8, 0xee));
    EXPECT_EQ(take(device + 8, length), pattern(length, 5, 24));
    EXPECT_EQ(take(device + 8 + length, 56), repeated(56, 0xee));
  }
}

TEST_P(kernel_suite, fill_continues_a_pattern_at_an_offset) {
  auto* device = device_memory(size);
  constexpr bytes_t cut = 123 * 8;
  run(kernel_fill{device, cut, 6});
  run(kernel_fill{device + cut, size - cut, 6, cut});
  EXPECT_EQ(mismatches_in(device, size, 6), 0U);
}

TEST_P(kernel_suite, copy_copies_at_any_alignment) {
  for (const auto length : sizes) {
    auto* from = device_memory(length + 64);
    auto* to = device_memory(length + 64);
    for (const bytes_t shift : {0U, 1U, 8U, 16U}) {
      SCOPED_TRACE(testing::Message() << length << " shifted by " << shift);
      put(to, repeated(length + 64, 0xee));
      put_pattern(from + shift, length, shift);
      run(kernel_copy{to + 16, from + shift, length});
      EXPECT_EQ(take(to, 16), repeated(16, 0xee));
      EXPECT_EQ(take(to + 16, length), pattern(length, shift));
      EXPECT_EQ(take(to + 16 + length, 48), repeated(48, 0xee));
    }
  }
}

TEST_P(kernel_suite, copy_reaches_pinned_memory) {
  auto* device = device_memory(size);
  auto* from = pinned_memory(size);
  auto* back = pinned_memory(size);
  runtime::write_pattern(from, size, 7);
  run(kernel_copy{device, must(gpu().device_address(from)), size});
  run(kernel_copy{must(gpu().device_address(back)), device, size});
  EXPECT_EQ(runtime::count_mismatches(back, size, 7), 0U);
}

TEST_P(kernel_suite, verify_counts_each_wrong_byte) {
  auto* device = device_memory(size);
  auto* wrong = counter();
  for (const std::uint64_t errors : {0U, 1U, 3U, 1000U}) {
    auto data = pattern(size, 8);
    for (std::uint64_t i = 0; i < errors; ++i) {
      data[i * 1031] ^= std::byte{1};
    }
    put(device, data);
    set_count(wrong, 0);
    run(kernel_verify{device, size, 8, 0, wrong});
    EXPECT_EQ(count_in(wrong), errors);
  }
}

TEST_P(kernel_suite, verify_sees_the_last_byte_of_any_size) {
  for (const auto length : sizes) {
    auto* device = device_memory(length);
    auto* wrong = counter();
    auto data = pattern(length, 9);
    data.back() ^= std::byte{0x80};
    put(device, data);
    run(kernel_verify{device, length, 9, 0, wrong});
    EXPECT_EQ(count_in(wrong), 1U) << length;
  }
}

TEST_P(kernel_suite, verify_adds_to_what_is_there) {
  auto* device = device_memory(size);
  auto* wrong = counter();
  put_pattern(device, size, 1);
  set_count(wrong, 100);
  run(kernel_verify{device, size, 1, 0, wrong});
  EXPECT_EQ(count_in(wrong), 100U);
  put(device, [] {
    auto data = pattern(size, 1);
    data[0] ^= std::byte{1};
    return data;
  }());
  run(kernel_verify{device, size, 1, 0, wrong});
  EXPECT_EQ(count_in(wrong), 101U);
}

TEST_P(kernel_suite, touching_leaves_the_contents) {
  auto* device = device_memory(size);
  put_pattern(device, size, 3);
  for (const auto access : {touch_access::read, touch_access::write}) {
    for (const bytes_t stride : {bytes_t{1}, bytes_t{64}, bytes_t{4096}, 2 * size}) {
      run(kernel_touch{device, size, stride, access});
    }
  }
  EXPECT_EQ(mismatches_in(device, size, 3), 0U);
}

TEST_P(kernel_suite, a_spin_ends_by_itself) {
  for (const auto time : std::array<std::chrono::nanoseconds, 3>{1us, 1ms, 20ms}) {
    run(kernel_spin{nullptr, time});
  }
}

TEST_P(kernel_suite, a_spin_takes_about_its_time) {
  const auto begin = event({.timing = runtime::event_timing::enabled});
  const auto end = event({.timing = runtime::event_timing::enabled});
  must(gpu().record_event(begin, default_stream));
  delay(default_stream, 10ms);
  must(gpu().record_event(end, default_stream));
  must(gpu().synchronize_event(end));
  EXPECT_GE(must(gpu().elapsed(begin, end)), 8ms);
}

TEST_P(kernel_suite, a_spin_ends_when_it_is_released) {
  const auto held = new_gate();
  held.close(default_stream);
  EXPECT_THAT(gpu().query_stream(default_stream), gives(progress::pending));
  held.open();
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
}

TEST_P(kernel_suite, a_spin_that_was_released_before_does_not_wait) {
  const auto held = new_gate();
  const auto begin = event({.timing = runtime::event_timing::enabled});
  const auto end = event({.timing = runtime::event_timing::enabled});
  held.open();
  must(gpu().record_event(begin, default_stream));
  held.close(default_stream);
  must(gpu().record_event(end, default_stream));
  must(gpu().synchronize_event(end));
  EXPECT_LT(must(gpu().elapsed(begin, end)), 2s) << "on the device's clock; unreleased takes 5 s";
}

TEST_P(kernel_suite, any_shape_gives_the_same_result) {
  auto* device = device_memory(size);
  auto* wrong = counter();
  std::uint64_t seed = 100;
  for (const auto shape : {launch_shape{1, 64}, launch_shape{1, 1024}, launch_shape{3, 192},
                           launch_shape{0, 256}, launch_shape{7, 0}, launch_shape{5000, 64}}) {
    run(kernel_fill{device, size, ++seed}, shape);
    run(kernel_verify{device, size, seed, 0, wrong}, shape);
    EXPECT_EQ(count_in(wrong), 0U) << shape.blocks << " x " << shape.threads;
    EXPECT_EQ(mismatches_in(device, size, seed), 0U) << shape.blocks << " x " << shape.threads;
  }
}

TEST_P(kernel_suite, impossible_shapes_are_refused) {
  auto* device = device_memory(size);
  for (const unsigned threads : {1U, 32U, 63U, 65U, 1000U, 1025U, 1088U, 4294967295U}) {
    expect_refused(kernel_fill{device, size, 1}, {1, threads});
  }
  expect_usable();
}

TEST_P(kernel_suite, impossible_requests_are_refused) {
  auto* device = device_memory(size);
  auto* word = counter();
  auto* odd_count = reinterpret_cast<std::uint64_t*>(device + 4);
  auto* odd_word = reinterpret_cast<std::uint32_t*>(pinned_memory(16) + 2);
  expect_refused(kernel_fill{device + 4, 64, 1});
  expect_refused(kernel_fill{device, 64, 1, 4});
  expect_refused(kernel_verify{device + 1, 64, 1, 0, word});
  expect_refused(kernel_verify{device, 64, 1, 1, word});
  expect_refused(kernel_verify{device, 64, 1, 0, odd_count});
  expect_refused(kernel_touch{device, size, 0});
  expect_refused(kernel_spin{nullptr, 0ns});
  expect_refused(kernel_spin{nullptr, -1ns});
  expect_refused(kernel_spin{nullptr, 10s + 1ns});
  expect_refused(kernel_spin{odd_word, 1ms});
  expect_usable();
}

TEST_P(kernel_suite, null_addresses_are_refused) {
  auto* device = device_memory(size);
  auto* word = counter();
  expect_refused(kernel_copy{nullptr, device, 64});
  expect_refused(kernel_copy{device, nullptr, 64});
  expect_refused(kernel_fill{nullptr, 64, 1});
  expect_refused(kernel_touch{nullptr, 64});
  expect_refused(kernel_verify{nullptr, 64, 1, 0, word});
  expect_refused(kernel_verify{device, 64, 1, 0, nullptr});
  expect_usable();
}

TEST_P(kernel_suite, zero_bytes_do_nothing) {
  auto* device = device_memory(64);
  auto* wrong = counter();
  put_pattern(device, 64, 1);
  run(kernel_fill{device, 0, 9});
  run(kernel_copy{device, device, 0});
  run(kernel_touch{device, 0});
  run(kernel_verify{device, 0, 9, 0, wrong});
  EXPECT_EQ(count_in(wrong), 0U);
  EXPECT_EQ(mismatches_in(device, 64, 1), 0U);
}

TEST_P(kernel_suite, run_in_streams_of_each_device) {
  for (int index = 0; index < device_count(); ++index) {
    const auto scope = must(runtime::scoped_device::make(gpu(), index));
    auto* device = device_memory(size, index);
    auto* wrong = counter(index);
    const auto work = stream({}, index);
    EXPECT_THAT(gpu().launch(kernel_fill{device, size, 4}, work), succeeds());
    EXPECT_THAT(gpu().launch(kernel_verify{device, size, 4, 0, wrong}, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(count_in(wrong), 0U);
    EXPECT_EQ(mismatches_in(device, size, 4), 0U);
  }
}

TEST_P(kernel_suite, memory_that_the_device_cannot_reach_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  BERTH_NEEDS(reaches_pageable());
  auto* heap = pageable_memory(size);
  auto* device = device_memory(size);
  expect_refused(kernel_fill{heap, size, 1});
  expect_refused(kernel_fill{device + 8, size, 1});
  expect_refused(kernel_copy{device, heap, size});
  expect_refused(kernel_verify{device, 64, 1, 0, reinterpret_cast<std::uint64_t*>(heap)});
  expect_usable();
}

class kernel_free_suite : public suite {};
BERTH_CONFORMANCE_SUITE(kernel_free_suite);

TEST_P(kernel_free_suite, kernels_are_refused_where_there_are_none) {
  BERTH_NEEDS(has_after_all(capability::kernels));
  EXPECT_THAT(gpu().prepare_kernels(0), fails_with(errc::gpu_not_supported));
  EXPECT_THAT(gpu().launch(kernel_spin{nullptr, 1ms}, default_stream),
              fails_with(errc::gpu_not_supported));
}

TEST_P(kernel_free_suite, the_pattern_is_the_same_from_any_offset) {
  const auto all = pattern(1000, 3);
  for (const bytes_t offset : {0U, 1U, 7U, 8U, 333U}) {
    const auto part = pattern(500, 3, offset);
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(offset)))
        << offset;
    EXPECT_EQ(runtime::count_mismatches(part.data(), 500, 3, offset), 0U);
    EXPECT_GT(runtime::count_mismatches(part.data(), 500, 3, offset + 1), 0U);
  }
}

}  // namespace
}  // namespace berth::conformance
