// SPDX-License-Identifier: Apache-2.0
// Page-locking memory of the program.
#include <sys/mman.h>

#include <array>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class registration_suite : public suite {
protected:
  static constexpr bytes_t size = 1 * mib;

  void SetUp() override {
    suite::SetUp();
    BERTH_NEEDS(cannot_register());
  }
  void unregister_at_end(void* memory) {
    at_end([this, memory] { EXPECT_THAT(gpu().unregister_host(memory), succeeds()); });
  }
};
BERTH_CONFORMANCE_SUITE(registration_suite);

TEST_P(registration_suite, contents_stay) {
  auto* memory = pageable_memory(size);
  runtime::write_pattern(memory, size, 1);
  EXPECT_THAT(gpu().register_host(memory, size), succeeds());
  EXPECT_EQ(runtime::count_mismatches(memory, size, 1), 0U);
  EXPECT_THAT(gpu().unregister_host(memory), succeeds());
  EXPECT_EQ(runtime::count_mismatches(memory, size, 1), 0U);
}

TEST_P(registration_suite, any_start_and_length_will_do) {
  auto* memory = pageable_memory(size);
  auto* device = device_memory(size);
  struct range {
    bytes_t start;
    bytes_t length;
  };
  for (const auto [start, length] :
       {range{1, 1}, range{3, 4096}, range{4095, 2}, range{100, 65537}, range{4096, 4095}}) {
    EXPECT_THAT(gpu().register_host(memory + start, length), succeeds()) << start;
    runtime::write_pattern(memory + start, length, start);
    const auto work = stream();
    EXPECT_THAT(gpu().copy_async(device, memory + start, length, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(mismatches_in(device, length, start), 0U);
    EXPECT_THAT(gpu().unregister_host(memory + start), succeeds()) << start;
  }
}

TEST_P(registration_suite, twice_is_refused) {
  auto* memory = registered_memory(size);
  EXPECT_THAT(gpu().register_host(memory, size), fails_with(errc::gpu_already_registered));
  expect_usable();
}

TEST_P(registration_suite, an_overlap_is_refused) {
  auto* memory = pageable_memory(4 * size);
  must(gpu().register_host(memory + size, 2 * size));
  unregister_at_end(memory + size);
  for (const bytes_t start : {bytes_t{0}, size + 4096, 2 * size}) {
    EXPECT_THAT(gpu().register_host(memory + start, 2 * size),
                fails_with(errc::gpu_already_registered))
        << start;
  }
  EXPECT_THAT(gpu().register_host(memory, 4 * size), fails_with(errc::gpu_already_registered));
  EXPECT_THAT(gpu().register_host(memory + size + 4096, 4096),
              fails_with(errc::gpu_already_registered));
  EXPECT_EQ(must(gpu().classify(memory)).kind, memory_kind::pageable)
      << "a refused registration has done nothing";
}

TEST_P(registration_suite, neighbours_are_separate) {
  auto* memory = pageable_memory(3 * size);
  for (const bytes_t start : {bytes_t{0}, size, 2 * size}) {
    EXPECT_THAT(gpu().register_host(memory + start, size), succeeds());
  }
  EXPECT_THAT(gpu().unregister_host(memory + size), succeeds());
  EXPECT_EQ(must(gpu().classify(memory + size)).kind, memory_kind::pageable);
  EXPECT_NE(must(gpu().classify(memory)).kind, memory_kind::pageable);
  EXPECT_THAT(gpu().unregister_host(memory), succeeds());
  EXPECT_THAT(gpu().unregister_host(memory + 2 * size), succeeds());
}

TEST_P(registration_suite, works_again_after_unregistering) {
  auto* memory = pageable_memory(size);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(gpu().register_host(memory, size), succeeds());
    EXPECT_THAT(gpu().unregister_host(memory), succeeds());
  }
}

TEST_P(registration_suite, what_was_not_registered_is_not_unregistered) {
  auto* memory = pageable_memory(size);
  EXPECT_THAT(gpu().unregister_host(memory), fails_with(errc::gpu_not_registered));
  must(gpu().register_host(memory, size));
  must(gpu().unregister_host(memory));
  EXPECT_THAT(gpu().unregister_host(memory), fails_with(errc::gpu_not_registered)) << "twice";
  expect_usable();
}

TEST_P(registration_suite, only_the_start_is_unregistered) {
  auto* memory = registered_memory(size);
  EXPECT_THAT(gpu().unregister_host(memory + 4096), fails_with(errc::gpu_not_registered));
  EXPECT_NE(must(gpu().classify(memory)).kind, memory_kind::pageable) << "it still is";
}

TEST_P(registration_suite, pinned_memory_is_not_unregistered) {
  auto* memory = pinned_memory(size);
  EXPECT_THAT(gpu().unregister_host(memory), fails_with(errc::gpu_not_registered));
  EXPECT_EQ(must(gpu().classify(memory)).kind, memory_kind::pinned);
}

TEST_P(registration_suite, nothing_is_not_registered) {
  auto* memory = pageable_memory(4096);
  EXPECT_THAT(gpu().register_host(memory, 0), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().register_host(nullptr, 4096), fails_with(errc::gpu_invalid_value));
  expect_usable();
}

TEST_P(registration_suite, pinned_memory_is_not_registered_too) {
  auto* memory = pinned_memory(size);
  EXPECT_THAT(gpu().register_host(memory, size),
              fails_with_any_of(errc::gpu_already_registered, errc::gpu_invalid_value));
  expect_usable();
}

TEST_P(registration_suite, device_memory_is_not_registered) {
  auto* memory = device_memory(size);
  EXPECT_FALSE(gpu().register_host(memory, size));
  EXPECT_EQ(must(gpu().classify(memory)).kind, memory_kind::device);
  expect_usable();
}

TEST_P(registration_suite, memory_that_cannot_be_written_is_answered) {
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  at_end([memory] { munmap(memory, size); });
  if (gpu().register_host(memory, size, {.access = runtime::host_access::read_only})) {
    EXPECT_THAT(gpu().unregister_host(memory), succeeds());
  }
  expect_usable();
}

TEST_P(registration_suite, options_never_change_results) {
  using runtime::host_mapping;
  using runtime::host_reach;
  auto* device = device_memory(size);
  for (const auto mapping : {host_mapping::mapped, host_mapping::unmapped}) {
    for (const auto reach : {host_reach::portable, host_reach::one_device}) {
      auto* memory = pageable_memory(size);
      EXPECT_THAT(gpu().register_host(memory, size, {.mapping = mapping, .reach = reach}),
                  succeeds());
      unregister_at_end(memory);
      runtime::write_pattern(memory, size, 3);
      EXPECT_THAT(gpu().copy(device, memory, size), succeeds());
      EXPECT_EQ(mismatches_in(device, size, 3), 0U);
    }
  }
}

TEST_P(registration_suite, no_device_cannot_register) {
  auto* memory = pageable_memory(size);
  EXPECT_FALSE(gpu().register_host(memory, size, {.device = device_count()}));
  EXPECT_EQ(must(gpu().classify(memory)).kind, memory_kind::pageable);
}

TEST_P(registration_suite, kernels_reach_registered_memory) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = registered_memory(size);
  auto* there = must(gpu().device_address(memory));
  EXPECT_THAT(gpu().launch(runtime::kernel_fill{there, size, 5}, default_stream), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(runtime::count_mismatches(memory, size, 5), 0U);
}

TEST_P(registration_suite, threads_register_side_by_side) {
  constexpr bytes_t count = 4;
  auto* memory = pageable_memory(count * size);
  std::vector<std::thread> threads;
  for (bytes_t i = 0; i < count; ++i) {
    threads.emplace_back([&, mine = memory + i * size] {
      for (int round = 0; round < 8; ++round) {
        EXPECT_THAT(gpu().register_host(mine, size), succeeds());
        EXPECT_THAT(gpu().unregister_host(mine), succeeds());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace berth::conformance
