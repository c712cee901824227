// SPDX-License-Identifier: Apache-2.0
// A ring of page-locked memory with the stream that its DMAs run in. Space is taken and given back
// in the order of the blocks of one copy.
//
// The memory is the process's own, on huge pages where the system allows, page-locked by
// registration: that is made in a tenth of the time that the runtimes take for pinned memory, and
// threads that copy into it miss fewer page translations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "berth/result.hpp"
#include "memory/context_state.hpp"
#include "runtime/driver.hpp"

namespace berth::transfer {

class ring {
public:
  // Blocks under way at the same time, at most: each has an event.
  static constexpr std::uint32_t most_blocks = 64;

  // A part of the ring. `span` includes what was skipped to keep the part in one piece.
  struct part {
    bytes_t at = 0;
    bytes_t span = 0;
  };

  // Blocks for the runtime. `home` must outlive it; its budget admits the memory.
  static result<std::unique_ptr<ring>> make(memory::context_state& home, int device, bytes_t bytes);
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;
  ring(ring&&) = delete;
  ring& operator=(ring&&) = delete;
  // No DMA may still use it, unless it was abandoned.
  ~ring();

  [[nodiscard]] bytes_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] runtime::stream_handle stream() const noexcept { return *stream_; }
  [[nodiscard]] runtime::event_handle event(std::uint32_t block) const noexcept {
    return events_[block % most_blocks];
  }
  [[nodiscard]] std::span<std::byte> at(const part& where, bytes_t bytes) const noexcept {
    return {memory_ + where.at, bytes};
  }
  // Where kernels find the ring's memory.
  [[nodiscard]] std::byte* device_address(const std::byte* of) const noexcept {
    return device_memory_ + (of - memory_);
  }

  // Nothing while there is no room. Pre: bytes <= what is used of the ring.
  [[nodiscard]] std::optional<part> take(bytes_t bytes) noexcept;
  // The oldest part that is taken.
  void give_back(const part& oldest) noexcept;
  // All parts are given back; from now on so much of it is used, if there is so much.
  void clear(bytes_t used) noexcept;

  // Leaves memory, stream and events to the end of the process: a DMA may still use them.
  void abandon() noexcept { abandoned_ = true; }

private:
  ring(memory::context_state& home, bytes_t bytes) : home_(home), bytes_(bytes) {}
  [[nodiscard]] result<void> lock_memory(int device);
  [[nodiscard]] result<void> make_stream(int device);

  memory::context_state& home_;
  bytes_t bytes_;
  std::byte* memory_ = nullptr;
  std::byte* device_memory_ = nullptr;  // null: not page-locked
  std::optional<runtime::stream_handle> stream_;
  std::vector<runtime::event_handle> events_;
  bool abandoned_ = false;
  bytes_t usable_ = 0;
  bytes_t head_ = 0;
  bytes_t used_ = 0;
};

}  // namespace berth::transfer
