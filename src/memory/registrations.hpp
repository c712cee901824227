// SPDX-License-Identifier: Apache-2.0
// Which pages of the program a context has page-locked, and for how many owners. The runtimes
// refuse to lock a page twice; this makes ranges that share pages possible.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "berth/result.hpp"
#include "berth/units.hpp"
#include "memory/pinned_budget.hpp"
#include "runtime/driver.hpp"

namespace berth::memory {

class registrations {
public:
  registrations(runtime::driver& gpu, pinned_budget& budget) : gpu_(gpu), budget_(budget) {}

  // Locks the pages of the range that are not locked yet and shares those that are. Returns the
  // starts of all pieces that the range lies in; give them to release(). Blocks for the runtime.
  // @errors those of driver::register_host, memory_over_budget; nothing stays locked then
  [[nodiscard]] result<std::vector<std::byte*>> acquire(std::span<std::byte> memory,
                                                        const runtime::register_options& options);
  // The first error of the runtime, if any; all pieces are released nevertheless.
  result<void> release(const std::vector<std::byte*>& pieces);

private:
  struct piece {
    bytes_t bytes = 0;
    std::uint64_t owners = 0;
    bool ours = true;  // false: the program had locked these pages itself
  };
  using pieces_by_start = std::map<std::byte*, piece>;

  [[nodiscard]] result<void> lock_pages(std::byte* begin, std::byte* end,
                                        const runtime::register_options& options,
                                        std::vector<std::byte*>& taken);
  result<void> release_one(std::byte* start);

  runtime::driver& gpu_;
  pinned_budget& budget_;
  // Held while the runtime locks pages: two owners of one page must not both try.
  std::mutex mutex_;
  pieces_by_start pieces_;  // disjoint, whole pages
};

}  // namespace berth::memory
