// SPDX-License-Identifier: Apache-2.0
#include "transfer/kept_ranges.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth::transfer {
namespace {

// So many copies of a range are remembered before those that have ended are looked for.
constexpr std::size_t most_remembered = 32;

}  // namespace

result<void> kept_ranges::add(std::span<std::byte> memory, int device) {
  auto pieces = home_.registered().acquire(memory, {.device = device});
  if (!pieces) {
    return pieces.error();
  }
  const std::scoped_lock lock(mutex_);
  ranges_.emplace(memory.data(),
                  range{.bytes = memory.size(), .pieces = std::move(*pieces), .copies = {}});
  count_.fetch_add(1, std::memory_order_release);
  return {};
}

result<void> kept_ranges::remove(std::span<std::byte> memory) {
  range removed;
  {
    const std::scoped_lock lock(mutex_);
    const auto [first, last] = ranges_.equal_range(memory.data());
    const auto found = std::find_if(
        first, last, [&](const auto& one) { return one.second.bytes == memory.size(); });
    if (found == last) {
      return error(errc::transfer_not_kept, "the range is not kept",
                   fmt::format("forget({}, {} bytes)", static_cast<const void*>(memory.data()),
                               memory.size()),
                   "pair each keep() with one forget() of the same range");
    }
    removed = std::move(found->second);
    ranges_.erase(found);
    count_.fetch_sub(1, std::memory_order_release);
  }
  result<void> waited;
  for (const auto& one : removed.copies) {
    // Its own error is its ticket's to tell; but nothing is unlocked under a DMA.
    if (const auto done = one->wait(); !done && !one->is_done()) {
      waited = done.error();
    }
  }
  if (!waited) {
    const std::scoped_lock lock(mutex_);
    ranges_.emplace(memory.data(), std::move(removed));
    count_.fetch_add(1, std::memory_order_release);
    return waited;
  }
  return home_.registered().release(removed.pieces);
}

bool kept_ranges::are_unused() const {
  std::vector<std::shared_ptr<ticket_state>> copies;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [first, one] : ranges_) {
      copies.insert(copies.end(), one.copies.begin(), one.copies.end());
    }
  }
  return std::all_of(copies.begin(), copies.end(), [](const auto& one) { return one->is_done(); });
}

void kept_ranges::remove_all() noexcept {
  ranges all;
  {
    const std::scoped_lock lock(mutex_);
    all.swap(ranges_);
    count_.store(0, std::memory_order_release);
  }
  for (const auto& [first, one] : all) {
    const bool unused = std::all_of(one.copies.begin(), one.copies.end(),
                                    [](const auto& copy) { return copy->is_done(); });
    if (unused) {
      static_cast<void>(home_.registered().release(one.pieces));
    }
  }
}

bool kept_ranges::covers(const std::byte* first, bytes_t bytes) const {
  if (!any()) {
    return false;
  }
  const std::scoped_lock lock(mutex_);
  // From the last that begins at or before `first`; an earlier, longer one may cover it as well.
  for (auto at = ranges_.upper_bound(first); at != ranges_.begin();) {
    --at;
    if (first + bytes <= at->first + at->second.bytes) {
      return true;
    }
  }
  return false;
}

void kept_ranges::note(const std::byte* first, bytes_t bytes, std::shared_ptr<ticket_state> copy) {
  std::vector<std::shared_ptr<ticket_state>> looked;
  std::vector<std::shared_ptr<ticket_state>> ended;
  const auto each = [&](const auto& visit) {
    for (auto& [start, one] : ranges_) {
      if (start < first + bytes && first < start + one.bytes) {
        visit(one);
      }
    }
  };
  {
    const std::scoped_lock lock(mutex_);
    each([&](range& one) {
      one.copies.push_back(copy);
      if (one.copies.size() > most_remembered) {
        looked.insert(looked.end(), one.copies.begin(), one.copies.end());
      }
    });
  }
  std::copy_if(looked.begin(), looked.end(), std::back_inserter(ended),
               [](const auto& one) { return one->is_done(); });
  if (ended.empty()) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  each([&](range& one) {
    std::erase_if(one.copies, [&](const auto& candidate) {
      return std::find(ended.begin(), ended.end(), candidate) != ended.end();
    });
  });
}

}  // namespace berth::transfer
