// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/address_replay.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

namespace berth::trace::recording {
namespace {

bytes_t within_addresses(std::uint64_t begin, bytes_t size) noexcept {
  return std::min(size, std::numeric_limits<std::uint64_t>::max() - begin);
}

// When an event counts, in the order of the file where two count at the same moment.
struct moment {
  std::int64_t time;
  std::size_t event;

  friend bool operator<(const moment& a, const moment& b) noexcept {
    return std::tie(a.time, a.event) < std::tie(b.time, b.event);
  }
};

bool has_addresses(action what) noexcept {
  return what != action::other && what != action::launch && what != action::synchronise;
}

bool is_device_record(const call& which) noexcept {
  return which.api == "device";
}

std::vector<moment> moments_of(const content& recorded, const std::vector<operation>& operations) {
  std::vector<moment> moments;
  for (std::size_t index = 0; index < recorded.events.size(); ++index) {
    const auto& event = recorded.events[index];
    const auto what = operations[event.call].action;
    if (has_addresses(what) && !is_device_record(recorded.call_of(event))) {
      moments.push_back({what == action::allocate ? recorded.end_of(event) : event.begin, index});
    }
  }
  std::sort(moments.begin(), moments.end());
  return moments;
}

std::optional<known_range> range_at(const address_space& space,
                                    std::optional<std::uint64_t> address) {
  const auto* const found = address ? space.find(*address) : nullptr;
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::optional<std::uint32_t> device_index(std::optional<std::uint64_t> value) noexcept {
  constexpr std::uint64_t most_devices = 1U << 16;
  return value && *value < most_devices ? std::optional(static_cast<std::uint32_t>(*value))
                                        : std::nullopt;
}

}  // namespace

void address_space::erase_within(std::uint64_t begin, bytes_t size) {
  const auto end = begin + within_addresses(begin, size);
  auto place = ranges_.upper_bound(begin);
  if (place != ranges_.begin()) {
    const auto before = std::prev(place);
    if (before->first == begin || before->second.begin + before->second.size > begin) {
      place = before;
    }
  }
  while (place != ranges_.end() && place->first < end) {
    place = ranges_.erase(place);
  }
}

void address_space::put(const known_range& range) {
  known_range kept = range;
  kept.size = within_addresses(range.begin, range.size);
  if (kept.size > 0) {
    erase_within(kept.begin, kept.size);
    ranges_.emplace(kept.begin, kept);
  }
}

const known_range* address_space::find(std::uint64_t address) const {
  const auto place = ranges_.upper_bound(address);
  if (place == ranges_.begin()) {
    return nullptr;
  }
  const auto& range = std::prev(place)->second;
  return address - range.begin < range.size ? &range : nullptr;
}

replayed::replayed(const content& recorded, const std::vector<operation>& operations)
    : slots_(recorded.events.size(), 0) {
  for (const auto& [time, event] : moments_of(recorded, operations)) {
    replay(recorded, operations, event);
  }
}

void replayed::replay(const content& recorded, const std::vector<operation>& operations,
                      std::size_t index) {
  const auto& event = recorded.events[index];
  const auto& what = operations[event.call];
  const auto memory = recorded.get(event, role::memory);
  const auto bytes = recorded.get(event, role::bytes);
  if (what.action == action::allocate) {
    if (event.status == 0 && memory && bytes) {
      space_.put({*memory, *bytes, what.memory, device_index(recorded.get(event, role::device))});
    }
    return;
  }
  const auto destination = recorded.get(event, role::dst);
  touched found{range_at(space_, destination ? destination : memory),
                range_at(space_, recorded.get(event, role::src))};
  if (found.destination || found.source) {
    slots_[index] = static_cast<std::uint32_t>(touched_.size());
    touched_.push_back(found);
  }
  if (event.status != 0 || !memory) {
    return;
  }
  if (what.action == action::release) {
    space_.erase_at(*memory);
  } else if (what.action == action::release_range && bytes) {
    space_.erase_within(*memory, *bytes);
  }
}

const touched& replayed::of(std::size_t event) const noexcept {
  return touched_[slots_[event]];
}

}  // namespace berth::trace::recording
