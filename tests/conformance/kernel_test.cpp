// SPDX-License-Identifier: Apache-2.0
// berth's own kernels: results, limits, and requests that are refused.
#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::kernel_copy;
using runtime::kernel_fill;
using runtime::kernel_scatter;
using runtime::kernel_spin;
using runtime::kernel_touch;
using runtime::kernel_verify;
using runtime::launch_shape;
using runtime::scatter_entry;
using runtime::scatter_way;
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

// One range of a scatter: where it begins in the memory that is scattered and in the packed run.
struct part {
  bytes_t place = 0;
  bytes_t packed = 0;
  bytes_t bytes = 0;
};

class scatter_suite : public kernel_suite {
protected:
  static constexpr std::array<scatter_way, 2> ways{scatter_way::spread, scatter_way::collect};

  // The two sides of a scatter, each of `size` bytes.
  struct sides {
    std::byte* memory;
    std::byte* packed;
    bytes_t size;
  };

  // One part behind the other with bytes between them that belong to none; each begins that far
  // behind a multiple of 16.
  static std::vector<part> parts_of(std::span<const bytes_t> lengths, bytes_t place_shift = 0,
                                    bytes_t packed_shift = 0) {
    std::vector<part> all;
    bytes_t at = 32;
    for (const auto length : lengths) {
      all.push_back({.place = at + place_shift, .packed = at + packed_shift, .bytes = length});
      at += (length + 15) / 16 * 16 + 32;
    }
    return all;
  }
  // So many bytes hold the parts, and some behind them.
  static bytes_t size_of(std::span<const part> parts) {
    bytes_t size = 64;
    for (const auto& one : parts) {
      size = std::max(size, std::max(one.place, one.packed) + one.bytes + 64);
    }
    return size;
  }
  sides device_sides(std::span<const part> parts) {
    const bytes_t length = size_of(parts);
    return {.memory = device_memory(length), .packed = device_memory(length), .size = length};
  }

  // In pinned memory; null for no parts.
  const scatter_entry* table_of(std::span<const part> parts, std::byte* memory) {
    if (parts.empty()) {
      return nullptr;
    }
    auto* const table =
        reinterpret_cast<scatter_entry*>(pinned_memory(parts.size() * sizeof(scatter_entry)));
    std::transform(parts.begin(), parts.end(), table, [memory](const part& one) {
      return scatter_entry{.memory = memory + one.place, .place = one.packed, .bytes = one.bytes};
    });
    return static_cast<scatter_entry*>(must(gpu().device_address(table)));
  }

  // Scatters, and compares every byte of both sides: also those that belong to no part.
  // `reached` is what the device calls the sides, where that is not what the host does.
  void expect_scattered(std::span<const part> parts, scatter_way way, const sides& on,
                        const sides& reached, launch_shape shape = {}) {
    auto memory = pattern(on.size, 11);
    auto packed = pattern(on.size, 12);
    put(on.memory, memory);
    put(on.packed, packed);
    const auto* const table = table_of(parts, reached.memory);
    run(kernel_scatter{reached.packed, table, parts.size(), way}, shape);
    for (const auto& one : parts) {
      auto* const place = memory.data() + one.place;
      auto* const beside = packed.data() + one.packed;
      way == scatter_way::spread ? std::copy_n(beside, one.bytes, place)
                                 : std::copy_n(place, one.bytes, beside);
    }
    EXPECT_EQ(take(on.memory, on.size), memory);
    EXPECT_EQ(take(on.packed, on.size), packed);
  }
  void expect_scattered(std::span<const part> parts, scatter_way way, const sides& on) {
    expect_scattered(parts, way, on, on);
  }

  // Of 0 to 300 bytes, in no order of size.
  static std::vector<bytes_t> many_lengths(std::size_t count) {
    std::vector<bytes_t> lengths(count);
    for (std::size_t i = 0; i < count; ++i) {
      lengths[i] = i * 37 % 301;
    }
    return lengths;
  }
};
BERTH_CONFORMANCE_SUITE(scatter_suite);

TEST_P(scatter_suite, copies_at_any_alignment_and_nothing_else) {
  constexpr std::array<bytes_t, 12> lengths{1,  7,    8,    9,     15,    16,
                                            17, 4095, 4096, 65536, 65537, 1 * mib + 5};
  struct shifts {
    bytes_t place;
    bytes_t packed;
  };
  const auto on = device_sides(parts_of(lengths, 15, 15));
  for (const auto shift : {shifts{0, 0}, shifts{0, 1}, shifts{1, 0}, shifts{1, 1}, shifts{8, 8},
                           shifts{8, 0}, shifts{15, 3}}) {
    const auto parts = parts_of(lengths, shift.place, shift.packed);
    for (const auto way : ways) {
      SCOPED_TRACE(testing::Message() << "shifted by " << shift.place << " and " << shift.packed
                                      << (way == scatter_way::spread ? ", spread" : ", collected"));
      expect_scattered(parts, way, on);
    }
  }
}

TEST_P(scatter_suite, entries_of_0_bytes_do_nothing) {
  constexpr std::array<bytes_t, 5> lengths{0, 5, 0, 64, 0};
  constexpr std::array<bytes_t, 2> nothing{0, 0};
  for (const auto way : ways) {
    const auto some = parts_of(lengths, 3, 4);
    expect_scattered(some, way, device_sides(some));
    const auto none = parts_of(nothing);
    expect_scattered(none, way, device_sides(none));
  }
}

TEST_P(scatter_suite, no_entries_do_nothing) {
  const std::vector<part> none;
  const auto on = device_sides(none);
  for (const auto way : ways) {
    expect_scattered(none, way, on);
    run(kernel_scatter{nullptr, nullptr, 0, way});
  }
}

TEST_P(scatter_suite, takes_any_number_of_entries) {
  for (const std::size_t count : {1U, 7U, 8U, 9U, 63U, 64U, 65U, 700U}) {
    SCOPED_TRACE(count);
    const auto parts = parts_of(many_lengths(count), 5, 11);
    const auto on = device_sides(parts);
    for (const auto way : ways) {
      expect_scattered(parts, way, on);
    }
  }
}

// In the packed run the last range comes first, and all are without a gap.
TEST_P(scatter_suite, entries_have_any_order_and_no_gaps) {
  auto parts = parts_of(many_lengths(300));
  bytes_t at = 0;
  std::for_each(parts.rbegin(), parts.rend(), [&at](part& one) {
    one.packed = at;
    at += one.bytes;
  });
  const auto on = device_sides(parts);
  for (const auto way : ways) {
    expect_scattered(parts, way, on);
  }
}

TEST_P(scatter_suite, any_shape_gives_the_same_result) {
  const auto parts = parts_of(many_lengths(200), 1, 2);
  const auto on = device_sides(parts);
  for (const auto shape : {launch_shape{1, 64}, launch_shape{1, 1024}, launch_shape{3, 192},
                           launch_shape{0, 256}, launch_shape{7, 0}, launch_shape{5000, 64}}) {
    SCOPED_TRACE(testing::Message() << shape.blocks << " x " << shape.threads);
    for (const auto way : ways) {
      expect_scattered(parts, way, on, on, shape);
    }
  }
}

// As the copy engine's ring, and the other way about.
TEST_P(scatter_suite, reaches_pinned_memory_on_either_side) {
  const auto parts = parts_of(many_lengths(200), 3, 0);
  const auto length = size_of(parts);
  auto* const device = device_memory(length);
  auto* const pinned = pinned_memory(length);
  auto* const reached = as_bytes(must(gpu().device_address(pinned)));
  for (const auto way : ways) {
    expect_scattered(parts, way, {device, pinned, length}, {device, reached, length});
    expect_scattered(parts, way, {pinned, device, length}, {reached, device, length});
  }
}

TEST_P(scatter_suite, runs_in_the_order_of_its_stream) {
  constexpr std::array<bytes_t, 3> lengths{4096, 1, 65536};
  const auto parts = parts_of(lengths);
  const auto on = device_sides(parts);
  auto* const back = device_memory(on.size);
  const auto* const table = table_of(parts, on.memory);
  const auto* const back_table = table_of(parts, back);
  const auto work = stream();
  delay(work, 5ms);
  must(gpu().launch(kernel_fill{on.memory, on.size, 21}, work));
  must(gpu().launch(kernel_scatter{on.packed, table, parts.size(), scatter_way::collect}, work));
  must(gpu().fill_async(on.memory, std::byte{0}, on.size, work));
  must(
      gpu().launch(kernel_scatter{on.packed, back_table, parts.size(), scatter_way::spread}, work));
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  for (const auto& one : parts) {
    EXPECT_EQ(take(back + one.place, one.bytes), pattern(one.bytes, 21, one.place));
  }
}

TEST_P(scatter_suite, runs_in_streams_of_each_device) {
  const auto parts = parts_of(many_lengths(100), 2, 6);
  const auto length = size_of(parts);
  for (int index = 0; index < device_count(); ++index) {
    const auto scope = must(runtime::scoped_device::make(gpu(), index));
    const sides on{device_memory(length, index), device_memory(length, index), length};
    put_pattern(on.memory, length, 31);
    const auto work = stream({}, index);
    const auto* const table = table_of(parts, on.memory);
    EXPECT_THAT(
        gpu().launch(kernel_scatter{on.packed, table, parts.size(), scatter_way::collect}, work),
        succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    for (const auto& one : parts) {
      EXPECT_EQ(take(on.packed + one.packed, one.bytes), pattern(one.bytes, 31, one.place));
    }
  }
}

TEST_P(scatter_suite, impossible_requests_are_refused) {
  constexpr std::array<bytes_t, 2> lengths{64, 64};
  const auto parts = parts_of(lengths);
  const auto on = device_sides(parts);
  const auto* const table = table_of(parts, on.memory);
  for (const auto way : ways) {
    expect_refused(kernel_scatter{nullptr, table, 1, way});
    expect_refused(kernel_scatter{on.packed, nullptr, 1, way});
    for (const bytes_t off : {1U, 2U, 4U}) {
      const auto place = reinterpret_cast<std::uintptr_t>(table) + off;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that no entry can have
      const auto* const odd = reinterpret_cast<const scatter_entry*>(place);
      expect_refused(kernel_scatter{on.packed, odd, 1, way});
    }
    expect_refused(kernel_scatter{on.packed, table, 1, way}, {1, 100});
  }
  expect_usable();
}

TEST_P(scatter_suite, memory_that_the_device_cannot_reach_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  BERTH_NEEDS(reaches_pageable());
  constexpr std::array<bytes_t, 1> lengths{64};
  const auto parts = parts_of(lengths);
  const auto on = device_sides(parts);
  auto* const heap = pageable_memory(on.size);
  const auto* const table = table_of(parts, on.memory);
  const auto* const heap_table = table_of(parts, heap);
  const std::vector<part> outside{{.place = on.size - 32, .packed = 0, .bytes = 64}};
  const auto* const outside_table = table_of(outside, on.memory);
  auto* const pageable_table = reinterpret_cast<scatter_entry*>(heap);
  *pageable_table = *table;
  for (const auto way : ways) {
    expect_refused(kernel_scatter{heap, table, 1, way});
    expect_refused(kernel_scatter{on.packed, heap_table, 1, way});
    expect_refused(kernel_scatter{on.packed, outside_table, 1, way});
    expect_refused(kernel_scatter{on.packed, pageable_table, 1, way});
  }
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
