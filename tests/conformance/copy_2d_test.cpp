// SPDX-License-Identifier: Apache-2.0
// Copies by rows: what lies between the rows stays, in any direction.
#include <array>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

struct shape {
  std::size_t width;
  std::size_t rows;
  std::size_t from_pitch;
  std::size_t to_pitch;
};

constexpr std::array shapes{
    shape{1, 1, 1, 1},         shape{64, 16, 64, 64},      shape{100, 33, 128, 256},
    shape{3, 100, 7, 4},       shape{4096, 5, 4096, 8192}, shape{1023, 64, 1024, 1023},
    shape{512, 300, 513, 640},
};

constexpr int untouched = 0xee;

class copy_2d_suite : public suite {
protected:
  // Copies by `how`, and checks each row and each gap.
  template <typename Copy>
  void check(memory_kind from, memory_kind to, const shape& what, Copy how) {
    SCOPED_TRACE(testing::Message() << to_string(from) << " to " << to_string(to) << ", width "
                                    << what.width << ", rows " << what.rows);
    const auto from_size = what.from_pitch * what.rows;
    const auto to_size = what.to_pitch * what.rows;
    auto* source = memory_of(from, from_size);
    auto* target = memory_of(to, to_size);
    put_pattern(source, from_size, 1);
    put(target, repeated(to_size, untouched));
    how(runtime::copy_2d{target, what.to_pitch, source, what.from_pitch, what.width, what.rows});

    const auto sent = pattern(from_size, 1);
    auto expected = repeated(to_size, untouched);
    for (std::size_t row = 0; row < what.rows; ++row) {
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(row * what.from_pitch), what.width,
                  expected.begin() + static_cast<std::ptrdiff_t>(row * what.to_pitch));
    }
    EXPECT_EQ(take(target, to_size), expected);
  }

  template <typename Copy>
  void check_all(Copy how) {
    for (const auto from : kinds()) {
      for (const auto to : kinds()) {
        check(from, to, shape{100, 33, 128, 256}, how);
      }
    }
    for (const auto& what : shapes) {
      check(memory_kind::pinned, memory_kind::device, what, how);
      check(memory_kind::device, memory_kind::pinned, what, how);
      check(memory_kind::pageable, memory_kind::device, what, how);
      check(memory_kind::device, memory_kind::device, what, how);
    }
  }
};
BERTH_CONFORMANCE_SUITE(copy_2d_suite);

TEST_P(copy_2d_suite, rows_arrive_and_gaps_stay) {
  check_all([this](const runtime::copy_2d& what) {
    EXPECT_THAT(gpu().copy_2d_sync(what), succeeds());
    must(gpu().synchronize_stream(default_stream));
  });
}

TEST_P(copy_2d_suite, rows_arrive_and_gaps_stay_in_a_stream) {
  const auto work = stream();
  check_all([this, work](const runtime::copy_2d& what) {
    EXPECT_THAT(gpu().copy_2d_async(what, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  });
}

TEST_P(copy_2d_suite, no_rows_and_no_width_copy_nothing) {
  constexpr bytes_t size = 4096;
  auto* device = device_memory(size);
  auto* host = pinned_memory(size);
  put_pattern(device, size, 1);
  const auto work = stream();
  for (const auto& what : {runtime::copy_2d{device, 64, host, 64, 0, 16},
                           runtime::copy_2d{device, 64, host, 64, 64, 0},
                           runtime::copy_2d{device, 64, host, 64, 0, 0}}) {
    EXPECT_THAT(gpu().copy_2d_sync(what), succeeds());
    EXPECT_THAT(gpu().copy_2d_async(what, work), succeeds());
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(device, size, 1), 0U);
}

TEST_P(copy_2d_suite, a_pitch_below_the_width_is_refused) {
  auto* device = device_memory(4096);
  auto* host = pinned_memory(4096);
  const auto work = stream();
  for (const auto& what : {runtime::copy_2d{device, 63, host, 64, 64, 4},
                           runtime::copy_2d{device, 64, host, 63, 64, 4},
                           runtime::copy_2d{device, 0, host, 0, 64, 4}}) {
    EXPECT_THAT(gpu().copy_2d_sync(what), fails_with(errc::gpu_invalid_value));
    EXPECT_THAT(gpu().copy_2d_async(what, work), fails_with(errc::gpu_invalid_value));
  }
  expect_usable();
}

TEST_P(copy_2d_suite, a_pinned_source_is_read_when_the_stream_gets_there) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr std::size_t pitch = 512;
  constexpr std::size_t rows = 64;
  auto* device = device_memory(pitch * rows);
  auto* source = pinned_memory(pitch * rows);
  runtime::write_pattern(source, pitch * rows, 1);
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  EXPECT_THAT(gpu().copy_2d_async({device, pitch, source, pitch, pitch, rows}, work), succeeds());
  runtime::write_pattern(source, pitch * rows, 2);
  held.open();
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(device, pitch * rows, 2), 0U);
}

TEST_P(copy_2d_suite, a_pageable_source_has_been_read_when_the_call_returns) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(treats_pageable_as_pinned());
  constexpr std::size_t pitch = 512;
  constexpr std::size_t rows = 64;
  auto* device = device_memory(pitch * rows);
  auto* source = pageable_memory(pitch * rows);
  runtime::write_pattern(source, pitch * rows, 1);
  const auto work = stream();
  delay(work);
  EXPECT_THAT(gpu().copy_2d_async({device, pitch, source, pitch, pitch, rows}, work), succeeds());
  runtime::write_pattern(source, pitch * rows, 2);
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(device, pitch * rows, 1), 0U);
}

TEST_P(copy_2d_suite, comes_after_earlier_work_of_the_default_stream) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr std::size_t pitch = 256;
  constexpr std::size_t rows = 16;
  auto* device = device_memory(pitch * rows);
  bytes back(pitch * rows);
  delay(default_stream);
  must(gpu().fill_async(device, std::byte{4}, pitch * rows, default_stream));
  EXPECT_THAT(gpu().copy_2d_sync({back.data(), pitch, device, pitch, pitch, rows}), succeeds());
  EXPECT_EQ(back, repeated(pitch * rows, 4));
}

TEST_P(copy_2d_suite, rows_that_leave_their_allocation_are_refused) {
  BERTH_NEEDS(undefined_outside_sim());
  auto* device = device_memory(4096);
  auto* host = pinned_memory(8192);
  EXPECT_THAT(gpu().copy_2d_sync({device, 64, host, 64, 64, 65}),
              fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().copy_2d_sync({device, 64, host, 64, 64, 64}), succeeds()) << "all of it";
  EXPECT_THAT(gpu().copy_2d_sync({device + 32, 64, host, 64, 32, 64}), succeeds())
      << "the last row's gap need not be there";
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
