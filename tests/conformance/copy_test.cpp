// SPDX-License-Identifier: Apache-2.0
// copy: results between all kinds of memory, and its place among other work.
#include <array>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

constexpr std::array<bytes_t, 11> sizes{1,    2,    3,     7,     8,           4095,
                                        4096, 4097, 65536, 65537, 1 * mib + 13};

class copy_suite : public suite {};
BERTH_CONFORMANCE_SUITE(copy_suite);

TEST_P(copy_suite, any_size_arrives_and_nothing_around_it_changes) {
  constexpr bytes_t margin = 64;
  for (const auto size : sizes) {
    SCOPED_TRACE(size);
    auto* device = device_memory(size + 2 * margin);
    put(device, repeated(size + 2 * margin, 0xee));
    const auto source = pattern(size, size);
    EXPECT_THAT(gpu().copy(device + margin, source.data(), size), succeeds());
    EXPECT_EQ(take(device, margin), repeated(margin, 0xee));
    EXPECT_EQ(take(device + margin, size), source);
    EXPECT_EQ(take(device + margin + size, margin), repeated(margin, 0xee));
  }
}

TEST_P(copy_suite, any_alignment_will_do) {
  constexpr bytes_t size = 4099;
  auto* device = device_memory(size + 64);
  auto* host = pinned_memory(size + 64);
  for (const bytes_t to : {0U, 1U, 2U, 4U, 7U, 15U, 33U}) {
    for (const bytes_t from : {0U, 1U, 3U, 8U, 17U}) {
      runtime::write_pattern(host + from, size, to * 64 + from);
      EXPECT_THAT(gpu().copy(device + to, host + from, size), succeeds());
      EXPECT_EQ(mismatches_in(device + to, size, to * 64 + from), 0U) << to << " " << from;
    }
  }
}

TEST_P(copy_suite, every_kind_reaches_every_kind) {
  constexpr bytes_t size = 256 * kib + 5;
  std::uint64_t seed = 1;
  for (const auto from : kinds()) {
    for (const auto to : kinds()) {
      SCOPED_TRACE(testing::Message() << to_string(from) << " to " << to_string(to));
      auto* source = memory_of(from, size);
      auto* target = memory_of(to, size);
      put_pattern(source, size, ++seed);
      EXPECT_THAT(gpu().copy(target, source, size), succeeds());
      must(gpu().synchronize_stream(default_stream));
      EXPECT_EQ(mismatches_in(target, size, seed), 0U);
      EXPECT_EQ(mismatches_in(source, size, seed), 0U) << "the source stays";
    }
  }
}

TEST_P(copy_suite, nothing_is_copied_from_anywhere) {
  auto* device = device_memory(64);
  bytes host(64);
  EXPECT_THAT(gpu().copy(nullptr, nullptr, 0), succeeds());
  EXPECT_THAT(gpu().copy(device, host.data(), 0), succeeds());
  EXPECT_THAT(gpu().copy(host.data(), device, 0), succeeds());
}

TEST_P(copy_suite, a_large_copy_arrives) {
  constexpr bytes_t size = 48 * mib + 3;
  auto* device = device_memory(size);
  put_pattern(device, size, 9);
  EXPECT_EQ(mismatches_in(device, size, 9), 0U);
}

TEST_P(copy_suite, a_pageable_source_may_change_after_the_call) {
  constexpr bytes_t size = 2 * mib;
  auto* device = device_memory(size);
  auto source = pattern(size, 1);
  EXPECT_THAT(gpu().copy(device, source.data(), size), succeeds());
  runtime::write_pattern(source.data(), size, 2);
  EXPECT_EQ(mismatches_in(device, size, 1), 0U);
}

TEST_P(copy_suite, a_pinned_source_may_change_after_the_call) {
  constexpr bytes_t size = 8 * mib;
  auto* device = device_memory(size);
  auto* source = pinned_memory(size);
  runtime::write_pattern(source, size, 1);
  EXPECT_THAT(gpu().copy(device, source, size), succeeds());
  runtime::write_pattern(source, size, 2);
  EXPECT_EQ(mismatches_in(device, size, 1), 0U);
}

TEST_P(copy_suite, a_host_result_is_there_after_the_call) {
  constexpr bytes_t size = 8 * mib;
  auto* device = device_memory(size);
  put_pattern(device, size, 4);
  for (const auto kind : {memory_kind::pageable, memory_kind::pinned}) {
    auto* target = memory_of(kind, size);
    EXPECT_THAT(gpu().copy(target, device, size), succeeds());
    EXPECT_EQ(runtime::count_mismatches(target, size, 4), 0U) << to_string(kind);
  }
}

TEST_P(copy_suite, comes_after_earlier_work_of_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 1 * mib;
  auto* device = device_memory(size);
  delay(default_stream);
  must(gpu().fill_async(device, std::byte{5}, size, default_stream));
  EXPECT_EQ(take(device, size), repeated(size, 5));
}

TEST_P(copy_suite, comes_after_earlier_work_of_a_blocking_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 1 * mib;
  auto* device = device_memory(size);
  const auto other = blocking_stream();
  delay(other);
  must(gpu().fill_async(device, std::byte{6}, size, other));
  EXPECT_EQ(take(device, size), repeated(size, 6));
}

TEST_P(copy_suite, comes_before_later_work_of_a_blocking_stream) {
  constexpr bytes_t size = 8 * mib;
  auto* first = device_memory(size);
  auto* second = device_memory(size);
  auto* back = pinned_memory(size);
  const auto other = blocking_stream();
  put_pattern(first, size, 7);
  EXPECT_THAT(gpu().copy(second, first, size), succeeds());
  EXPECT_THAT(gpu().copy_async(back, second, size, other), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(other), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 7), 0U);
}

TEST_P(copy_suite, a_non_blocking_stream_waits_for_it_by_an_event) {
  constexpr bytes_t size = 8 * mib;
  auto* first = device_memory(size);
  auto* second = device_memory(size);
  auto* back = pinned_memory(size);
  const auto other = stream();
  const auto copied = event();
  put_pattern(first, size, 8);
  EXPECT_THAT(gpu().copy(second, first, size), succeeds());
  EXPECT_THAT(gpu().record_event(copied, default_stream), succeeds());
  EXPECT_THAT(gpu().wait_event(other, copied), succeeds());
  EXPECT_THAT(gpu().copy_async(back, second, size, other), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(other), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 8), 0U);
}

TEST_P(copy_suite, does_not_wait_for_a_non_blocking_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 4096;
  auto* device = device_memory(size);
  auto* host = pinned_memory(size);
  runtime::write_pattern(host, size, 3);
  const auto held = new_gate();
  const auto other = stream();
  held.close(other);
  EXPECT_THAT(gpu().copy(device, host, size), succeeds());
  EXPECT_THAT(gpu().query_stream(other), gives(progress::pending));
  held.open();
  EXPECT_EQ(mismatches_in(device, size, 3), 0U);
}

TEST_P(copy_suite, goes_between_devices) {
  BERTH_NEEDS(fewer_devices_than(2));
  constexpr bytes_t size = 1 * mib + 3;
  auto* first = device_memory(size, 0);
  auto* second = device_memory(size, 1);
  put_pattern(first, size, 1);
  EXPECT_THAT(gpu().copy(second, first, size), succeeds());
  must(gpu().synchronize_device(0));
  EXPECT_EQ(mismatches_in(second, size, 1), 0U);
}

TEST_P(copy_suite, works_whatever_device_is_current) {
  BERTH_NEEDS(fewer_devices_than(2));
  constexpr bytes_t size = 64 * kib;
  for (int current = 0; current < 2; ++current) {
    must(gpu().set_current_device(current));
    auto* memory = device_memory(size, 1 - current);
    put_pattern(memory, size, 2);
    must(gpu().synchronize_device(1 - current));
    EXPECT_EQ(mismatches_in(memory, size, 2), 0U);
  }
}

TEST_P(copy_suite, a_range_that_leaves_its_allocation_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  constexpr bytes_t size = 1 * mib;
  auto* device = device_memory(size);
  auto* pinned = pinned_memory(size);
  auto* host = pageable_memory(2 * size);
  EXPECT_THAT(gpu().copy(device, host, size + 1), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().copy(host, device + size / 2, size), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().copy(pinned + 1, host, size), fails_with(errc::gpu_invalid_value));
  expect_usable();
}

TEST_P(copy_suite, freed_memory_is_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  constexpr bytes_t size = 1 * mib;
  auto* host = pinned_memory(size);
  auto* device = must(gpu().allocate_device(0, size));
  must(gpu().free_device(device));
  EXPECT_THAT(gpu().copy(device, host, size), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().copy(host, device, size), fails_with(errc::gpu_invalid_value));
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
