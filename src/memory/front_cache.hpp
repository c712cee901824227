// SPDX-License-Identifier: Apache-2.0
// Blocks that one thread has freed and will probably want again: the path that makes an allocation
// cost tens of nanoseconds.
//
// A cached block is used again without asking anybody if its new user is the stream that it was
// freed for (whose later work runs after its earlier work), or if it was freed with no work
// pending. A cache belongs to one thread; its lock is there for the moments when somebody else
// empties it (trim, a stream's end, the pool's end), and is free otherwise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "berth/runtime/values.hpp"
#include "memory/block.hpp"
#include "memory/size_classes.hpp"

namespace berth::memory {

class pool_core;

// The stream that a block was freed for, or none.
struct usage {
  static constexpr std::uintptr_t nothing = ~std::uintptr_t{0};
  std::uintptr_t stream = nothing;

  static constexpr usage by(runtime::stream_handle handle) noexcept { return {handle.bits}; }
  [[nodiscard]] constexpr bool is_none() const noexcept { return stream == nothing; }
  [[nodiscard]] constexpr runtime::stream_handle handle() const noexcept { return {stream}; }
  friend constexpr bool operator==(usage, usage) = default;
};

// For sections of a few nanoseconds that are hardly ever contended.
class spin_lock {
public:
  void lock() noexcept {
    while (flag_.test_and_set(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

private:
  std::atomic_flag flag_;
};

// A block on its way out of a cache, with what may still use it.
struct cached_block {
  block* what = nullptr;
  usage freed_by;
};

// Counts of one thread; the pool adds them up. Guarded by the cache's lock.
struct thread_counts {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t hits = 0;
  // Differences, which may be negative: one thread frees what another allocated.
  std::int64_t live_bytes = 0;
  std::int64_t requested_bytes = 0;

  thread_counts& operator+=(const thread_counts& other) noexcept;
};

class front_cache {
public:
  // Up to 128 MiB; larger blocks go to the heap at once.
  static constexpr std::size_t cached_classes = class_of(128 * mib) + 1;
  static constexpr std::size_t depth = 8;

  [[nodiscard]] static constexpr bool has_bin_for(bytes_t block_bytes) noexcept {
    return class_of(block_bytes) < cached_classes;
  }

  // All members need the lock.
  spin_lock lock;
  pool_core* owner = nullptr;  // null once the pool is gone
  bytes_t bytes = 0;
  thread_counts counts;

  // A block that `user` may use at once; null if there is none.
  [[nodiscard]] block* take(size_class which, usage user) noexcept;
  // Any block of the class, with what may still use it.
  [[nodiscard]] cached_block take_any(size_class which) noexcept;
  // False if there is no room.
  [[nodiscard]] bool put(block* which, usage freed_by) noexcept;
  // Takes out the older half of a class.
  void take_half(size_class which, std::vector<cached_block>& into);
  void take_all(std::vector<cached_block>& into);
  void take_all_of(usage freed_by, std::vector<cached_block>& into);

private:
  struct bin {
    std::uint32_t count = 0;
    std::array<cached_block, depth> blocks{};
  };
  [[nodiscard]] block* remove(bin& from, std::size_t index) noexcept;

  std::array<bin, cached_classes> bins_{};
};

}  // namespace berth::memory
