// SPDX-License-Identifier: Apache-2.0
// What a pool knows of a piece of its memory. Descriptors lie apart from the memory, which the host
// may not be able to touch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "berth/pool.hpp"
#include "berth/units.hpp"
#include "memory/size_classes.hpp"

namespace berth::memory {

class stream_state;
struct region;

enum class block_state : std::uint8_t {
  free,    // in a heap's lists
  cached,  // in a thread's front cache, or on its way between cache, heap and caller
  live,    // the caller's
  region,  // divided by the small heap
};

struct block {
  std::byte* address = nullptr;
  bytes_t bytes = 0;
  // What the caller asked for; of live blocks.
  bytes_t requested = 0;
  // Decides who may change the block: `live` belongs to whoever exchanges it to `cached` first, so
  // that of two frees one fails. All other members are changed by the owner alone: by the heap
  // under its lock, by a front cache under its lock, by the caller's thread while it is live.
  std::atomic<block_state> state{block_state::free};
  region* home = nullptr;

  // Neighbours in the region, by address.
  block* left = nullptr;
  block* right = nullptr;
  // Neighbours in a heap's list.
  block* previous = nullptr;
  block* next = nullptr;

  // Work that may still use a free block: what `gate` had queued by number `gate_number`. Null:
  // none.
  stream_state* gate = nullptr;
  std::uint64_t gate_number = 0;

  std::unique_ptr<call_stack> allocated_at;  // only with leak tracking
};

// One piece of upstream memory, divided into blocks.
struct region {
  std::byte* address = nullptr;
  bytes_t bytes = 0;
  block* first = nullptr;
  // Of a small heap: the block of the large heap that it came from.
  block* parent = nullptr;
};

}  // namespace berth::memory
