// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/call_sites.hpp"

#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace berth::trace::recording {

std::uint32_t call_sites::of(std::optional<std::uint64_t> stack) {
  const auto found = stack ? recorded_.stacks.find(*stack) : recorded_.stacks.end();
  if (found == recorded_.stacks.end() || found->second.empty()) {
    return no_row;
  }
  const auto [place, is_new] = sites_.try_emplace(*stack, no_row);
  if (is_new) {
    std::vector<name_id> frames;
    for (const auto address : found->second) {
      frames.push_back(name_of(address));
    }
    place->second = into_.intern_call_site(std::move(frames));
  }
  return place->second;
}

name_id call_sites::name_of(std::uint64_t address) {
  const auto [place, is_new] = names_.try_emplace(address, 0);
  if (!is_new) {
    return place->second;
  }
  const auto next = recorded_.modules.upper_bound(address);
  if (next == recorded_.modules.begin() ||
      address - std::prev(next)->first >= std::prev(next)->second.size) {
    return place->second = into_.intern(fmt::format("{:#x}", address));
  }
  const auto& [begin, mapped] = *std::prev(next);
  return place->second = into_.intern(
             symbols_.name_of({begin, mapped.offset, mapped.path, mapped.build_id}, address));
}

}  // namespace berth::trace::recording
