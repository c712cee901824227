// SPDX-License-Identifier: Apache-2.0
/// @file
/// Standard containers in memory that the GPU can reach: a std::pmr::memory_resource and an
/// allocator on top of any host-visible resource or pool.
///
///     berth::pool pool(context.pinned());
///     berth::pmr_resource pinned(pool);
///     std::pmr::vector<float> samples(n, &pinned);   // DMA reads it in place
#pragma once

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>

#include "berth/memory_resource.hpp"

namespace berth {

/// std::bad_alloc, as standard containers expect it, that still says what happened.
class bad_allocation : public std::bad_alloc {
public:
  explicit bad_allocation(error why) : why_(std::move(why)), text_(why_.to_string()) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const error& details() const noexcept { return why_; }

private:
  error why_;
  std::string text_;
};

namespace detail {

/// @throws bad_allocation
template <host_visible_resource Resource>
[[nodiscard]] void* allocate_for_container(const Resource& from, std::size_t bytes,
                                           std::size_t alignment) {
  // Containers may ask for nothing and want an address all the same.
  auto memory = from.try_allocate(bytes_t{bytes == 0 ? 1 : bytes}, bytes_t{alignment});
  if (!memory) {
    throw bad_allocation(memory.error());
  }
  return *memory;
}

}  // namespace detail

/// A std::pmr::memory_resource on a resource or pool. It must outlive the containers that use it.
/// Deallocation is at once: no queued work may still use a container's memory when it frees it.
template <host_visible_resource Resource>
class pmr_resource : public std::pmr::memory_resource {
public:
  explicit pmr_resource(Resource from) : from_(std::move(from)) {}

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::allocate_for_container(from_, bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t /*bytes*/, std::size_t /*alignment*/) override {
    static_cast<void>(from_.try_deallocate(memory));  // it came from there
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  Resource from_;
};

/// An allocator for standard containers: `std::vector<float, resource_allocator<float, R>>`.
template <typename T, host_visible_resource Resource>
class resource_allocator {
public:
  using value_type = T;

  explicit resource_allocator(Resource from) : from_(std::move(from)) {}
  template <typename U>
  resource_allocator(const resource_allocator<U, Resource>& other)  // NOLINT: as the standard asks
      : from_(other.resource()) {}

  /// @throws bad_allocation, std::bad_array_new_length
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw std::bad_array_new_length();
    }
    return static_cast<T*>(detail::allocate_for_container(from_, count * sizeof(T), alignof(T)));
  }
  void deallocate(T* memory, std::size_t /*count*/) noexcept {
    static_cast<void>(from_.try_deallocate(memory));  // it came from there
  }
  [[nodiscard]] const Resource& resource() const noexcept { return from_; }

  /// Resources of one context and kind free each other's memory; pools only their own.
  template <typename U>
  friend bool operator==(const resource_allocator& a, const resource_allocator<U, Resource>& b) {
    return a.resource() == b.resource();
  }

private:
  Resource from_;
};

/// Pinned memory for standard containers.
template <typename T>
using pinned_allocator = resource_allocator<T, pinned_resource>;

}  // namespace berth
