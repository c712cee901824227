// SPDX-License-Identifier: Apache-2.0
// Memory that both sides use, hints for it, and moving it ahead of time.
#include <array>
#include <limits>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::advice;
using runtime::memory_location;

class managed_suite : public suite {
protected:
  static constexpr bytes_t size = 4 * mib;

  void SetUp() override {
    suite::SetUp();
    BERTH_NEEDS(lacks(capability::managed));
  }
};
BERTH_CONFORMANCE_SUITE(managed_suite);

TEST_P(managed_suite, kernels_see_what_the_host_wrote) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = managed_memory(size);
  auto* wrong = counter();
  runtime::write_pattern(memory, size, 1);
  must(gpu().launch(runtime::kernel_verify{memory, size, 1, 0, wrong}, default_stream));
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(count_in(wrong), 0U);
}

TEST_P(managed_suite, the_host_sees_what_kernels_wrote) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = managed_memory(size);
  must(gpu().launch(runtime::kernel_fill{memory, size, 2}, default_stream));
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(runtime::count_mismatches(memory, size, 2), 0U);
}

TEST_P(managed_suite, both_sides_take_turns) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = managed_memory(size);
  auto* wrong = counter();
  for (std::uint64_t round = 0; round < 6; ++round) {
    runtime::write_pattern(memory, size, 2 * round);
    must(gpu().launch(runtime::kernel_verify{memory, size, 2 * round, 0, wrong}, default_stream));
    must(gpu().launch(runtime::kernel_fill{memory, size, 2 * round + 1}, default_stream));
    must(gpu().synchronize_stream(default_stream));
    EXPECT_EQ(runtime::count_mismatches(memory, size, 2 * round + 1), 0U);
  }
  EXPECT_EQ(count_in(wrong), 0U);
}

TEST_P(managed_suite, a_second_device_uses_it_too) {
  BERTH_NEEDS(lacks(capability::kernels));
  BERTH_NEEDS(fewer_devices_than(2));
  auto* memory = managed_memory(size, 0);
  auto* wrong = counter(1);
  must(gpu().launch(runtime::kernel_fill{memory, size, 3}, default_stream));
  must(gpu().synchronize_device(0));
  must(gpu().set_current_device(1));
  must(gpu().launch(runtime::kernel_verify{memory, size, 3, 0, wrong}, default_stream));
  EXPECT_THAT(gpu().synchronize_device(1), succeeds());
  EXPECT_EQ(count_in(wrong), 0U);
}

TEST_P(managed_suite, touching_leaves_the_contents) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = managed_memory(size);
  runtime::write_pattern(memory, size, 4);
  for (const auto access : {runtime::touch_access::read, runtime::touch_access::write}) {
    must(gpu().launch(runtime::kernel_touch{memory, size, 4096, access}, default_stream));
    must(gpu().synchronize_stream(default_stream));
  }
  EXPECT_EQ(runtime::count_mismatches(memory, size, 4), 0U);
}

TEST_P(managed_suite, every_advice_leaves_the_contents) {
  BERTH_NEEDS(lacks(capability::advise));
  auto* memory = managed_memory(size);
  put_pattern(memory, size, 5);
  for (const auto what :
       {advice::set_read_mostly, advice::unset_read_mostly, advice::set_preferred_location,
        advice::unset_preferred_location, advice::set_accessed_by, advice::unset_accessed_by}) {
    for (const auto where : {memory_location{side::device, 0}, memory_location{side::host, 0}}) {
      EXPECT_THAT(gpu().advise(memory, size, what, where), succeeds())
          << static_cast<int>(what) << " " << to_string(where.where);
    }
  }
  EXPECT_THAT(gpu().advise(memory + 1 * mib, 1 * mib, advice::set_read_mostly, {}), succeeds())
      << "part of it";
  EXPECT_EQ(mismatches_in(memory, size, 5), 0U);
}

TEST_P(managed_suite, advice_about_no_device_is_refused) {
  BERTH_NEEDS(lacks(capability::advise));
  auto* memory = managed_memory(size);
  for (const int index : {-1, device_count(), std::numeric_limits<int>::max()}) {
    for (const auto what : {advice::set_preferred_location, advice::set_accessed_by}) {
      EXPECT_THAT(gpu().advise(memory, size, what, {side::device, index}),
                  fails_with(errc::gpu_device_out_of_range));
    }
  }
  expect_usable();
}

TEST_P(managed_suite, advice_about_memory_that_is_not_managed_is_refused) {
  BERTH_NEEDS(lacks(capability::advise));
  BERTH_NEEDS(undefined_outside_sim());
  auto* device = device_memory(size);
  EXPECT_THAT(gpu().advise(device, size, advice::set_read_mostly, {}),
              fails_with(errc::gpu_invalid_value));
  auto* managed = managed_memory(size);
  EXPECT_THAT(gpu().advise(managed + 1, size, advice::set_read_mostly, {}),
              fails_with(errc::gpu_invalid_value))
      << "beyond its end";
  expect_usable();
}

TEST_P(managed_suite, coarse_grain_advice_leaves_the_contents) {
  BERTH_NEEDS(lacks(capability::coarse_grain_advice));
  auto* memory = managed_memory(size);
  put_pattern(memory, size, 6);
  EXPECT_THAT(gpu().advise(memory, size, advice::set_coarse_grain, {}), succeeds());
  EXPECT_THAT(gpu().advise(memory, size, advice::unset_coarse_grain, {}), succeeds());
  EXPECT_EQ(mismatches_in(memory, size, 6), 0U);
}

TEST_P(managed_suite, coarse_grain_advice_is_refused_where_there_is_none) {
  BERTH_NEEDS(has_after_all(capability::coarse_grain_advice));
  auto* memory = managed_memory(size);
  EXPECT_THAT(gpu().advise(memory, size, advice::set_coarse_grain, {}),
              fails_with(errc::gpu_not_supported));
  EXPECT_THAT(gpu().advise(memory, size, advice::unset_coarse_grain, {}),
              fails_with(errc::gpu_not_supported));
}

TEST_P(managed_suite, prefetching_there_and_back_leaves_the_contents) {
  BERTH_NEEDS(lacks(capability::prefetch));
  auto* memory = managed_memory(size);
  const auto work = stream();
  runtime::write_pattern(memory, size, 7);
  for (int index = 0; index < device_count(); ++index) {
    EXPECT_THAT(gpu().prefetch_async(memory, size, {side::device, index}, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_THAT(gpu().prefetch_async(memory, size, {side::host, 0}, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(runtime::count_mismatches(memory, size, 7), 0U);
  }
}

TEST_P(managed_suite, prefetching_keeps_its_place_in_the_stream) {
  BERTH_NEEDS(lacks(capability::prefetch));
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = managed_memory(size);
  auto* wrong = counter();
  const auto work = stream();
  runtime::write_pattern(memory, size, 8);
  EXPECT_THAT(gpu().prefetch_async(memory, size, {side::device, 0}, work), succeeds());
  must(gpu().launch(runtime::kernel_verify{memory, size, 8, 0, wrong}, work));
  must(gpu().launch(runtime::kernel_fill{memory, size, 9}, work));
  EXPECT_THAT(gpu().prefetch_async(memory, size, {side::host, 0}, work), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(count_in(wrong), 0U);
  EXPECT_EQ(runtime::count_mismatches(memory, size, 9), 0U);
}

TEST_P(managed_suite, prefetching_part_of_it_works) {
  BERTH_NEEDS(lacks(capability::prefetch));
  auto* memory = managed_memory(size);
  runtime::write_pattern(memory, size, 1);
  EXPECT_THAT(gpu().prefetch_async(memory + 1 * mib, 1 * mib, {side::device, 0}, default_stream),
              succeeds());
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(runtime::count_mismatches(memory, size, 1), 0U);
}

TEST_P(managed_suite, prefetching_to_no_device_is_refused) {
  BERTH_NEEDS(lacks(capability::prefetch));
  auto* memory = managed_memory(size);
  for (const int index : {-1, device_count()}) {
    EXPECT_THAT(gpu().prefetch_async(memory, size, {side::device, index}, default_stream),
                fails_with(errc::gpu_device_out_of_range));
  }
  expect_usable();
}

class no_managed_suite : public suite {};
BERTH_CONFORMANCE_SUITE(no_managed_suite);

TEST_P(no_managed_suite, advice_is_refused_where_there_is_none) {
  BERTH_NEEDS(has_after_all(capability::advise));
  EXPECT_THAT(gpu().advise(pinned_memory(4096), 4096, advice::set_read_mostly, {}),
              fails_with(errc::gpu_not_supported));
}

TEST_P(no_managed_suite, prefetching_is_refused_where_there_is_none) {
  BERTH_NEEDS(has_after_all(capability::prefetch));
  EXPECT_THAT(gpu().prefetch_async(pinned_memory(4096), 4096, {}, default_stream),
              fails_with(errc::gpu_not_supported));
}

}  // namespace
}  // namespace berth::conformance
