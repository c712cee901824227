// SPDX-License-Identifier: Apache-2.0
// Allocating and freeing each kind of memory, and running out of it.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

using runtime::coherence;
using runtime::host_caching;
using runtime::host_mapping;
using runtime::host_reach;

class memory_suite : public suite {
protected:
  static constexpr std::array<bytes_t, 8> sizes{1, 3, 8, 255, 4096, 65537, 1 * mib + 1, 16 * mib};

  // An error that says how much was asked for, in its fields and in words.
  static void expect_amounts(const error& why, bytes_t requested) {
    EXPECT_EQ(why.code(), errc::gpu_out_of_memory) << why.to_string();
    ASSERT_TRUE(why.shortage().has_value()) << why.to_string();
    EXPECT_EQ(why.shortage()->requested, requested);
    EXPECT_NE(why.message().find(format_bytes(requested)), std::string::npos) << why.message();
  }
};
BERTH_CONFORMANCE_SUITE(memory_suite);

TEST_P(memory_suite, device_memory_of_any_size_is_aligned) {
  for (const auto size : sizes) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device_memory(size)) % 256, 0U) << size;
  }
}

TEST_P(memory_suite, pinned_memory_of_any_size_is_aligned) {
  for (const auto size : sizes) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pinned_memory(size)) % 256, 0U) << size;
  }
}

TEST_P(memory_suite, managed_memory_of_any_size_is_aligned) {
  BERTH_NEEDS(lacks(capability::managed));
  for (const auto size : sizes) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(managed_memory(size)) % 256, 0U) << size;
  }
}

TEST_P(memory_suite, allocations_do_not_overlap) {
  struct range {
    std::byte* first;
    std::byte* last;
  };
  std::vector<range> all;
  for (const auto size : sizes) {
    for (const auto kind : kinds()) {
      auto* memory = memory_of(kind, size);
      all.push_back({memory, memory + size});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const range& a, const range& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LE(all[i - 1].last, all[i].first);
  }
}

TEST_P(memory_suite, nothing_cannot_be_allocated) {
  EXPECT_THAT(gpu().allocate_device(0, 0), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().allocate_pinned(0), fails_with(errc::gpu_invalid_value));
  if (has(capability::managed)) {
    EXPECT_THAT(gpu().allocate_managed(0, 0), fails_with(errc::gpu_invalid_value));
  }
}

TEST_P(memory_suite, no_device_gives_no_memory) {
  for (const int index : {-1, device_count(), std::numeric_limits<int>::max()}) {
    EXPECT_THAT(gpu().allocate_device(index, 4096), fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().allocate_pinned(4096, {.device = index}),
                fails_with(errc::gpu_device_out_of_range));
    if (has(capability::managed)) {
      EXPECT_THAT(gpu().allocate_managed(index, 4096), fails_with(errc::gpu_device_out_of_range));
    }
  }
}

TEST_P(memory_suite, null_can_always_be_freed) {
  EXPECT_THAT(gpu().free_device(nullptr), succeeds());
  EXPECT_THAT(gpu().free_pinned(nullptr), succeeds());
  if (has(capability::managed)) {
    EXPECT_THAT(gpu().free_managed(nullptr), succeeds());
  }
}

TEST_P(memory_suite, unknown_memory_cannot_be_freed) {
  auto* heap = pageable_memory(4096);
  int local = 0;
  for (void* address : {static_cast<void*>(heap), static_cast<void*>(&local)}) {
    EXPECT_THAT(gpu().free_device(address), fails_with(errc::gpu_invalid_value));
    EXPECT_THAT(gpu().free_pinned(address), fails_with(errc::gpu_invalid_value));
  }
  expect_usable();
}

TEST_P(memory_suite, freed_memory_cannot_be_freed_again) {
  auto* device = must(gpu().allocate_device(0, 4 * mib));
  EXPECT_THAT(gpu().free_device(device), succeeds());
  EXPECT_THAT(gpu().free_device(device), fails_with(errc::gpu_invalid_value));
  auto* pinned = must(gpu().allocate_pinned(4 * mib));
  EXPECT_THAT(gpu().free_pinned(pinned), succeeds());
  EXPECT_THAT(gpu().free_pinned(pinned), fails_with(errc::gpu_invalid_value));
  expect_usable();
}

TEST_P(memory_suite, the_inside_of_an_allocation_cannot_be_freed) {
  BERTH_NEEDS(tolerated_by_hip());
  auto* device = device_memory(1 * mib);
  auto* pinned = pinned_memory(1 * mib);
  EXPECT_THAT(gpu().free_device(device + 4096), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().free_pinned(pinned + 4096), fails_with(errc::gpu_invalid_value));
  put_pattern(device, 1 * mib, 1);
  EXPECT_EQ(mismatches_in(device, 1 * mib, 1), 0U) << "it is still there";
}

TEST_P(memory_suite, pinned_memory_is_not_freed_as_device_memory) {
  BERTH_NEEDS(tolerated_by_hip());
  auto* pinned = pinned_memory(1 * mib);
  EXPECT_THAT(gpu().free_device(pinned), fails_with(errc::gpu_invalid_value));
  put_pattern(pinned, 1 * mib, 2);
  EXPECT_EQ(mismatches_in(pinned, 1 * mib, 2), 0U) << "it is still there";
}

TEST_P(memory_suite, device_memory_is_not_freed_as_pinned_memory) {
  BERTH_NEEDS(tolerated_by_hip());
  auto* device = device_memory(1 * mib);
  EXPECT_THAT(gpu().free_pinned(device), fails_with(errc::gpu_invalid_value));
  put_pattern(device, 1 * mib, 3);
  EXPECT_EQ(mismatches_in(device, 1 * mib, 3), 0U) << "it is still there";
}

TEST_P(memory_suite, managed_memory_is_not_freed_as_pinned_memory) {
  BERTH_NEEDS(tolerated_by_hip());
  BERTH_NEEDS(lacks(capability::managed));
  auto* managed = managed_memory(1 * mib);
  EXPECT_THAT(gpu().free_pinned(managed), fails_with(errc::gpu_invalid_value));
  put_pattern(managed, 1 * mib, 4);
  EXPECT_EQ(mismatches_in(managed, 1 * mib, 4), 0U) << "it is still there";
}

TEST_P(memory_suite, registered_memory_is_not_freed) {
  BERTH_NEEDS(cannot_register());
  BERTH_NEEDS(tolerated_by_hip());
  auto* memory = registered_memory(1 * mib);
  EXPECT_THAT(gpu().free_pinned(memory), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().free_device(memory), fails_with(errc::gpu_invalid_value));
  put_pattern(memory, 1 * mib, 5);
  EXPECT_EQ(mismatches_in(memory, 1 * mib, 5), 0U);
}

TEST_P(memory_suite, too_much_device_memory_says_how_much_there_is) {
  const auto total = must(gpu().memory_info(0)).total;
  const auto requested = total + 1 * gib;
  const auto answer = gpu().allocate_device(0, requested);
  ASSERT_FALSE(answer) << "more than the device has";
  expect_amounts(answer.error(), requested);
  const auto& amounts = *answer.error().shortage();
  EXPECT_EQ(amounts.total, total);
  ASSERT_TRUE(amounts.free.has_value());
  EXPECT_LE(*amounts.free, total);
  expect_usable();
}

TEST_P(memory_suite, too_much_pinned_memory_says_so) {
  constexpr auto requested = 1024 * tib;
  const auto answer = gpu().allocate_pinned(requested);
  ASSERT_FALSE(answer);
  expect_amounts(answer.error(), requested);
  expect_usable();
}

TEST_P(memory_suite, a_size_near_the_end_of_the_numbers_is_refused) {
  constexpr auto most = std::numeric_limits<bytes_t>::max();
  for (const auto requested : {most, most - 4095, most / 2}) {
    EXPECT_THAT(gpu().allocate_device(0, requested),
                fails_with_any_of(errc::gpu_out_of_memory, errc::gpu_invalid_value));
    EXPECT_THAT(gpu().allocate_pinned(requested),
                fails_with_any_of(errc::gpu_out_of_memory, errc::gpu_invalid_value));
  }
  expect_usable();
}

TEST_P(memory_suite, memory_comes_back_after_running_out) {
  BERTH_NEEDS(undefined_outside_sim());  // a real device is not ours to fill up
  const auto half = must(gpu().memory_info(0)).free / 2 + 1;
  auto* first = must(gpu().allocate_device(0, half));
  EXPECT_THAT(gpu().allocate_device(0, half), fails_with(errc::gpu_out_of_memory));
  EXPECT_THAT(gpu().free_device(first), succeeds());
  auto* second = must(gpu().allocate_device(0, half));
  EXPECT_THAT(gpu().free_device(second), succeeds());
}

TEST_P(memory_suite, pinned_memory_is_the_hosts_to_use) {
  for (const auto size : sizes) {
    auto* memory = pinned_memory(size);
    runtime::write_pattern(memory, size, size);
    EXPECT_EQ(runtime::count_mismatches(memory, size, size), 0U);
  }
}

struct pinned_flavour {
  const char* what;
  runtime::pinned_options options;
};

const std::array pinned_flavours{
    pinned_flavour{"coarse", {.grain = coherence::coarse}},
    pinned_flavour{"unknown grain", {.grain = coherence::unknown}},
    pinned_flavour{"write-combined", {.caching = host_caching::write_combined}},
    pinned_flavour{"unmapped", {.mapping = host_mapping::unmapped}},
    pinned_flavour{"for one device", {.reach = host_reach::one_device}},
    pinned_flavour{"on NUMA node 0", {.numa_node = 0}},
    pinned_flavour{"all at once",
                   {.grain = coherence::coarse,
                    .caching = host_caching::write_combined,
                    .mapping = host_mapping::unmapped,
                    .reach = host_reach::one_device,
                    .numa_node = 0}},
};

TEST_P(memory_suite, traits_of_pinned_memory_never_change_results) {
  constexpr bytes_t size = 64 * kib;
  for (const auto& flavour : pinned_flavours) {
    SCOPED_TRACE(flavour.what);
    auto* from = pinned_memory(size, flavour.options);
    auto* back = pinned_memory(size, flavour.options);
    auto* device = device_memory(size);
    const auto work = stream();
    runtime::write_pattern(from, size, 8);
    EXPECT_THAT(gpu().copy_async(device, from, size, work), succeeds());
    EXPECT_THAT(gpu().copy_async(back, device, size, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(runtime::count_mismatches(back, size, 8), 0U);
    EXPECT_EQ(must(gpu().classify(from)).kind, memory_kind::pinned);
  }
}

TEST_P(memory_suite, pinned_grain_is_as_asked_for) {
  BERTH_NEEDS(lacks(capability::host_coherence));
  for (const auto grain : {coherence::fine, coherence::coarse}) {
    EXPECT_EQ(must(gpu().classify(pinned_memory(4096, {.grain = grain}))).grain, grain);
  }
}

TEST_P(memory_suite, fine_grained_device_memory_works) {
  BERTH_NEEDS(lacks(capability::fine_grained_device));
  BERTH_NEEDS(lacks_fine_grained_memory());
  auto* memory = as_bytes(must(gpu().allocate_device(0, 1 * mib, coherence::fine)));
  at_end([this, memory] { EXPECT_THAT(gpu().free_device(memory), succeeds()); });
  put_pattern(memory, 1 * mib, 6);
  EXPECT_EQ(mismatches_in(memory, 1 * mib, 6), 0U);
  EXPECT_EQ(must(gpu().classify(memory)).kind, memory_kind::device);
}

TEST_P(memory_suite, fine_grained_device_memory_is_refused_where_there_is_none) {
  if (!lacks_fine_grained_memory()) {
    BERTH_NEEDS(has_after_all(capability::fine_grained_device));
  }
  EXPECT_THAT(gpu().allocate_device(0, 4096, coherence::fine), fails_with(errc::gpu_not_supported));
  auto* memory = as_bytes(must(gpu().allocate_device(0, 4096, coherence::unknown)));
  EXPECT_THAT(gpu().free_device(memory), succeeds()) << "unknown is coarse";
}

TEST_P(memory_suite, managed_memory_is_refused_where_there_is_none) {
  BERTH_NEEDS(has_after_all(capability::managed));
  EXPECT_THAT(gpu().allocate_managed(0, 4096), fails_with(errc::gpu_not_supported));
}

TEST_P(memory_suite, memory_is_of_the_device_named_not_of_the_current_one) {
  BERTH_NEEDS(fewer_devices_than(2));
  EXPECT_EQ(must(gpu().classify(device_memory(4096, 1))).device, 1);
  must(gpu().set_current_device(1));
  EXPECT_EQ(must(gpu().classify(device_memory(4096, 0))).device, 0);
}

TEST_P(memory_suite, device_addresses_keep_the_offset) {
  for (const auto kind : {memory_kind::pinned, memory_kind::registered, memory_kind::managed}) {
    const auto all = kinds();
    if (std::find(all.begin(), all.end(), kind) == all.end()) {
      continue;
    }
    SCOPED_TRACE(to_string(kind));
    auto* memory = memory_of(kind, 64 * kib);
    auto* base = as_bytes(must(gpu().device_address(memory)));
    for (const std::ptrdiff_t offset : {1, 4095, 4096, 65535}) {
      EXPECT_THAT(gpu().device_address(memory + offset), gives(base + offset));
    }
  }
}

TEST_P(memory_suite, device_addresses_of_other_memory_are_refused) {
  auto* heap = pageable_memory(4096);
  EXPECT_THAT(gpu().device_address(heap), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().device_address(nullptr), fails_with(errc::gpu_invalid_value));
  EXPECT_THAT(gpu().device_address(device_memory(4096)), fails_with(errc::gpu_invalid_value));
}

TEST_P(memory_suite, many_allocations_come_and_go) {
  constexpr int rounds = 4;
  constexpr std::size_t live = 64;
  for (int round = 0; round < rounds; ++round) {
    std::vector<void*> all;
    for (std::size_t i = 0; i < live; ++i) {
      all.push_back(must(gpu().allocate_device(0, 1 + i * 4099)));
    }
    std::reverse(all.begin() + live / 2, all.end());
    for (void* memory : all) {
      EXPECT_THAT(gpu().free_device(memory), succeeds());
    }
  }
}

}  // namespace
}  // namespace berth::conformance
