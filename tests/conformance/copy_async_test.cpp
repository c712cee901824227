// SPDX-License-Identifier: Apache-2.0
// copy_async: when the source is read and the result is there, for pinned and pageable memory, and
// the order of copies and kernels in a stream.
#include <array>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class copy_async_suite : public suite {
protected:
  static constexpr bytes_t size = 1 * mib;
};
BERTH_CONFORMANCE_SUITE(copy_async_suite);

TEST_P(copy_async_suite, every_kind_reaches_every_kind) {
  const auto work = stream();
  std::uint64_t seed = 1;
  for (const auto from : kinds()) {
    for (const auto to : kinds()) {
      SCOPED_TRACE(testing::Message() << to_string(from) << " to " << to_string(to));
      auto* source = memory_of(from, size);
      auto* target = memory_of(to, size);
      put_pattern(source, size, ++seed);
      EXPECT_THAT(gpu().copy_async(target, source, size, work), succeeds());
      EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
      EXPECT_EQ(mismatches_in(target, size, seed), 0U);
    }
  }
}

TEST_P(copy_async_suite, every_stream_copies) {
  std::vector streams{default_stream, stream(), blocking_stream()};
  if (has(capability::per_thread_stream)) {
    streams.push_back(per_thread_stream);
  }
  auto* device = device_memory(size);
  auto* from = pinned_memory(size);
  auto* back = pinned_memory(size);
  for (const auto work : streams) {
    runtime::write_pattern(from, size, work.bits);
    EXPECT_THAT(gpu().copy_async(device, from, size, work), succeeds());
    EXPECT_THAT(gpu().copy_async(back, device, size, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(runtime::count_mismatches(back, size, work.bits), 0U);
  }
}

TEST_P(copy_async_suite, nothing_is_copied_from_anywhere) {
  const auto work = stream();
  EXPECT_THAT(gpu().copy_async(nullptr, nullptr, 0, work), succeeds());
  EXPECT_THAT(gpu().copy_async(device_memory(64), nullptr, 0, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
}

TEST_P(copy_async_suite, a_pinned_source_is_read_when_the_stream_gets_there) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* source = pinned_memory(size);
  runtime::write_pattern(source, size, 1);
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  EXPECT_THAT(gpu().copy_async(device, source, size, work), succeeds());
  runtime::write_pattern(source, size, 2);
  held.open();
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(device, size, 2), 0U) << "the data from before the gate opened";
}

TEST_P(copy_async_suite, a_registered_source_is_read_when_the_stream_gets_there) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(cannot_register());
  auto* device = device_memory(size);
  auto* source = registered_memory(size);
  runtime::write_pattern(source, size, 1);
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  EXPECT_THAT(gpu().copy_async(device, source, size, work), succeeds());
  runtime::write_pattern(source, size, 2);
  held.open();
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(device, size, 2), 0U);
}

TEST_P(copy_async_suite, a_pinned_result_is_not_there_before_the_stream_gets_there) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* target = pinned_memory(size);
  put_pattern(device, size, 1);
  runtime::write_pattern(target, size, 2);
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  EXPECT_THAT(gpu().copy_async(target, device, size, work), succeeds());
  EXPECT_GT(runtime::count_mismatches(target, size, 1), 0U) << "the gate is closed";
  held.open();
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(target, size, 1), 0U);
}

TEST_P(copy_async_suite, a_pageable_source_has_been_read_when_the_call_returns) {
  BERTH_NEEDS(treats_pageable_as_pinned());
  const auto work = stream();
  for (const bytes_t length : {bytes_t{64}, 64 * kib, 8 * mib}) {
    SCOPED_TRACE(length);
    auto* device = device_memory(length);
    auto* source = pageable_memory(length);
    runtime::write_pattern(source, length, 1);
    EXPECT_THAT(gpu().copy_async(device, source, length, work), succeeds());
    runtime::write_pattern(source, length, 2);
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(mismatches_in(device, length, 1), 0U);
  }
}

TEST_P(copy_async_suite, a_pageable_source_has_been_read_even_behind_other_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(treats_pageable_as_pinned());
  const auto work = stream();
  for (const bytes_t length : {bytes_t{64}, 64 * kib, 8 * mib}) {
    SCOPED_TRACE(length);
    auto* device = device_memory(length);
    auto* source = pageable_memory(length);
    runtime::write_pattern(source, length, 1);
    delay(work);
    EXPECT_THAT(gpu().copy_async(device, source, length, work), succeeds());
    runtime::write_pattern(source, length, 2);
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(mismatches_in(device, length, 1), 0U);
  }
}

TEST_P(copy_async_suite, a_pageable_result_is_there_when_the_call_returns) {
  BERTH_NEEDS(treats_pageable_as_pinned());
  const auto work = stream();
  for (const bytes_t length : {bytes_t{64}, 64 * kib, 8 * mib}) {
    SCOPED_TRACE(length);
    auto* device = device_memory(length);
    auto* target = pageable_memory(length);
    put_pattern(device, length, 1);
    EXPECT_THAT(gpu().copy_async(target, device, length, work), succeeds());
    EXPECT_EQ(runtime::count_mismatches(target, length, 1), 0U);
  }
}

TEST_P(copy_async_suite, a_pageable_result_is_that_of_earlier_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(treats_pageable_as_pinned());
  const auto work = stream();
  auto* device = device_memory(size);
  auto* target = pageable_memory(size);
  delay(work);
  must(gpu().fill_async(device, std::byte{3}, size, work));
  EXPECT_THAT(gpu().copy_async(target, device, size, work), succeeds());
  EXPECT_EQ(bytes(target, target + size), repeated(size, 3));
}

TEST_P(copy_async_suite, between_host_memory_comes_after_earlier_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto work = stream();
  auto* device = device_memory(size);
  auto* middle = pinned_memory(size);
  auto* target = pageable_memory(size);
  put_pattern(device, size, 5);
  delay(work);
  EXPECT_THAT(gpu().copy_async(middle, device, size, work), succeeds());
  EXPECT_THAT(gpu().copy_async(target, middle, size, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(target, size, 5), 0U);
}

TEST_P(copy_async_suite, copies_of_a_stream_run_in_order) {
  const auto work = stream();
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  std::vector<std::byte*> sources;
  for (std::uint64_t i = 0; i < 8; ++i) {
    sources.push_back(pinned_memory(size));
    runtime::write_pattern(sources.back(), size, i);
  }
  for (auto* source : sources) {
    EXPECT_THAT(gpu().copy_async(device, source, size, work), succeeds());
  }
  EXPECT_THAT(gpu().copy_async(back, device, size, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 7), 0U) << "the last one stays";
}

TEST_P(copy_async_suite, one_buffer_is_sent_again_and_again) {
  // Down and up through the same two buffers: a step out of order would carry old data on.
  const auto work = stream();
  auto* a = device_memory(size);
  auto* b = device_memory(size);
  auto* through = pinned_memory(size);
  auto* from = pinned_memory(size);
  runtime::write_pattern(from, size, 11);
  EXPECT_THAT(gpu().copy_async(a, from, size, work), succeeds());
  for (int round = 0; round < 16; ++round) {
    EXPECT_THAT(gpu().copy_async(through, a, size, work), succeeds());
    EXPECT_THAT(gpu().fill_async(a, std::byte{0}, size, work), succeeds());
    EXPECT_THAT(gpu().copy_async(b, through, size, work), succeeds());
    EXPECT_THAT(gpu().copy_async(a, b, size, work), succeeds());
    EXPECT_THAT(gpu().fill_async(b, std::byte{0}, size, work), succeeds());
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(a, size, 11), 0U);
}

TEST_P(copy_async_suite, a_kernel_sees_the_copy_before_it) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto work = stream();
  auto* device = device_memory(size);
  auto* from = pinned_memory(size);
  auto* wrong = counter();
  runtime::write_pattern(from, size, 21);
  from[size / 2] ^= std::byte{0xff};
  EXPECT_THAT(gpu().copy_async(device, from, size, work), succeeds());
  EXPECT_THAT(gpu().launch(runtime::kernel_verify{device, size, 21, 0, wrong}, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(count_in(wrong), 1U) << "exactly the byte that was spoilt";
}

TEST_P(copy_async_suite, a_copy_sees_the_kernel_before_it) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto work = stream();
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  delay(work, 2ms);
  EXPECT_THAT(gpu().launch(runtime::kernel_fill{device, size, 22}, work), succeeds());
  EXPECT_THAT(gpu().copy_async(back, device, size, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 22), 0U);
}

TEST_P(copy_async_suite, copies_and_kernels_alternate) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto work = stream();
  auto* device = device_memory(size);
  auto* from = pinned_memory(size);
  auto* wrong = counter();
  runtime::write_pattern(from, size, 1);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THAT(gpu().launch(runtime::kernel_fill{device, size, 2}, work), succeeds());
    EXPECT_THAT(gpu().launch(runtime::kernel_verify{device, size, 2, 0, wrong}, work), succeeds());
    EXPECT_THAT(gpu().copy_async(device, from, size, work), succeeds());
    EXPECT_THAT(gpu().launch(runtime::kernel_verify{device, size, 1, 0, wrong}, work), succeeds());
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(count_in(wrong), 0U);
}

TEST_P(copy_async_suite, a_thousand_small_copies_all_arrive) {
  constexpr bytes_t piece = 520;
  constexpr bytes_t count = 1000;
  const auto work = stream();
  auto* device = device_memory(piece * count);
  auto* from = pinned_memory(piece * count);
  auto* back = pinned_memory(piece * count);
  runtime::write_pattern(from, piece * count, 31);
  for (bytes_t i = 0; i < count; ++i) {
    must(gpu().copy_async(device + i * piece, from + i * piece, piece, work));
    must(gpu().copy_async(back + i * piece, device + i * piece, piece, work));
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, piece * count, 31), 0U);
}

TEST_P(copy_async_suite, streams_copy_in_both_directions_at_once) {
  constexpr bytes_t large = 16 * mib;
  auto* in = device_memory(large);
  auto* out = device_memory(large);
  auto* from = pinned_memory(large);
  auto* back = pinned_memory(large);
  const auto up = stream();
  const auto down = stream();
  runtime::write_pattern(from, large, 41);
  put_pattern(out, large, 42);
  EXPECT_THAT(gpu().copy_async(in, from, large, up), succeeds());
  EXPECT_THAT(gpu().copy_async(back, out, large, down), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(up), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(down), succeeds());
  EXPECT_EQ(mismatches_in(in, large, 41), 0U);
  EXPECT_EQ(runtime::count_mismatches(back, large, 42), 0U);
}

TEST_P(copy_async_suite, parts_of_one_buffer_go_through_several_streams) {
  constexpr bytes_t parts = 4;
  auto* device = device_memory(parts * size);
  auto* from = pinned_memory(parts * size);
  runtime::write_pattern(from, parts * size, 51);
  for (bytes_t i = 0; i < parts; ++i) {
    EXPECT_THAT(gpu().copy_async(device + i * size, from + i * size, size, stream()), succeeds());
  }
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  EXPECT_EQ(mismatches_in(device, parts * size, 51), 0U);
}

TEST_P(copy_async_suite, works_on_a_stream_of_each_device) {
  BERTH_NEEDS(fewer_devices_than(2));
  for (int index = 0; index < device_count(); ++index) {
    auto* device = device_memory(size, index);
    auto* from = pinned_memory(size);
    runtime::write_pattern(from, size, 61);
    const auto work = stream({}, index);
    EXPECT_THAT(gpu().copy_async(device, from, size, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(mismatches_in(device, size, 61), 0U);
  }
}

TEST_P(copy_async_suite, a_range_that_leaves_its_allocation_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  const auto work = stream();
  auto* device = device_memory(size);
  auto* host = pinned_memory(2 * size);
  EXPECT_THAT(gpu().copy_async(device, host, size + 1, work), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().copy_async(host + 1, device + 1, size, work),
              fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().query_stream(work), gives(progress::complete)) << "nothing was queued";
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
