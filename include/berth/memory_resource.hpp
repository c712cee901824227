// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory of every kind, by type: what gives it, takes it back with the matching free, and says
/// what can be done with it.
///
/// A resource is a small value: copies are cheap and stand for the same source of memory. It keeps
/// its context's runtime alive, so that memory can always be given back; new memory needs the
/// context itself. All members are safe to call from any thread.
///
/// Resources ask the runtime each time, which takes microseconds (device) to milliseconds (pinned):
/// put a berth::pool on top.
#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth {

namespace memory {
class context_state;
}

/// What every resource gives as alignment: what devices want for coalesced access.
inline constexpr bytes_t resource_alignment = 256;

/// Gives memory and takes it back.
template <typename Resource>
concept memory_resource =
    std::copyable<Resource> && requires(const Resource& from, void* memory, bytes_t bytes) {
      { from.try_allocate(bytes, bytes) } -> std::same_as<result<void*>>;
      { from.allocate(bytes, bytes) } -> std::same_as<void*>;
      { from.try_deallocate(memory) } -> std::same_as<result<void>>;
      { from.deallocate(memory) } -> std::same_as<void>;
      { Resource::kind } -> std::convertible_to<memory_kind>;
      { Resource::host_visible } -> std::convertible_to<bool>;
      { Resource::device_visible } -> std::convertible_to<bool>;
    };

/// A resource whose memory the host can read and write.
template <typename Resource>
concept host_visible_resource = memory_resource<Resource> && Resource::host_visible;

/// A resource whose memory kernels can read and write.
template <typename Resource>
concept device_visible_resource = memory_resource<Resource> && Resource::device_visible;

/// Gives memory in the order of a stream: see berth::pool.
template <typename Resource>
concept stream_ordered_resource =
    memory_resource<Resource> &&
    requires(const Resource& from, void* memory, bytes_t bytes, runtime::stream_handle stream) {
      { from.try_allocate(bytes, stream) } -> std::same_as<result<void*>>;
      { from.try_deallocate(memory, stream) } -> std::same_as<result<void>>;
    };

/// On how many pages of each NUMA node some memory lies; pages that are not there yet are not
/// counted.
struct page_placement {
  std::map<int, std::uint64_t> pages_by_node;
  std::uint64_t absent_pages = 0;
};

/// Asks the kernel where the pages of host memory are. Blocks for one system call.
/// @errors gpu_not_supported where the kernel does not tell
[[nodiscard]] result<page_placement> try_locate_pages(const void* memory, bytes_t bytes);

namespace detail {

/// What the resources share. Not for use by itself.
class resource_base {
public:
  /// The context that the resource belongs to has not been closed.
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] int device() const noexcept { return device_; }
  /// Of one context: then resources of one type free each other's memory.
  friend bool operator==(const resource_base& a, const resource_base& b) noexcept {
    return a.home_ == b.home_;
  }

protected:
  resource_base(std::shared_ptr<memory::context_state> home, int device) noexcept;
  [[nodiscard]] result<void> try_free(void* memory, memory_kind kind) const;

  std::shared_ptr<memory::context_state> home_;
  int device_;

private:
  friend class pool_base;
};

}  // namespace detail

/// Page-locked host memory: DMA reaches it, the host reads and writes it, kernels can (slowly).
/// Cost: RAM that the system cannot use otherwise, and about half a second for each GiB, which is
/// why the context keeps a budget.
class pinned_resource : public detail::resource_base {
public:
  static constexpr memory_kind kind = memory_kind::pinned;
  static constexpr bool host_visible = true;
  static constexpr bool device_visible = true;

  /// Blocks for the runtime. Alignment: a power of two up to resource_alignment.
  /// @errors memory_invalid_size, memory_invalid_alignment, memory_over_budget, gpu_out_of_memory,
  ///         memory_context_closed
  [[nodiscard]] result<void*> try_allocate(bytes_t bytes,
                                           bytes_t alignment = resource_alignment) const;
  /// @throws berth::exception for what try_allocate gives as an error
  [[nodiscard]] void* allocate(bytes_t bytes, bytes_t alignment = resource_alignment) const {
    return try_allocate(bytes, alignment).value();
  }
  /// With the free that matches (hipHostFree, cuMemFreeHost). Null does nothing. No queued work may
  /// still use the memory. Works after the context has been closed, too.
  /// @errors memory_foreign_pointer, naming what the address is instead if that is known
  result<void> try_deallocate(void* memory) const { return try_free(memory, kind); }
  /// @throws berth::exception
  void deallocate(void* memory) const { try_deallocate(memory).value(); }

  [[nodiscard]] const runtime::pinned_options& options() const noexcept { return options_; }

private:
  friend class context;
  pinned_resource(std::shared_ptr<memory::context_state> home, runtime::pinned_options options);

  runtime::pinned_options options_;
};

/// The GPU's own memory: fastest for kernels, out of the host's reach.
class device_resource : public detail::resource_base {
public:
  static constexpr memory_kind kind = memory_kind::device;
  static constexpr bool host_visible = false;
  static constexpr bool device_visible = true;

  /// As pinned_resource::try_allocate. @errors also gpu_not_supported for a grain that the device
  /// does not have
  [[nodiscard]] result<void*> try_allocate(bytes_t bytes,
                                           bytes_t alignment = resource_alignment) const;
  /// @throws berth::exception
  [[nodiscard]] void* allocate(bytes_t bytes, bytes_t alignment = resource_alignment) const {
    return try_allocate(bytes, alignment).value();
  }
  /// As pinned_resource::try_deallocate.
  result<void> try_deallocate(void* memory) const { return try_free(memory, kind); }
  /// @throws berth::exception
  void deallocate(void* memory) const { try_deallocate(memory).value(); }

  [[nodiscard]] runtime::coherence grain() const noexcept { return grain_; }

private:
  friend class context;
  device_resource(std::shared_ptr<memory::context_state> home, int device,
                  runtime::coherence grain);

  runtime::coherence grain_;
};

/// Memory that both sides reach at one address; pages migrate where the machine can. Slow where it
/// cannot (AMD without XNACK: kernels then read it over the link).
class managed_resource : public detail::resource_base {
public:
  static constexpr memory_kind kind = memory_kind::managed;
  static constexpr bool host_visible = true;
  static constexpr bool device_visible = true;

  /// As pinned_resource::try_allocate. @errors also gpu_not_supported
  [[nodiscard]] result<void*> try_allocate(bytes_t bytes,
                                           bytes_t alignment = resource_alignment) const;
  /// @throws berth::exception
  [[nodiscard]] void* allocate(bytes_t bytes, bytes_t alignment = resource_alignment) const {
    return try_allocate(bytes, alignment).value();
  }
  /// As pinned_resource::try_deallocate.
  result<void> try_deallocate(void* memory) const { return try_free(memory, kind); }
  /// @throws berth::exception
  void deallocate(void* memory) const { try_deallocate(memory).value(); }

private:
  friend class context;
  managed_resource(std::shared_ptr<memory::context_state> home, int device);
};

/// Ordinary host memory: for data that the GPU sees once or never.
class pageable_resource : public detail::resource_base {
public:
  static constexpr memory_kind kind = memory_kind::pageable;
  static constexpr bool host_visible = true;
  static constexpr bool device_visible = false;

  /// Any power of two as alignment. @errors memory_invalid_size, memory_invalid_alignment,
  /// gpu_out_of_memory (of the host), memory_context_closed
  [[nodiscard]] result<void*> try_allocate(bytes_t bytes,
                                           bytes_t alignment = resource_alignment) const;
  /// @throws berth::exception
  [[nodiscard]] void* allocate(bytes_t bytes, bytes_t alignment = resource_alignment) const {
    return try_allocate(bytes, alignment).value();
  }
  /// As pinned_resource::try_deallocate.
  result<void> try_deallocate(void* memory) const { return try_free(memory, kind); }
  /// @throws berth::exception
  void deallocate(void* memory) const { try_deallocate(memory).value(); }

private:
  friend class context;
  explicit pageable_resource(std::shared_ptr<memory::context_state> home);
};

static_assert(host_visible_resource<pinned_resource> && device_visible_resource<pinned_resource>);
static_assert(!host_visible_resource<device_resource> && device_visible_resource<device_resource>);
static_assert(host_visible_resource<managed_resource> && device_visible_resource<managed_resource>);
static_assert(host_visible_resource<pageable_resource> &&
              !device_visible_resource<pageable_resource>);

}  // namespace berth
