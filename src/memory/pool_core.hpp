// SPDX-License-Identifier: Apache-2.0
// The engine under every pool, whatever memory it pools: front caches per thread, a heap for small
// blocks inside a heap for large ones, and the upstream resource at the end.
//
// An allocation tries, in this order: its thread's cache; the heaps, for a block that nothing uses
// or that the same stream used; a cached block of another stream, which the new user's stream then
// waits for; blocks whose work has meanwhile completed; a heap's block of another stream; more
// memory from upstream; waiting for work in flight; giving empty regions back and asking upstream
// once more.
//
// Locks, in the order in which they may be taken together: the list of caches', a front cache's, a
// heap's. A front cache's and a heap's are never held during a GPU call or a call to upstream.
// Growth has a lock of its own: threads that need memory ask upstream one after the other, and each
// looks again first, while all others go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "berth/pool.hpp"
#include "berth/result.hpp"
#include "memory/address_map.hpp"
#include "memory/extent_heap.hpp"
#include "memory/front_cache.hpp"
#include "memory/stream_state.hpp"
#include "runtime/driver.hpp"

namespace berth::memory {

// Where a pool's memory comes from.
struct upstream {
  std::function<result<void*>(bytes_t)> allocate;
  std::function<result<void>(void*)> deallocate;
};

class pool_core {
public:
  // `gpu` and `from` outlive the pool. `device` is where the streams that use the memory run.
  pool_core(runtime::driver& gpu, int device, upstream from, pool_options options);
  // Gives all memory back to upstream, live blocks too: nobody may use them any more.
  ~pool_core();
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;

  // Memory for work that is queued into the user's stream from now on, or, without a user, for
  // anybody at once, the host included. Blocks only where it must grow or wait for work.
  // @errors memory_invalid_size, gpu_out_of_memory, those of the GPU
  [[nodiscard]] result<void*> allocate(bytes_t bytes, usage user);
  // Takes back memory that work queued so far into the stream may still use; without one, memory
  // that no work uses. Never blocks for the GPU. @errors memory_foreign_pointer, memory_double_free
  result<void> deallocate(void* memory, usage user);

  // What the caller asked for when it got this block. @errors memory_foreign_pointer
  [[nodiscard]] result<bytes_t> size_of_block(const void* memory) const;
  // Gives upstream what nobody needs now; returns how much that was. Does not wait for work.
  [[nodiscard]] result<bytes_t> trim();
  // Must be called before the stream is destroyed.
  result<void> release_stream(runtime::stream_handle stream);
  [[nodiscard]] pool_statistics statistics();
  [[nodiscard]] std::vector<leak> leaks();
  [[nodiscard]] const pool_options& options() const noexcept { return options_; }

  // For a thread's end: takes over its cache's blocks. Needs the cache's lock.
  void adopt(front_cache& cache);

private:
  [[nodiscard]] front_cache& cache_of_this_thread();
  [[nodiscard]] front_cache& add_cache();
  // One way to find a block each; null if it finds none (pool_core.cpp has the order).
  [[nodiscard]] result<block*> find_block(size_class which, bytes_t requested, usage user);
  [[nodiscard]] result<block*> find_without_growing(front_cache& cache, size_class which,
                                                    usage user);
  [[nodiscard]] block* take_free(size_class which, stream_state* user);
  [[nodiscard]] result<block*> take_cached(front_cache& cache, size_class which, usage user);
  [[nodiscard]] result<block*> take_gated(size_class which, usage user);
  [[nodiscard]] result<block*> grow_and_take(size_class which, bytes_t requested,
                                             stream_state* user);
  [[nodiscard]] result<void> grow(bytes_t least, bytes_t requested);
  void divide(block* parent, stream_state* gate, std::uint64_t number);

  // What completed work has left behind becomes free for everybody; the second one waits for it.
  [[nodiscard]] result<void> poll_gates();
  [[nodiscard]] result<void> wait_for_gates();

  void count_allocation(front_cache& cache, block& given, bytes_t requested) const;
  void free_for_own_stream(front_cache& cache, block& freed, usage user);
  void give_to_heap(const cached_block& freed);
  void give_all_to_heap(const std::vector<cached_block>& freed);
  void flush(front_cache& cache);
  void flush_all();
  [[nodiscard]] extent_heap& heap_of(bytes_t block_bytes) noexcept;
  [[nodiscard]] stream_state* state_of(usage user);
  [[nodiscard]] std::string name_with(const void* address) const;
  [[nodiscard]] error out_of_memory(bytes_t requested, const error& why);

  runtime::driver& gpu_;
  const int device_;
  const upstream upstream_;
  const pool_options options_;
  const std::uint64_t id_;
  address_map addresses_;
  stream_ledger streams_;
  extent_heap large_;
  extent_heap small_;

  std::mutex growing_;
  std::atomic<bytes_t> held_{0};
  std::atomic<bytes_t> peak_held_{0};
  std::atomic<std::uint64_t> growths_{0};
  std::atomic<std::uint64_t> stream_waits_{0};

  std::mutex caches_mutex_;  // guards the list and ended_; taken before any cache's lock
  std::vector<std::shared_ptr<front_cache>> caches_;
  thread_counts ended_;  // of threads that have ended
  const std::shared_ptr<front_cache> cache_of_ending_threads_;
};

}  // namespace berth::memory
