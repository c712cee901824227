// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/mapping.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace berth::runtime::sim {
namespace {

constexpr bytes_t most_poisoned = 64 * mib;

}  // namespace

std::optional<mapping> mapping::make(bytes_t bytes, protection how) noexcept {
  if (bytes > (bytes_t{1} << 46U)) {
    return std::nullopt;
  }
  const bytes_t rounded = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const int access = how == protection::none ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* const made =
      mmap(nullptr, rounded, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) {
    return std::nullopt;
  }
  return mapping(static_cast<std::byte*>(made), rounded);
}

mapping::mapping(mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

mapping& mapping::operator=(mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

mapping::~mapping() {
  if (data_ != nullptr) {
    munmap(data_, size_);
  }
}

hidden_bytes::hidden_bytes(mapping bytes)
    : bytes_(std::move(bytes)), prepared_((bytes_.size() + block_bytes - 1) / block_bytes, false) {}

void hidden_bytes::prepare(bytes_t block) {
  if (!prepared_[block]) {
    const bytes_t first = block * block_bytes;
    std::memset(bytes_.data() + first, std::to_integer<int>(poison),
                std::min(block_bytes, bytes_.size() - first));
    prepared_[block] = true;
  }
}

std::byte* hidden_bytes::for_read(bytes_t offset, bytes_t bytes) {
  for (bytes_t block = offset / block_bytes;
       bytes > 0 && block <= (offset + bytes - 1) / block_bytes; ++block) {
    prepare(block);
  }
  return bytes_.data() + offset;
}

std::byte* hidden_bytes::for_write(bytes_t offset, bytes_t bytes) {
  if (bytes > 0) {
    const bytes_t first = offset / block_bytes;
    const bytes_t last = (offset + bytes - 1) / block_bytes;
    // The blocks at the ends keep bytes that are not overwritten.
    prepare(first);
    prepare(last);
    for (bytes_t block = first; block <= last; ++block) {
      prepared_[block] = true;
    }
  }
  return bytes_.data() + offset;
}

void poison_bytes(std::byte* first, bytes_t bytes) noexcept {
  const auto value = std::to_integer<int>(poison);
  if (bytes <= most_poisoned) {
    std::memset(first, value, bytes);
    return;
  }
  std::memset(first, value, most_poisoned);
  std::memset(first + bytes - page_bytes, value, page_bytes);
}

}  // namespace berth::runtime::sim
