// SPDX-License-Identifier: Apache-2.0
#include "report/model.hpp"

#include <array>
#include <string_view>

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

}  // namespace berth::report
