// SPDX-License-Identifier: Apache-2.0
/// @file
/// Owned memory of any resource: freed where it came from, at the end of its scope.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "berth/memory_resource.hpp"

namespace berth {

/// `size` objects of type T in memory of a resource or a pool. Move-only. The memory is not
/// initialised. T is trivial to copy and to destroy, because devices move it as bytes.
template <typename T, memory_resource Resource>
class unique_memory {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "memory that GPUs see holds plain values");

public:
  /// Memory that nothing uses. @throws berth::exception as the resource's allocate does;
  /// memory_invalid_size also if size * sizeof(T) does not fit into 64 bits
  unique_memory(Resource from, std::size_t size)
      : from_(std::move(from)),
        data_(static_cast<T*>(from_.allocate(bytes_of(size)))),
        size_(size) {}

  unique_memory(unique_memory&& other) noexcept
      : from_(other.from_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  unique_memory& operator=(unique_memory&& other) noexcept {
    if (this != &other) {
      reset();
      from_ = other.from_;
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  unique_memory(const unique_memory&) = delete;
  unique_memory& operator=(const unique_memory&) = delete;
  /// No work may still use the memory.
  ~unique_memory() { reset(); }

  /// The address, for kernels and copies.
  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bytes_t bytes() const noexcept { return size_ * sizeof(T); }

  /// The objects, for the host: only memory that the host can reach has them.
  [[nodiscard]] std::span<T> span() const noexcept
    requires host_visible_resource<Resource>
  {
    return {data_, size_};
  }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept
    requires host_visible_resource<Resource>
  {
    return data_[index];
  }

  /// Frees the memory now.
  void reset() noexcept {
    if (data_ != nullptr) {
      // It came from there, so that this cannot fail but after the runtime's shutdown.
      static_cast<void>(from_.try_deallocate(std::exchange(data_, nullptr)));
      size_ = 0;
    }
  }

private:
  static bytes_t bytes_of(std::size_t size) {
    if (size > std::numeric_limits<bytes_t>::max() / sizeof(T)) {
      throw_error(error(errc::memory_invalid_size, "size * sizeof(T) does not fit into 64 bits",
                        "unique_memory"));
    }
    return size * sizeof(T);
  }

  Resource from_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <typename Resource>
unique_memory(Resource, std::size_t) -> unique_memory<std::byte, Resource>;

/// `make_unique_memory<float>(pool, n)`
template <typename T, memory_resource Resource>
[[nodiscard]] unique_memory<T, Resource> make_unique_memory(Resource from, std::size_t size) {
  return unique_memory<T, Resource>(std::move(from), size);
}

}  // namespace berth
