// SPDX-License-Identifier: Apache-2.0
// A heap of extents: regions of memory divided into blocks that split when they are too large and
// merge with their free neighbours, all in constant time (segregated lists by size class with a
// bitmap, as in TLSF: Masmano, Ripoll, Crespo, Real 2004; here with descriptors apart from the
// memory).
//
// Free blocks are kept apart by their *gate*: those that no work uses any more, and for each stream
// those that its queued work may still use. A block of the first sort suits everybody; one of the
// second suits its own stream, whose later work runs after that work. Only neighbours with the same
// gate merge, so that a merged block waits for no more than it must.
//
// The heap makes no GPU call. Its lock is never taken by an allocation that its thread's front
// cache serves.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "memory/address_map.hpp"
#include "memory/block.hpp"
#include "memory/size_classes.hpp"
#include "memory/stream_state.hpp"

namespace berth::memory {

class extent_heap {
public:
  // Blocks are entered into `addresses` while they are given out.
  explicit extent_heap(address_map& addresses);
  ~extent_heap();
  extent_heap(const extent_heap&) = delete;
  extent_heap& operator=(const extent_heap&) = delete;

  // A block of exactly the class's size that `user` may use at once: one that nothing uses, or
  // whose gate is `user`. `user` null: only one that nothing uses. Null if there is none.
  [[nodiscard]] block* take(size_class which, const stream_state* user);
  // A block of the class's size with any gate; its gate and number still stand in it: the caller
  // must make sure that its user waits for them. Null if there is none.
  [[nodiscard]] block* take_gated(size_class which);
  // Takes back a block. Its members gate and gate_number say what may still use it.
  void give(block* which);
  // Blocks whose gates have been passed become free for everybody and merge.
  void settle();
  // The latest number that free blocks of a stream wait for; nothing if it has none.
  [[nodiscard]] std::vector<std::pair<stream_state*, std::uint64_t>> gates();

  // Adds memory. The one block that it makes has the gate given.
  void add_region(region added, stream_state* gate, std::uint64_t gate_number);
  // Takes out regions that consist of one free block that nothing uses, but for `keep` of them.
  [[nodiscard]] std::vector<region> take_empty_regions(std::size_t keep);
  // All regions, whatever is in them. The heap must not be used afterwards.
  [[nodiscard]] std::vector<region> take_all_regions();

  struct amounts {
    bytes_t region_bytes = 0;
    bytes_t given_out_bytes = 0;
    bytes_t peak_given_out_bytes = 0;
    std::size_t regions = 0;
    bytes_t largest_free = 0;
  };
  [[nodiscard]] amounts now();
  // Calls `visit` for each block that is given out, under the lock: it must not call the heap.
  void for_each_given_out(const std::function<void(const block&)>& visit);

private:
  // Free blocks with the same gate, by size class.
  struct lists {
    std::array<std::uint64_t, (class_count + 63) / 64> occupied{};
    std::array<block*, class_count> heads{};
  };

  [[nodiscard]] static std::optional<size_class> first_at_least(const lists& in, size_class which);
  [[nodiscard]] lists& lists_of(const stream_state* gate);
  [[nodiscard]] lists* known_lists_of(const stream_state* gate);
  void link(block* which);
  void unlink(block* which);
  [[nodiscard]] block* hand_out(block* which, size_class wanted);
  void split(block* which, bytes_t bytes);
  [[nodiscard]] block* merge(block* which);
  void absorb_right(block* which);
  [[nodiscard]] block* new_block();
  void drop_block(block* which);

  address_map& addresses_;
  std::mutex mutex_;
  std::map<const stream_state*, std::unique_ptr<lists>> by_gate_;
  std::vector<std::unique_ptr<region>> regions_;
  // Descriptors are never freed before the heap, so that a stale address finds a descriptor and not
  // a hole; unused ones are kept for reuse.
  std::vector<std::unique_ptr<block>> descriptors_;
  std::vector<block*> unused_;
  amounts amounts_;
};

}  // namespace berth::memory
