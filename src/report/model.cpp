// SPDX-License-Identifier: Apache-2.0
#include "report/model.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace berth::report {
namespace {

std::string_view name_of(direction way) noexcept {
  constexpr std::array<std::string_view, 6> names{"Copy", "HtoD", "DtoH", "DtoD", "PtoP", "HtoH"};
  return names[static_cast<std::size_t>(way)];
}

std::string_view name_of(memory_kind kind, std::string_view if_unknown) noexcept {
  constexpr std::array<std::string_view, 6> names{"",       "Pageable", "Registered",
                                                  "Pinned", "Managed",  "Device"};
  return kind == memory_kind::unknown ? if_unknown : names[static_cast<std::size_t>(kind)];
}

constexpr bool from_host(direction way) noexcept {
  return way == direction::host_to_device || way == direction::host_to_host;
}
constexpr bool to_host(direction way) noexcept {
  return way == direction::device_to_host || way == direction::host_to_host;
}

}  // namespace

std::string copy_label(const diagnose::copy_group& group) {
  if (group.direction == direction::unknown) {
    return "Copy (direction unknown)";
  }
  return fmt::format("{} ({} -> {})", name_of(group.direction),
                     name_of(group.source, from_host(group.direction) ? "Host" : "Device"),
                     name_of(group.destination, to_host(group.direction) ? "Host" : "Device"));
}

std::vector<labelled_copies> labelled(const diagnose::totals& totals) {
  std::vector<labelled_copies> shown;
  for (const auto& group : totals.copies) {
    auto label = copy_label(group);
    const auto found = std::find_if(shown.begin(), shown.end(),
                                    [&](const labelled_copies& one) { return one.label == label; });
    if (found == shown.end()) {
      shown.push_back({std::move(label), group});
      continue;
    }
    auto& sum = found->group;
    sum.source = sum.source == group.source ? sum.source : memory_kind::unknown;
    sum.destination = sum.destination == group.destination ? sum.destination : memory_kind::unknown;
    sum.count += group.count;
    sum.bytes += group.bytes;
    sum.without_bytes += group.without_bytes;
    sum.time_ns += group.time_ns;
    sum.time_with_bytes_ns += group.time_with_bytes_ns;
    sum.without_time += group.without_time;
    sum.bytes_with_time += group.bytes_with_time;
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.group.time_ns > b.group.time_ns; });
  return shown;
}

}  // namespace berth::report
