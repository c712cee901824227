// SPDX-License-Identifier: Apache-2.0
// Setting bytes.
#include <array>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class fill_suite : public suite {};
BERTH_CONFORMANCE_SUITE(fill_suite);

TEST_P(fill_suite, any_range_is_filled_and_nothing_around_it_changes) {
  constexpr bytes_t room = 70000;
  auto* device = device_memory(room);
  struct range {
    bytes_t start;
    bytes_t length;
  };
  for (const auto [start, length] : {range{0, 1}, range{1, 1}, range{1, 3}, range{3, 4096},
                                     range{64, 64}, range{255, 65537}, range{0, room}}) {
    put(device, repeated(room, 0x11));
    EXPECT_THAT(gpu().fill(device + start, std::byte{0xab}, length), succeeds());
    auto expected = repeated(room, 0x11);
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(start), length, std::byte{0xab});
    EXPECT_EQ(take(device, room), expected) << start << " " << length;
  }
}

TEST_P(fill_suite, every_value_can_be_set) {
  auto* device = device_memory(256);
  for (int value = 0; value < 256; value += 51) {
    EXPECT_THAT(gpu().fill(device, static_cast<std::byte>(value), 256), succeeds());
    EXPECT_EQ(take(device, 256), repeated(256, value));
  }
}

TEST_P(fill_suite, every_kind_but_pageable_is_filled) {
  constexpr bytes_t size = 256 * kib + 1;
  const auto work = stream();
  for (const auto kind : kinds()) {
    if (kind == memory_kind::pageable) {
      continue;
    }
    SCOPED_TRACE(to_string(kind));
    auto* memory = memory_of(kind, size);
    EXPECT_THAT(gpu().fill(memory, std::byte{1}, size), succeeds());
    EXPECT_EQ(take(memory, size), repeated(size, 1));
    EXPECT_THAT(gpu().fill_async(memory, std::byte{2}, size, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(take(memory, size), repeated(size, 2));
  }
}

TEST_P(fill_suite, pageable_memory_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  BERTH_NEEDS(reaches_pageable());
  auto* memory = pageable_memory(4096);
  EXPECT_THAT(gpu().fill(memory, std::byte{1}, 4096), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().fill_async(memory, std::byte{1}, 4096, default_stream),
              fails_with(errc::gpu_invalid_value));
  expect_usable();
}

TEST_P(fill_suite, nothing_is_filled_anywhere) {
  auto* device = device_memory(64);
  put_pattern(device, 64, 1);
  EXPECT_THAT(gpu().fill(nullptr, std::byte{1}, 0), succeeds());
  EXPECT_THAT(gpu().fill(device, std::byte{1}, 0), succeeds());
  EXPECT_THAT(gpu().fill_async(device, std::byte{1}, 0, default_stream), succeeds());
  EXPECT_EQ(mismatches_in(device, 64, 1), 0U);
}

TEST_P(fill_suite, a_fill_is_done_when_the_call_returns) {
  constexpr bytes_t size = 16 * mib;
  auto* pinned = pinned_memory(size);
  EXPECT_THAT(gpu().fill(pinned, std::byte{7}, size), succeeds());
  EXPECT_EQ(bytes(pinned, pinned + size), repeated(size, 7));
  EXPECT_THAT(gpu().query_stream(default_stream), gives(progress::complete));
}

TEST_P(fill_suite, a_fill_comes_after_earlier_work_of_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 1 * mib;
  auto* device = device_memory(size);
  delay(default_stream);
  must(gpu().launch(runtime::kernel_fill{device, size, 1}, default_stream));
  EXPECT_THAT(gpu().fill(device, std::byte{8}, size), succeeds());
  EXPECT_EQ(take(device, size), repeated(size, 8));
}

TEST_P(fill_suite, fills_and_kernels_of_a_stream_run_in_order) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 1 * mib;
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto work = stream();
  delay(work, 2ms);
  EXPECT_THAT(gpu().fill_async(device, std::byte{1}, size, work), succeeds());
  EXPECT_THAT(gpu().launch(runtime::kernel_fill{device, size, 2}, work), succeeds());
  EXPECT_THAT(gpu().fill_async(device, std::byte{3}, size / 2, work), succeeds());
  EXPECT_THAT(gpu().copy_async(back, device, size, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(bytes(back, back + size / 2), repeated(size / 2, 3));
  EXPECT_EQ(runtime::count_mismatches(back + size / 2, size / 2, 2, size / 2), 0U);
}

TEST_P(fill_suite, a_range_that_leaves_its_allocation_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  auto* device = device_memory(4096);
  EXPECT_THAT(gpu().fill(device, std::byte{1}, 4097), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().fill_async(device + 1, std::byte{1}, 4096, default_stream),
              fails_with(errc::gpu_invalid_value));
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
