// SPDX-License-Identifier: Apache-2.0
#include "runtime/hip/registrations.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>

namespace berth::runtime::hip {
namespace {

std::uintptr_t number_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

std::optional<registration> registrations::enter(const void* memory, bytes_t bytes) {
  const auto start = number_of(memory);
  bytes = std::min<bytes_t>(bytes, std::numeric_limits<std::uintptr_t>::max() - start);
  const std::lock_guard guard(lock_);
  const auto above = by_start_.lower_bound(start);
  if (above != by_start_.end() && above->first - start < bytes) {
    return above->second;
  }
  if (above != by_start_.begin()) {
    const auto& below = std::prev(above)->second;
    if (start - below.start < below.bytes) {
      return below;
    }
  }
  by_start_.emplace_hint(above, start, registration{start, bytes, registration_phase::entering});
  return std::nullopt;
}

void registrations::hold(const void* memory) {
  const std::lock_guard guard(lock_);
  if (const auto found = by_start_.find(number_of(memory)); found != by_start_.end()) {
    found->second.phase = registration_phase::held;
  }
}

bool registrations::take(const void* memory) {
  const std::lock_guard guard(lock_);
  const auto found = by_start_.find(number_of(memory));
  if (found == by_start_.end() || found->second.phase != registration_phase::held) {
    return false;
  }
  found->second.phase = registration_phase::leaving;
  return true;
}

void registrations::remove(const void* memory) {
  const std::lock_guard guard(lock_);
  by_start_.erase(number_of(memory));
}

std::optional<registration> registrations::find(const void* address) const {
  const auto place = number_of(address);
  const std::shared_lock guard(lock_);
  const auto above = by_start_.upper_bound(place);
  if (above == by_start_.begin()) {
    return std::nullopt;
  }
  const auto& found = std::prev(above)->second;
  return found.phase != registration_phase::entering && place - found.start < found.bytes
             ? std::optional(found)
             : std::nullopt;
}

}  // namespace berth::runtime::hip
