// SPDX-License-Identifier: Apache-2.0
// Memory of the simulator, from the system: mappings that take real pages only where touched, and
// the pattern that stands wherever there is nothing to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "berth/units.hpp"

namespace berth::runtime::sim {

// What unwritten, unfinished and freed memory holds: a value that no test pattern has by chance.
inline constexpr std::byte poison{0xDB};

// The host's own pages.
inline constexpr bytes_t page_bytes = 4 * kib;

enum class protection : std::uint8_t { none, read_write };

// Whole private pages; gives them back when destroyed.
class mapping {
public:
  // Nothing where the system refuses.
  [[nodiscard]] static std::optional<mapping> make(bytes_t bytes, protection how) noexcept;

  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  mapping(mapping&& other) noexcept;
  mapping& operator=(mapping&& other) noexcept;
  ~mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] bytes_t size() const noexcept { return size_; }

private:
  mapping(std::byte* data, bytes_t size) noexcept : data_(data), size_(size) {}

  std::byte* data_;  // null: moved from
  bytes_t size_;
};

// Bytes behind memory that the host must not touch itself: device memory. They read as poison
// until written, without being written to beforehand, so that an allocation of 100 GB costs
// nothing.
class hidden_bytes {
public:
  explicit hidden_bytes(mapping bytes);

  // The bytes at `offset`, ready to be read (poison where nothing was written).
  [[nodiscard]] std::byte* for_read(bytes_t offset, bytes_t bytes);
  // The same to be overwritten entirely.
  [[nodiscard]] std::byte* for_write(bytes_t offset, bytes_t bytes);

private:
  void prepare(bytes_t block);

  static constexpr bytes_t block_bytes = 64 * kib;
  mapping bytes_;
  std::vector<bool> prepared_;
};

// Fills with poison, but no more than is worth the time: the first and the last part of very large
// ranges.
void poison_bytes(std::byte* first, bytes_t bytes) noexcept;

}  // namespace berth::runtime::sim
