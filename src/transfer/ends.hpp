// SPDX-License-Identifier: Apache-2.0
// The two ends of a staged copy. Both see the copy as one run of packed bytes, [0, n): the host
// side moves a part of it into or out of a slot of the ring, by CPU; the device side queues the
// move between a slot and the device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "berth/copy_engine.hpp"
#include "berth/result.hpp"
#include "runtime/driver.hpp"
#include "transfer/slot_copy.hpp"

namespace berth::transfer {

// What the pages of a linear host end need.
enum class page_care : std::uint8_t {
  none,
  populate,    // a fresh destination: make its pages present, in huge pages where allowed
  read_ahead,  // a mapped file as source
};

class host_side {
public:
  host_side() = default;
  host_side(const host_side&) = delete;
  host_side& operator=(const host_side&) = delete;
  host_side(host_side&&) = delete;
  host_side& operator=(host_side&&) = delete;
  virtual ~host_side() = default;

  // Any thread, several at once for different parts.
  virtual result<void> fill(std::span<std::byte> slot, bytes_t offset) = 0;
  virtual result<void> drain(std::span<const std::byte> slot, bytes_t offset) = 0;
  // A destination may want its memory prepared before drain(), which is then faster. It comes in
  // units, which are ready in any order; 0: there is nothing to prepare.
  [[nodiscard]] virtual std::uint32_t unit_count() const noexcept { return 0; }
  // The unit that holds the byte.
  [[nodiscard]] virtual std::uint32_t unit_of(bytes_t /*offset*/) const noexcept { return 0; }
  virtual void prepare(std::uint32_t /*unit*/) noexcept {}
};

// Page-locked memory of one block, with the addresses by which kernels find it.
struct ring_slot {
  std::span<std::byte> bytes;
  std::span<std::byte> scratch;  // of the size that scratch_for() asked for; 8-byte aligned
  std::byte* device_bytes = nullptr;
  std::byte* device_scratch = nullptr;
};

class device_side {
public:
  device_side() = default;
  device_side(const device_side&) = delete;
  device_side& operator=(const device_side&) = delete;
  device_side(device_side&&) = delete;
  device_side& operator=(device_side&&) = delete;
  virtual ~device_side() = default;

  // Queue the move of [offset, offset + slot.bytes.size()) from, or to, the slot.
  virtual result<void> send(const ring_slot& slot, bytes_t offset,
                            runtime::stream_handle stream) = 0;
  virtual result<void> fetch(const ring_slot& slot, bytes_t offset,
                             runtime::stream_handle stream) = 0;
  // Of the slot for a block.
  [[nodiscard]] virtual bytes_t scratch_for(bytes_t /*offset*/, bytes_t /*bytes*/) const noexcept {
    return 0;
  }
};

// One type of end serves both directions: what is called decides whether it is read or written.
[[nodiscard]] inline std::byte* writable(const void* memory) noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): see above
  return static_cast<std::byte*>(const_cast<void*>(memory));
}

[[nodiscard]] std::unique_ptr<host_side> linear_host(runtime::driver& gpu, std::byte* memory,
                                                     bytes_t bytes, page_care care,
                                                     slot_store store);
[[nodiscard]] std::unique_ptr<host_side> pitched_host(runtime::driver& gpu, std::byte* memory,
                                                      std::size_t pitch, std::size_t width);
[[nodiscard]] std::unique_ptr<host_side> producing_host(const slot_producer& from);
[[nodiscard]] std::unique_ptr<host_side> consuming_host(slot_consumer to);

[[nodiscard]] std::unique_ptr<device_side> linear_device(runtime::driver& gpu, std::byte* memory);
[[nodiscard]] std::unique_ptr<device_side> pitched_device(runtime::driver& gpu, std::byte* memory,
                                                          std::size_t pitch, std::size_t width);

// Many small ranges, packed one behind the other.
struct packed_range {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  bytes_t bytes = 0;
  bytes_t offset = 0;  // in the packed bytes
};
using packed_ranges = std::shared_ptr<const std::vector<packed_range>>;  // by ascending offset

[[nodiscard]] std::unique_ptr<host_side> scattered_host(runtime::driver& gpu, packed_ranges ranges);
[[nodiscard]] std::unique_ptr<device_side> scattered_device(runtime::driver& gpu,
                                                            packed_ranges ranges);

}  // namespace berth::transfer
