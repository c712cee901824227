// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/host_pages.hpp"

namespace berth::runtime::sim {
namespace {

// Below this the heap's own reuse decides, and the cost is small.
constexpr bytes_t least_observed = 256 * kib;

}  // namespace

void host_pages::declare(std::uintptr_t first, bytes_t bytes, page_facts facts) {
  for (auto at = declared_.begin(); at != declared_.end();) {
    const bool overlaps = at->first < first + bytes && first < at->first + at->second.bytes;
    at = overlaps ? declared_.erase(at) : std::next(at);
  }
  declared_.emplace(first, declared{bytes, facts});
}

void host_pages::touched(std::uintptr_t first, bytes_t bytes) {
  for (auto& [start, what] : declared_) {
    if (start < first + bytes && first < start + what.bytes) {
      what.facts.traits = what.facts.traits.without(machine::trait::fresh_pages);
    }
  }
}

page_facts host_pages::facts_of(const std::byte* first, bytes_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const auto after = declared_.upper_bound(address);
  if (after != declared_.begin()) {
    const auto& [start, what] = *std::prev(after);
    if (address < start + what.bytes) {
      return what.facts;
    }
  }
  return {.traits = observe(first, bytes), .numa_node = std::nullopt};
}

machine::trait_set host_pages::observe(const std::byte* first, bytes_t bytes) const noexcept {
  if (how_ != page_state::observed || bytes < least_observed) {
    return {};
  }
  switch (probe_.look(first, bytes)) {
    case pages::fresh:
      return machine::trait::fresh_pages;
    case pages::of_file:
      return machine::trait::file_mapped;
    case pages::resident:
      break;
  }
  return {};
}

}  // namespace berth::runtime::sim
