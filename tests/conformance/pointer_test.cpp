// SPDX-License-Identifier: Apache-2.0
// What an address is: classification of every kind of memory, at its start, inside, and after it
// has gone.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

const int in_static_memory = 1;

class pointer_suite : public suite {
protected:
  static constexpr bytes_t size = 4 * mib;
  static constexpr std::array<bytes_t, 6> offsets{0, 1, 4095, 4096, size / 2 + 3, size - 1};

  [[nodiscard]] memory_kind kind_of(const void* address) const {
    return must(gpu().classify(address)).kind;
  }
};
BERTH_CONFORMANCE_SUITE(pointer_suite);

TEST_P(pointer_suite, null_is_unknown) {
  const auto info = must(gpu().classify(nullptr));
  EXPECT_EQ(info.kind, memory_kind::unknown);
  EXPECT_EQ(info.base, nullptr);
  EXPECT_FALSE(info.device.has_value());
}

TEST_P(pointer_suite, memory_of_the_program_is_pageable) {
  const int on_stack = 0;
  const auto on_heap = std::make_unique<bytes>(100);
  auto* large = pageable_memory(size);
  EXPECT_EQ(kind_of(&on_stack), memory_kind::pageable);
  EXPECT_EQ(kind_of(on_heap->data() + 1), memory_kind::pageable);
  EXPECT_EQ(kind_of(&in_static_memory), memory_kind::pageable);
  EXPECT_EQ(kind_of("a literal"), memory_kind::pageable);
  for (const auto offset : offsets) {
    EXPECT_EQ(kind_of(large + offset), memory_kind::pageable);
  }
}

TEST_P(pointer_suite, a_mapped_file_is_pageable) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(ftruncate(fileno(file.get()), 65536), 0);
  void* mapped = mmap(nullptr, 65536, PROT_READ, MAP_SHARED, fileno(file.get()), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(kind_of(as_bytes(mapped) + 4100), memory_kind::pageable);
  munmap(mapped, 65536);
}

TEST_P(pointer_suite, memory_is_never_touched) {
  void* closed = mmap(nullptr, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  EXPECT_EQ(kind_of(closed), memory_kind::pageable);
  munmap(closed, 65536);
  EXPECT_EQ(kind_of(closed), memory_kind::pageable);
  EXPECT_EQ(kind_of(reinterpret_cast<void*>(std::uintptr_t{1})), memory_kind::pageable);
  EXPECT_EQ(kind_of(reinterpret_cast<void*>(~std::uintptr_t{0})), memory_kind::pageable);
}

TEST_P(pointer_suite, device_memory_is_known_everywhere_inside) {
  for (int index = 0; index < device_count(); ++index) {
    auto* memory = device_memory(size, index);
    for (const auto offset : offsets) {
      const auto info = must(gpu().classify(memory + offset));
      EXPECT_EQ(info.kind, memory_kind::device) << offset;
      EXPECT_EQ(info.device, index) << offset;
      EXPECT_EQ(info.device_address, memory + offset);
    }
  }
}

TEST_P(pointer_suite, pinned_memory_is_known_everywhere_inside) {
  auto* memory = pinned_memory(size);
  for (const auto offset : offsets) {
    const auto info = must(gpu().classify(memory + offset));
    EXPECT_EQ(info.kind, memory_kind::pinned) << offset;
    EXPECT_EQ(info.host_address, memory + offset) << offset;
    EXPECT_THAT(gpu().device_address(memory + offset), gives(info.device_address)) << offset;
  }
}

TEST_P(pointer_suite, registered_memory_is_known_everywhere_inside) {
  BERTH_NEEDS(cannot_register());
  const auto expected =
      has(capability::tells_registered) ? memory_kind::registered : memory_kind::pinned;
  auto* memory = registered_memory(size);
  for (const auto offset : offsets) {
    const auto info = must(gpu().classify(memory + offset));
    EXPECT_EQ(info.kind, expected) << offset;
    EXPECT_EQ(info.host_address, memory + offset) << offset;
  }
}

TEST_P(pointer_suite, managed_memory_is_known_everywhere_inside) {
  BERTH_NEEDS(lacks(capability::managed));
  auto* memory = managed_memory(size);
  for (const auto offset : offsets) {
    const auto info = must(gpu().classify(memory + offset));
    EXPECT_EQ(info.kind, memory_kind::managed) << offset;
    EXPECT_EQ(info.host_address, memory + offset) << offset;
    EXPECT_EQ(info.device_address, memory + offset) << offset;
  }
}

TEST_P(pointer_suite, the_range_of_the_allocation_is_told) {
  BERTH_NEEDS(lacks(capability::tells_range));
  for (const auto kind : kinds()) {
    if (kind == memory_kind::pageable) {
      continue;
    }
    SCOPED_TRACE(to_string(kind));
    auto* memory = memory_of(kind, size);
    for (const auto offset : offsets) {
      const auto info = must(gpu().classify(memory + offset));
      EXPECT_EQ(info.base, memory) << offset;
      EXPECT_EQ(info.bytes, size) << offset;
    }
  }
}

TEST_P(pointer_suite, one_past_the_end_is_not_inside) {
  for (const auto kind : kinds()) {
    if (kind == memory_kind::pageable) {
      continue;
    }
    SCOPED_TRACE(to_string(kind));
    auto* memory = memory_of(kind, size);
    const auto info = must(gpu().classify(memory + size));
    EXPECT_TRUE(info.base == nullptr || info.base != memory);
  }
}

TEST_P(pointer_suite, freed_memory_is_pageable) {
  auto* device = must(gpu().allocate_device(0, size));
  must(gpu().free_device(device));
  EXPECT_EQ(kind_of(device), memory_kind::pageable);
  auto* pinned = must(gpu().allocate_pinned(size));
  must(gpu().free_pinned(pinned));
  EXPECT_EQ(kind_of(pinned), memory_kind::pageable);
}

TEST_P(pointer_suite, memory_registered_no_more_is_pageable) {
  BERTH_NEEDS(cannot_register());
  auto* memory = pageable_memory(size);
  must(gpu().register_host(memory, size));
  must(gpu().unregister_host(memory));
  EXPECT_EQ(kind_of(memory), memory_kind::pageable);
  EXPECT_EQ(kind_of(memory + size / 2), memory_kind::pageable);
}

TEST_P(pointer_suite, pages_beside_a_registered_range_are_pageable) {
  BERTH_NEEDS(cannot_register());
  auto* memory = pageable_memory(size);
  must(gpu().register_host(memory + 1 * mib, 1 * mib));
  at_end([this, memory] { EXPECT_THAT(gpu().unregister_host(memory + 1 * mib), succeeds()); });
  EXPECT_EQ(kind_of(memory), memory_kind::pageable);
  EXPECT_EQ(kind_of(memory + 1 * mib - 1), memory_kind::pageable);
  EXPECT_NE(kind_of(memory + 1 * mib), memory_kind::pageable);
  EXPECT_EQ(kind_of(memory + 2 * mib), memory_kind::pageable);
}

TEST_P(pointer_suite, every_thread_gets_the_same_answer) {
  auto* memory = device_memory(size);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const auto offset : offsets) {
        EXPECT_EQ(kind_of(memory + offset), memory_kind::device);
        EXPECT_EQ(kind_of(&offset), memory_kind::pageable);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST_P(pointer_suite, answers_while_the_device_works) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* memory = device_memory(size);
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  EXPECT_EQ(kind_of(memory), memory_kind::device);
  EXPECT_THAT(gpu().query_stream(work), gives(progress::pending));
  held.open();
}

}  // namespace
}  // namespace berth::conformance
