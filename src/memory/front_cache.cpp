// SPDX-License-Identifier: Apache-2.0
#include "memory/front_cache.hpp"

namespace berth::memory {

thread_counts& thread_counts::operator+=(const thread_counts& other) noexcept {
  allocations += other.allocations;
  frees += other.frees;
  hits += other.hits;
  live_bytes += other.live_bytes;
  requested_bytes += other.requested_bytes;
  return *this;
}

block* front_cache::remove(bin& from, std::size_t index) noexcept {
  auto* const found = from.blocks[index].what;
  for (std::size_t at = index + 1; at < from.count; ++at) {
    from.blocks[at - 1] = from.blocks[at];
  }
  --from.count;
  bytes -= found->bytes;
  return found;
}

block* front_cache::take(size_class which, usage user) noexcept {
  if (which >= cached_classes) {
    return nullptr;
  }
  auto& from = bins_[which];
  // The latest first: its memory is the likeliest to be in a processor's cache.
  for (std::size_t index = from.count; index-- > 0;) {
    const auto freed_by = from.blocks[index].freed_by;
    if (freed_by.is_none() || freed_by == user) {
      return remove(from, index);
    }
  }
  return nullptr;
}

cached_block front_cache::take_any(size_class which) noexcept {
  if (which >= cached_classes || bins_[which].count == 0) {
    return {};
  }
  const auto freed_by = bins_[which].blocks[0].freed_by;
  return {remove(bins_[which], 0), freed_by};
}

bool front_cache::put(block* which, usage freed_by) noexcept {
  const auto list = class_of(which->bytes);
  if (list >= cached_classes || bins_[list].count == depth) {
    return false;
  }
  bins_[list].blocks[bins_[list].count++] = {which, freed_by};
  bytes += which->bytes;
  return true;
}

void front_cache::take_half(size_class which, std::vector<cached_block>& into) {
  for (std::size_t count = bins_[which].count / 2; count > 0; --count) {
    into.push_back(take_any(which));
  }
}

void front_cache::take_all(std::vector<cached_block>& into) {
  for (auto& from : bins_) {
    into.insert(into.end(), from.blocks.begin(), from.blocks.begin() + from.count);
    from.count = 0;
  }
  bytes = 0;
}

void front_cache::take_all_of(usage freed_by, std::vector<cached_block>& into) {
  for (auto& from : bins_) {
    for (std::size_t index = from.count; index-- > 0;) {
      if (from.blocks[index].freed_by == freed_by) {
        into.push_back({remove(from, index), freed_by});
      }
    }
  }
}

}  // namespace berth::memory
