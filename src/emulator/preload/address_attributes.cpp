// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/address_attributes.hpp"

#include <algorithm>
#include <mutex>

namespace berth::emulator {
namespace {

using kfd::svm_attribute;

// The weaker of two accesses stands further behind in the enumeration.
svm_attribute weaker(svm_attribute a, svm_attribute b) noexcept {
  return std::max(a, b);
}

template <typename Entries, typename Member>
std::uint32_t common(const Entries& entries, Member member) {
  const auto first = entries.front()->*member;
  const bool same = std::all_of(entries.begin(), entries.end(),
                                [&](const auto* one) { return one->*member == first; });
  return same ? first : kfd::svm_location_undefined;
}

}  // namespace

void address_attributes::apply(entry& to, const kfd::svm_attribute_value& attribute) {
  switch (static_cast<svm_attribute>(attribute.type)) {
    case svm_attribute::preferred_location:
      to.preferred = attribute.value;
      break;
    case svm_attribute::prefetch_location:
      to.prefetch = attribute.value;
      break;
    case svm_attribute::access:
    case svm_attribute::access_in_place:
    case svm_attribute::no_access:
      to.access[attribute.value] = static_cast<svm_attribute>(attribute.type);
      break;
    case svm_attribute::set_flags:
      to.flags |= attribute.value;
      break;
    case svm_attribute::clear_flags:
      to.flags &= ~attribute.value;
      break;
    case svm_attribute::granularity:
      to.granularity = std::min(attribute.value, 63U);
      break;
  }
}

// No range reaches across the address afterwards.
void address_attributes::split_at(std::uint64_t address) {
  auto above = ranges_.upper_bound(address);
  if (above == ranges_.begin()) {
    return;
  }
  const auto found = std::prev(above);
  if (found->first < address && address < found->second.end) {
    ranges_.emplace(address, range{found->second.end, found->second.what});
    found->second.end = address;
  }
}

void address_attributes::set(std::uint64_t start, std::uint64_t bytes, values attributes) {
  const std::unique_lock hold(lock_);
  const auto end = start + bytes;
  split_at(start);
  split_at(end);
  for (auto at = start; at < end;) {
    auto next = ranges_.lower_bound(at);
    if (next == ranges_.end() || next->first > at) {
      const auto gap_end = next == ranges_.end() ? end : std::min(end, next->first);
      next = ranges_.emplace(at, range{gap_end, {}}).first;
    }
    for (const auto& attribute : attributes) {
      apply(next->second.what, attribute);
    }
    at = next->second.end;
  }
}

std::vector<const address_attributes::entry*> address_attributes::overlapping(
    std::uint64_t start, std::uint64_t end) const {
  std::vector<const entry*> found;
  auto at = ranges_.upper_bound(start);
  if (at != ranges_.begin() && std::prev(at)->second.end > start) {
    --at;
  }
  for (; at != ranges_.end() && at->first < end; ++at) {
    found.push_back(&at->second.what);
  }
  return found;
}

void address_attributes::get(std::uint64_t start, std::uint64_t bytes, values attributes,
                             xnack_mode xnack) const {
  const auto unset_access =
      xnack == xnack_mode::on ? svm_attribute::access : svm_attribute::no_access;
  const std::shared_lock hold(lock_);
  const entry unset;
  auto entries = overlapping(start, start + bytes);
  if (entries.empty()) {
    entries.push_back(&unset);
  }
  const auto access_of = [&](std::uint32_t device) {
    auto weakest = svm_attribute::access;
    for (const auto* one : entries) {
      const auto given = one->access.find(device);
      weakest = weaker(weakest, given == one->access.end() ? unset_access : given->second);
    }
    return weakest;
  };
  for (auto& asked : attributes) {
    switch (static_cast<svm_attribute>(asked.type)) {
      case svm_attribute::preferred_location:
        asked.value = common(entries, &entry::preferred);
        break;
      case svm_attribute::prefetch_location:
        asked.value = common(entries, &entry::prefetch);
        break;
      case svm_attribute::access:
      case svm_attribute::access_in_place:
      case svm_attribute::no_access:
        asked.type = static_cast<std::uint32_t>(access_of(asked.value));
        break;
      case svm_attribute::set_flags:
        asked.value = ~0U;
        for (const auto* one : entries) {
          asked.value &= one->flags;
        }
        break;
      case svm_attribute::clear_flags:
        asked.value = ~0U;
        for (const auto* one : entries) {
          asked.value &= ~one->flags;
        }
        break;
      case svm_attribute::granularity:
        asked.value = kfd::svm_default_granularity;
        for (const auto* one : entries) {
          asked.value = std::min(asked.value, one->granularity);
        }
        break;
    }
  }
}

std::uint64_t address_attributes::accessible(std::uint64_t address) const {
  const std::shared_lock hold(lock_);
  auto above = ranges_.upper_bound(address);
  if (above == ranges_.begin()) {
    return 0;
  }
  const auto& [end, what] = std::prev(above)->second;
  const bool granted = std::any_of(what.access.begin(), what.access.end(), [](const auto& one) {
    return one.second != svm_attribute::no_access;
  });
  return granted && address < end ? end - address : 0;
}

}  // namespace berth::emulator
