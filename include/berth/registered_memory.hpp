// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory that exists already, page-locked for a while, so that DMA reaches it in place.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"

namespace berth {

namespace memory {
class context_state;
}

/// Keeps a range of the program's memory page-locked. Move-only.
///
/// Any alignment is fine: whole pages are locked. Ranges that overlap others registered through the
/// same context share their pages: each page is locked once and unlocked with its last owner. Pages
/// that the program has registered itself are left as they are. The memory must stay allocated for
/// as long as this object lives.
class registered_memory {
public:
  registered_memory(registered_memory&& other) noexcept = default;
  registered_memory& operator=(registered_memory&& other) noexcept;
  registered_memory(const registered_memory&) = delete;
  registered_memory& operator=(const registered_memory&) = delete;
  /// No queued work may still use the range.
  ~registered_memory();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_; }

private:
  friend class context;
  registered_memory(std::shared_ptr<memory::context_state> home, std::span<std::byte> memory,
                    std::vector<std::byte*> pieces);
  void end() noexcept;

  std::shared_ptr<memory::context_state> home_;  // null: moved from
  std::span<std::byte> memory_;
  std::vector<std::byte*> pieces_;  // starts of the locked ranges that this object shares
};

}  // namespace berth
