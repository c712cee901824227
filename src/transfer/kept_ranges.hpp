// SPDX-License-Identifier: Apache-2.0
// Ranges that the program keeps page-locked for the engine, and the copies that use them.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "berth/result.hpp"
#include "memory/context_state.hpp"
#include "transfer/ticket_state.hpp"

namespace berth::transfer {

class kept_ranges {
public:
  explicit kept_ranges(memory::context_state& home) : home_(home) {}

  // Page-locks the range. @errors those of registrations::acquire
  [[nodiscard]] result<void> add(std::span<std::byte> memory, int device);
  // Blocks for the copies that use the range. @errors transfer_not_kept
  [[nodiscard]] result<void> remove(std::span<std::byte> memory);
  // Ranges that no copy uses any more; the others stay page-locked.
  void remove_all() noexcept;
  [[nodiscard]] bool are_unused() const;

  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) > 0; }
  // Whether all of the range is kept.
  [[nodiscard]] bool covers(const std::byte* first, bytes_t bytes) const;
  // A copy uses the range until it has ended.
  void note(const std::byte* first, bytes_t bytes, std::shared_ptr<ticket_state> copy);

private:
  struct range {
    bytes_t bytes = 0;
    std::vector<std::byte*> pieces;  // of registrations
    std::vector<std::shared_ptr<ticket_state>> copies;
  };
  using ranges = std::multimap<const std::byte*, range>;

  memory::context_state& home_;
  std::atomic<std::size_t> count_{0};
  mutable std::mutex mutex_;  // never held during a GPU call
  ranges ranges_;
};

}  // namespace berth::transfer
