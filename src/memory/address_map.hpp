// SPDX-License-Identifier: Apache-2.0
// From an address to its block, without a lock: a free looks its block up while other threads carve
// and merge blocks elsewhere. A radix tree over bits 8..47 of the address; nodes come and never go
// until the map does, so that a reader needs nothing but four loads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/block.hpp"

namespace berth::memory {

class address_map {
public:
  address_map();
  ~address_map();
  address_map(const address_map&) = delete;
  address_map& operator=(const address_map&) = delete;

  // Null if no block starts at the address. Safe against concurrent set().
  [[nodiscard]] block* find(const void* address) const noexcept;
  // `value` null: no block starts there any more. Calls for the same address must be ordered by the
  // caller. An address beyond 48 bits is ignored, and never found. May throw std::bad_alloc.
  void set(const void* address, block* value);

private:
  static constexpr unsigned level_bits = 10;
  static constexpr std::size_t fan_out = std::size_t{1} << level_bits;
  struct node {
    std::array<std::atomic<void*>, fan_out> slots{};
  };

  node* child_of(node& parent, std::size_t slot);

  node root_;
  std::mutex growing_;
  std::vector<std::unique_ptr<node>> nodes_;
};

}  // namespace berth::memory
