// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_core.hpp"

#include <unwind.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "berth/units.hpp"

namespace berth::memory {
namespace {

// Blocks up to here live in the small heap, whose regions are blocks of the large one: many small
// blocks then share few extents instead of nailing large ones down one by one.
constexpr bytes_t small_limit = 64 * kib;
constexpr bytes_t small_region = 2 * mib;
constexpr bytes_t growth_step = 2 * mib;
constexpr bytes_t largest_growth = gib;
// Growing by a part of what is held keeps growths few and the overshoot bounded.
constexpr bytes_t growth_part = 16;

std::uint64_t next_pool_id() {
  // The ids tell pools apart in threads' lists of caches, where a pool's address could come again.
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// The pool that this thread used last and its cache there: what nearly every call wants. Apart from
// the list below because plain data is reached without a guard.
struct last_cache {
  std::uint64_t pool = 0;
  front_cache* cache = nullptr;
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread's own
constinit thread_local last_cache last_used;
// Set when the thread's caches are gone: destructors that run later share a cache of the pool's.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread's own
constinit thread_local bool thread_is_ending = false;

// The caches of one thread, one for each pool that it has used.
class thread_caches {
public:
  thread_caches() = default;
  thread_caches(const thread_caches&) = delete;
  thread_caches& operator=(const thread_caches&) = delete;
  ~thread_caches() {
    last_used = {};
    thread_is_ending = true;
    for (auto& one : entries_) {
      const std::scoped_lock lock(one.cache->lock);
      if (one.cache->owner != nullptr) {
        one.cache->owner->adopt(*one.cache);
        one.cache->owner = nullptr;
      }
    }
  }

  [[nodiscard]] front_cache* find(std::uint64_t pool) const noexcept {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [pool](const entry& one) { return one.pool == pool; });
    return found != entries_.end() ? found->cache.get() : nullptr;
  }

  void add(std::uint64_t pool, std::shared_ptr<front_cache> cache) {
    std::erase_if(entries_, [](const entry& one) {
      const std::scoped_lock lock(one.cache->lock);
      return one.cache->owner == nullptr;
    });
    entries_.push_back({pool, std::move(cache)});
  }

private:
  struct entry {
    std::uint64_t pool;
    std::shared_ptr<front_cache> cache;
  };
  std::vector<entry> entries_;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread's own
thread_local thread_caches this_thread_caches;

constexpr bytes_t round_up(bytes_t bytes, bytes_t step) noexcept {
  return (bytes + step - 1) / step * step;
}

struct unwinding {
  call_stack* into;
  std::size_t skip;
  std::size_t count;
};

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* data) {
  auto& state = *static_cast<unwinding*>(data);
  if (state.skip > 0) {
    --state.skip;
    return _URC_NO_REASON;
  }
  if (state.count == state.into->size()) {
    return _URC_END_OF_STACK;
  }
  // NOLINTNEXTLINE: an instruction address is a number to the unwinder and a pointer to readers
  (*state.into)[state.count++] = reinterpret_cast<void*>(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

std::unique_ptr<call_stack> this_call_stack() {
  auto stack = std::make_unique<call_stack>();
  unwinding state{stack.get(), 3, 0};  // without this file's own frames
  _Unwind_Backtrace(note_frame, &state);
  return stack;
}

}  // namespace

pool_core::pool_core(runtime::driver& gpu, int device, upstream from, pool_options options)
    : gpu_(gpu),
      device_(device),
      upstream_(std::move(from)),
      options_(std::move(options)),
      id_(next_pool_id()),
      streams_(gpu, device),
      large_(addresses_),
      small_(addresses_),
      cache_of_ending_threads_(std::make_shared<front_cache>()) {
  cache_of_ending_threads_->owner = this;
  caches_.push_back(cache_of_ending_threads_);
}

pool_core::~pool_core() {
  {
    const std::scoped_lock lock(caches_mutex_);
    for (const auto& cache : caches_) {
      // A thread that ends now either gives its blocks to this pool first, or finds it gone.
      const std::scoped_lock cache_lock(cache->lock);
      cache->owner = nullptr;
    }
  }
  // Upstream may free without waiting for work. After the runtime's shutdown both calls fail and
  // nothing is left to wait for or to free.
  static_cast<void>(gpu_.synchronize_device(device_));
  for (const auto& one : large_.take_all_regions()) {
    static_cast<void>(upstream_.deallocate(one.address));
  }
}

// --- Allocation -------------------------------------------------------------------------------

result<void*> pool_core::allocate(bytes_t bytes, usage user) {
  if (bytes == 0 || bytes > largest_block) {
    return error(errc::memory_invalid_size,
                 bytes == 0 ? std::string("0 bytes cannot be allocated")
                            : fmt::format("{} bytes are more than any machine has", bytes),
                 fmt::format("pool '{}'", options_.name));
  }
  const auto which = class_of(bytes);
  auto& cache = cache_of_this_thread();
  {
    const std::scoped_lock lock(cache.lock);
    if (auto* const hit = cache.take(which, user)) {
      ++cache.counts.hits;
      count_allocation(cache, *hit, bytes);
      return static_cast<void*>(hit->address);
    }
  }
  auto found = find_block(which, bytes, user);
  if (!found) {
    return found.error();
  }
  const std::scoped_lock lock(cache.lock);
  count_allocation(cache, **found, bytes);
  return static_cast<void*>((*found)->address);
}

void pool_core::count_allocation(front_cache& cache, block& given, bytes_t requested) const {
  given.requested = requested;
  if (options_.leaks == leak_tracking::call_sites) {
    given.allocated_at = this_call_stack();
  }
  ++cache.counts.allocations;
  cache.counts.live_bytes += static_cast<std::int64_t>(given.bytes);
  cache.counts.requested_bytes += static_cast<std::int64_t>(requested);
  // Release: whichever thread frees the block sees its members.
  given.state.store(block_state::live, std::memory_order_release);
}

result<block*> pool_core::find_block(size_class which, bytes_t requested, usage user) {
  auto& cache = cache_of_this_thread();
  auto found = find_without_growing(cache, which, user);
  if (!found || *found != nullptr) {
    return found;
  }
  // What this thread has cached may be what is missing, in other sizes.
  flush(cache);
  found = find_without_growing(cache, which, user);
  if (!found || *found != nullptr) {
    return found;
  }
  auto* const stream = state_of(user);
  const auto grown = grow_and_take(which, requested, stream);
  if (grown) {
    return grown;
  }
  if (grown.error().code() != errc::gpu_out_of_memory) {
    return grown;
  }
  // Last resorts: what other threads have cached, what work still uses, what upstream can do with
  // our empty regions.
  flush_all();
  if (auto waited = wait_for_gates(); !waited) {
    return waited.error();
  }
  if (auto* const free = take_free(which, stream)) {
    return free;
  }
  if (const auto trimmed = trim(); trimmed && *trimmed > 0) {
    auto again = grow_and_take(which, requested, stream);
    if (again) {
      return again;
    }
  }
  return out_of_memory(requested, grown.error());
}

result<block*> pool_core::find_without_growing(front_cache& cache, size_class which, usage user) {
  auto* const stream = state_of(user);
  if (auto* const free = take_free(which, stream)) {
    return free;
  }
  auto cached = take_cached(cache, which, user);
  if (!cached || *cached != nullptr) {
    return cached;
  }
  if (auto polled = poll_gates(); !polled) {
    return polled.error();
  }
  if (auto* const free = take_free(which, stream)) {
    return free;
  }
  return take_gated(which, user);
}

// Small blocks come from regions that are blocks of the large heap: fetches one if need be.
block* pool_core::take_free(size_class which, stream_state* user) {
  if (size_of(which) > small_limit) {
    return large_.take(which, user);
  }
  if (auto* const free = small_.take(which, user)) {
    return free;
  }
  auto* const parent = large_.take(class_of(small_region), user);
  if (parent == nullptr) {
    return nullptr;
  }
  // It may be memory that only the user's stream can have without waiting.
  divide(parent, user, user != nullptr ? streams_.next_number() : 0);
  return small_.take(which, user);
}

void pool_core::divide(block* parent, stream_state* gate, std::uint64_t number) {
  parent->state.store(block_state::region, std::memory_order_release);
  parent->gate = nullptr;
  small_.add_region({.address = parent->address, .bytes = parent->bytes, .parent = parent}, gate,
                    number);
}

// A block of this thread that another stream's work may still use: the user's stream waits for it.
result<block*> pool_core::take_cached(front_cache& cache, size_class which, usage user) {
  if (user.is_none()) {
    return nullptr;  // the host has no stream that could wait
  }
  cached_block other;
  {
    const std::scoped_lock lock(cache.lock);
    other = cache.take_any(which);
  }
  if (other.what == nullptr) {
    return nullptr;
  }
  const auto held = state_of(other.freed_by)->hold_back(user.handle(), streams_.next_number());
  if (!held) {
    give_to_heap(other);
    return held.error();
  }
  stream_waits_.fetch_add(1, std::memory_order_relaxed);
  return other.what;
}

// The same from the heaps.
result<block*> pool_core::take_gated(size_class which, usage user) {
  if (user.is_none()) {
    return nullptr;
  }
  auto& heap = heap_of(size_of(which));
  auto* given = heap.take_gated(which);
  if (given == nullptr && &heap == &small_) {
    auto* const parent = large_.take_gated(class_of(small_region));
    if (parent == nullptr) {
      return nullptr;
    }
    divide(parent, parent->gate, parent->gate_number);
    given = small_.take_gated(which);
  }
  if (given == nullptr || given->gate == nullptr) {
    return given;
  }
  if (auto held = given->gate->hold_back(user.handle(), given->gate_number); !held) {
    heap.give(given);
    return held.error();
  }
  given->gate = nullptr;
  stream_waits_.fetch_add(1, std::memory_order_relaxed);
  return given;
}

result<block*> pool_core::grow_and_take(size_class which, bytes_t requested, stream_state* user) {
  const auto needed = size_of(which) <= small_limit ? small_region : size_of(which);
  const std::scoped_lock lock(growing_);
  while (true) {
    // The thread that held the lock before may have fetched enough for two; and what this one
    // fetches may be taken by others, who need no lock for that.
    if (auto* const free = take_free(which, user)) {
      return free;
    }
    if (auto grown = grow(round_up(needed, growth_step), requested); !grown) {
      return grown.error();
    }
  }
}

// Needs growing_. Adds a region of at least `least` bytes.
result<void> pool_core::grow(bytes_t least, bytes_t requested) {
  const auto held = held_.load(std::memory_order_relaxed);
  const auto room = options_.limit ? *options_.limit - std::min(*options_.limit, held)
                                   : std::numeric_limits<bytes_t>::max();
  if (least > room) {
    return error(errc::gpu_out_of_memory, "the pool's limit is reached")
        .with({.requested = requested, .free = room, .total = options_.limit});
  }
  const auto usual = std::clamp(round_up(held / growth_part, growth_step),
                                round_up(options_.smallest_growth, growth_step), largest_growth);
  auto bytes = std::min(std::max(least, usual), room / growth_step * growth_step);
  auto memory = upstream_.allocate(bytes);
  if (!memory && memory.error().code() == errc::gpu_out_of_memory && bytes > least) {
    bytes = least;
    memory = upstream_.allocate(bytes);
  }
  if (!memory) {
    return memory.error();
  }
  const auto now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  peak_held_.store(std::max(peak_held_.load(std::memory_order_relaxed), now),
                   std::memory_order_relaxed);
  growths_.fetch_add(1, std::memory_order_relaxed);
  large_.add_region({.address = static_cast<std::byte*>(*memory), .bytes = bytes}, nullptr, 0);
  return {};
}

error pool_core::out_of_memory(bytes_t requested, const error& why) {
  const auto held = held_.load(std::memory_order_relaxed);
  const auto used = large_.now().given_out_bytes;
  const auto free = held - std::min(held, used);
  return error(errc::gpu_out_of_memory,
               fmt::format("{} cannot be had: the pool holds {}, {} of it unused in pieces of at "
                           "most {}{}; {}",
                           format_bytes(requested), format_bytes(held), format_bytes(free),
                           format_bytes(large_.now().largest_free),
                           options_.limit
                               ? fmt::format(", its limit is {}", format_bytes(*options_.limit))
                               : std::string(),
                           why.message()),
               fmt::format("pool '{}'", options_.name),
               options_.limit ? "raise the pool's limit, or free blocks"
                              : "free blocks, or leave room for other users of the memory")
      .with({.requested = requested,
             .free = free,
             .total = options_.limit   ? options_.limit
                      : why.shortage() ? why.shortage()->total
                                       : std::optional<std::uint64_t>()});
}

// --- Freeing ----------------------------------------------------------------------------------

result<void> pool_core::deallocate(void* memory, usage user) {
  if (memory == nullptr) {
    return {};
  }
  auto* const which = addresses_.find(memory);
  if (which == nullptr || which->address != memory) {
    return error(errc::memory_foreign_pointer, "no block of this pool starts at this address",
                 name_with(memory),
                 "free memory where it was allocated, by the address given then");
  }
  // Of several frees of one block exactly one passes here (block.hpp).
  auto expected = block_state::live;
  if (!which->state.compare_exchange_strong(expected, block_state::cached,
                                            std::memory_order_acq_rel)) {
    return expected == block_state::region
               ? error(errc::memory_foreign_pointer, "no block of this pool starts at this address",
                       name_with(memory))
               : error(errc::memory_double_free, "this block is free already", name_with(memory),
                       "look for a second owner of the address");
  }
  free_for_own_stream(cache_of_this_thread(), *which, user);
  return {};
}

void pool_core::free_for_own_stream(front_cache& cache, block& freed, usage user) {
  // A thread's own default stream can be asked by that thread only, so it must be asked now: such a
  // block goes to the heap, which knows the thread's stream by its recorded event.
  const bool cacheable = user.is_none() || user.handle() != runtime::per_thread_stream;
  const auto limit = options_.thread_cache_limit;
  std::vector<cached_block> spilled;
  {
    const std::scoped_lock lock(cache.lock);
    ++cache.counts.frees;
    cache.counts.live_bytes -= static_cast<std::int64_t>(freed.bytes);
    cache.counts.requested_bytes -= static_cast<std::int64_t>(freed.requested);
    freed.allocated_at.reset();
    if (!cacheable || freed.bytes > limit || !front_cache::has_bin_for(freed.bytes)) {
      spilled.push_back({&freed, user});
    } else {
      if (cache.bytes + freed.bytes > limit) {
        cache.take_all(spilled);
      }
      if (!cache.put(&freed, user)) {
        cache.take_half(class_of(freed.bytes), spilled);
        static_cast<void>(cache.put(&freed, user));  // there is room now
      }
    }
  }
  give_all_to_heap(spilled);
}

void pool_core::give_to_heap(const cached_block& freed) {
  freed.what->gate = state_of(freed.freed_by);
  freed.what->gate_number = freed.what->gate != nullptr ? streams_.next_number() : 0;
  if (freed.what->gate != nullptr && freed.freed_by.handle() == runtime::per_thread_stream) {
    // If this fails, whoever waits for the block drains the device instead.
    static_cast<void>(freed.what->gate->record());
  }
  heap_of(freed.what->bytes).give(freed.what);
}

void pool_core::give_all_to_heap(const std::vector<cached_block>& freed) {
  for (const auto& one : freed) {
    give_to_heap(one);
  }
}

void pool_core::flush(front_cache& cache) {
  std::vector<cached_block> freed;
  {
    const std::scoped_lock lock(cache.lock);
    cache.take_all(freed);
  }
  give_all_to_heap(freed);
}

void pool_core::flush_all() {
  std::vector<std::shared_ptr<front_cache>> caches;
  {
    const std::scoped_lock lock(caches_mutex_);
    caches = caches_;
  }
  for (const auto& cache : caches) {
    flush(*cache);
  }
}

void pool_core::adopt(front_cache& cache) {
  std::vector<cached_block> freed;
  cache.take_all(freed);
  give_all_to_heap(freed);
}

// --- Gates ------------------------------------------------------------------------------------

result<void> pool_core::poll_gates() {
  for (auto* const heap : {&large_, &small_}) {
    for (const auto& [stream, number] : heap->gates()) {
      if (auto polled = stream->poll(number); !polled) {
        return polled;
      }
    }
    heap->settle();
  }
  return {};
}

result<void> pool_core::wait_for_gates() {
  for (auto* const heap : {&large_, &small_}) {
    for (const auto& [stream, number] : heap->gates()) {
      if (auto waited = stream->wait_for(number); !waited) {
        return waited;
      }
    }
    heap->settle();
  }
  return {};
}

result<void> pool_core::release_stream(runtime::stream_handle stream) {
  std::vector<std::shared_ptr<front_cache>> caches;
  {
    const std::scoped_lock lock(caches_mutex_);
    caches = caches_;
  }
  std::vector<cached_block> freed;
  for (const auto& cache : caches) {
    const std::scoped_lock lock(cache->lock);
    cache->take_all_of(usage::by(stream), freed);
  }
  give_all_to_heap(freed);
  auto* const known = streams_.forget(stream);
  return known != nullptr ? known->retire() : result<void>();
}

// --- The whole --------------------------------------------------------------------------------

result<bytes_t> pool_core::trim() {
  flush_all();
  if (auto polled = poll_gates(); !polled) {
    return polled.error();
  }
  for (const auto& one : small_.take_empty_regions(0)) {
    large_.give(one.parent);
  }
  bytes_t given_back = 0;
  for (const auto& one : large_.take_empty_regions(0)) {
    held_.fetch_sub(one.bytes, std::memory_order_relaxed);
    given_back += one.bytes;
    if (auto freed = upstream_.deallocate(one.address); !freed) {
      return freed.error();
    }
  }
  return given_back;
}

result<bytes_t> pool_core::size_of_block(const void* memory) const {
  const auto* const which = addresses_.find(memory);
  if (which == nullptr || which->state.load(std::memory_order_acquire) != block_state::live) {
    return error(errc::memory_foreign_pointer, "no live block of this pool starts at this address",
                 name_with(memory));
  }
  return which->requested;
}

pool_statistics pool_core::statistics() {
  thread_counts counts;
  bytes_t cached = 0;
  {
    const std::scoped_lock lock(caches_mutex_);
    counts = ended_;
    for (const auto& cache : caches_) {
      const std::scoped_lock cache_lock(cache->lock);
      counts += cache->counts;
      cached += cache->bytes;
    }
  }
  const auto sum = [](std::int64_t value) {
    return static_cast<bytes_t>(std::max<std::int64_t>(0, value));
  };
  return {.live_bytes = sum(counts.live_bytes),
          .requested_bytes = sum(counts.requested_bytes),
          .live_blocks = counts.allocations - std::min(counts.allocations, counts.frees),
          .cached_bytes = cached,
          .held_bytes = held_.load(std::memory_order_relaxed),
          .peak_held_bytes = peak_held_.load(std::memory_order_relaxed),
          .peak_used_bytes = large_.now().peak_given_out_bytes,
          .allocations = counts.allocations,
          .frees = counts.frees,
          .cache_hits = counts.hits,
          .stream_waits = stream_waits_.load(std::memory_order_relaxed),
          .growths = growths_.load(std::memory_order_relaxed)};
}

std::vector<leak> pool_core::leaks() {
  std::vector<leak> found;
  const auto visit = [&](const block& one) {
    if (one.state.load(std::memory_order_acquire) == block_state::live) {
      found.push_back({one.address, one.requested,
                       one.allocated_at != nullptr ? *one.allocated_at : call_stack{}});
    }
  };
  large_.for_each_given_out(visit);
  small_.for_each_given_out(visit);
  return found;
}

front_cache& pool_core::cache_of_this_thread() {
  if (last_used.pool != id_) {
    if (thread_is_ending) {
      return *cache_of_ending_threads_;
    }
    auto* known = this_thread_caches.find(id_);
    last_used = {id_, known != nullptr ? known : &add_cache()};
  }
  return *last_used.cache;
}

front_cache& pool_core::add_cache() {
  auto made = std::make_shared<front_cache>();
  made->owner = this;
  {
    const std::scoped_lock lock(caches_mutex_);
    std::erase_if(caches_, [&](const std::shared_ptr<front_cache>& one) {
      const std::scoped_lock cache_lock(one->lock);
      if (one->owner != nullptr) {
        return false;
      }
      ended_ += one->counts;
      return true;
    });
    caches_.push_back(made);
  }
  auto& cache = *made;
  this_thread_caches.add(id_, std::move(made));
  return cache;
}

extent_heap& pool_core::heap_of(bytes_t block_bytes) noexcept {
  return block_bytes <= small_limit ? small_ : large_;
}

stream_state* pool_core::state_of(usage user) {
  return user.is_none() ? nullptr : streams_.find_or_add(user.handle());
}

std::string pool_core::name_with(const void* address) const {
  return fmt::format("pool '{}', address {}", options_.name, address);
}

}  // namespace berth::memory
