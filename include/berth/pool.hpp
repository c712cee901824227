// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pooled memory: allocations in tens of nanoseconds, safe beside work that is still running.
///
/// A pool fetches large pieces from its resource and divides them. Sizes are rounded up by at most
/// an eighth (below 2 KiB: to a multiple of 256 bytes). Memory is given out and taken back in two
/// ways:
///
/// - *in the order of a stream*: `allocate(bytes, stream)` gives memory for work that is queued
/// into
///   that stream from now on, and `deallocate(memory, stream)` takes it back though work queued
///   there may still use it. Nothing blocks. The same stream gets such memory again at once;
///   another one is made to wait, on the device, for the work that came before. The host must not
///   touch memory from a stream-ordered allocation before the stream has come that far, as with
///   everything asynchronous.
/// - *at once*: `allocate(bytes)` gives memory that nothing uses any more, for the host or any
///   stream; `deallocate(memory)` takes back memory that no work uses.
///
/// Streams made by context::create_stream tell the pools of their end. For a stream from elsewhere
/// call context::release_stream before it is destroyed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/memory_resource.hpp"

namespace berth {

/// Whether a pool notes where its blocks were asked for. Costs about a microsecond each.
enum class leak_tracking : std::uint8_t { off, call_sites };

/// How a pool behaves. The defaults suit most programs.
struct pool_options {
  std::string name = "pool";              ///< for messages
  std::optional<bytes_t> limit = {};      ///< of what the pool holds; nothing: the resource's own
  bytes_t smallest_growth = 32 * mib;     ///< fetched from the resource at once
  bytes_t thread_cache_limit = 64 * mib;  ///< of free blocks that one thread keeps for itself
  leak_tracking leaks = leak_tracking::off;
};

/// A snapshot; exact while nobody allocates or frees.
struct pool_statistics {
  bytes_t live_bytes = 0;       ///< in blocks that callers have
  bytes_t requested_bytes = 0;  ///< of those, what the callers asked for
  std::uint64_t live_blocks = 0;
  bytes_t cached_bytes = 0;  ///< in threads' caches
  bytes_t held_bytes = 0;    ///< from the resource
  bytes_t peak_held_bytes = 0;
  bytes_t peak_used_bytes = 0;  ///< live and cached together, with what divides them
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t stream_waits = 0;  ///< times that one stream was made to wait for another
  std::uint64_t growths = 0;
};

/// Return addresses, innermost first; null behind the last.
using call_stack = std::array<void*, 16>;

/// A block that is still with its caller.
struct leak {
  void* address = nullptr;
  bytes_t bytes = 0;          ///< as asked for
  call_stack allocated_at{};  ///< all null without leak_tracking::call_sites
};

namespace memory {
class pool_core;
}

namespace detail {

/// What pools of all resources share. Not for use by itself.
class pool_base {
public:
  /// Memory for work that is queued into the stream from now on. Blocks only where the pool must
  /// grow. @errors memory_invalid_size, gpu_out_of_memory (after trimming and one retry; with the
  /// pool's name and amounts), memory_context_closed
  [[nodiscard]] result<void*> try_allocate(bytes_t bytes, runtime::stream_handle stream) const;
  /// @throws berth::exception
  [[nodiscard]] void* allocate(bytes_t bytes, runtime::stream_handle stream) const {
    return try_allocate(bytes, stream).value();
  }
  /// Memory that nothing uses, for the host or any stream. @errors as above, and
  /// memory_invalid_alignment for more than resource_alignment
  [[nodiscard]] result<void*> try_allocate(bytes_t bytes,
                                           bytes_t alignment = resource_alignment) const;
  /// @throws berth::exception
  [[nodiscard]] void* allocate(bytes_t bytes, bytes_t alignment = resource_alignment) const {
    return try_allocate(bytes, alignment).value();
  }

  /// Takes back memory that work queued into the stream so far may still use. Does not block. From
  /// any thread; null does nothing. @errors memory_foreign_pointer, memory_double_free
  result<void> try_deallocate(void* memory, runtime::stream_handle stream) const;
  /// @throws berth::exception
  void deallocate(void* memory, runtime::stream_handle stream) const {
    try_deallocate(memory, stream).value();
  }
  /// Takes back memory that no work uses. @errors as above
  result<void> try_deallocate(void* memory) const;
  /// @throws berth::exception
  void deallocate(void* memory) const { try_deallocate(memory).value(); }

  /// Gives the resource back what nobody needs now; returns how many bytes. Does not wait for work.
  result<bytes_t> try_trim() const;
  /// @throws berth::exception
  bytes_t trim() const { return try_trim().value(); }
  [[nodiscard]] pool_statistics statistics() const;
  /// All blocks that callers still have. No other thread may use the pool meanwhile.
  [[nodiscard]] std::vector<leak> leaks() const;
  [[nodiscard]] const pool_options& options() const noexcept;
  /// The same pool.
  friend bool operator==(const pool_base& a, const pool_base& b) noexcept {
    return a.state_ == b.state_;
  }

protected:
  /// How a pool reaches its resource.
  struct source {
    result<void*> (*allocate)(const void* resource, bytes_t bytes);
    result<void> (*deallocate)(const void* resource, void* memory);
    std::shared_ptr<const void> resource;
  };
  pool_base(const resource_base& resource, const source& from, pool_options options);

private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace detail

/// A pool on a resource. A small value: copies stand for the same pool, which ends with the last.
/// Safe to use from any thread.
template <memory_resource Upstream>
class pool : public detail::pool_base {
public:
  static constexpr memory_kind kind = Upstream::kind;
  static constexpr bool host_visible = Upstream::host_visible;
  static constexpr bool device_visible = Upstream::device_visible;

  explicit pool(Upstream upstream, pool_options options = {})
      : pool_base(upstream, source_of(upstream), std::move(options)) {}

private:
  static source source_of(const Upstream& upstream) {
    return {.allocate =
                [](const void* resource, bytes_t bytes) {
                  return static_cast<const Upstream*>(resource)->try_allocate(bytes);
                },
            .deallocate =
                [](const void* resource, void* memory) {
                  return static_cast<const Upstream*>(resource)->try_deallocate(memory);
                },
            .resource = std::make_shared<const Upstream>(upstream)};
  }
};

static_assert(stream_ordered_resource<pool<device_resource>>);
static_assert(host_visible_resource<pool<pinned_resource>>);
static_assert(!host_visible_resource<pool<device_resource>>);

}  // namespace berth
