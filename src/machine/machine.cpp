// SPDX-License-Identifier: Apache-2.0
// Spellings of the words of machine.hpp.
#include "machine/machine.hpp"

#include "machine/enum_names.hpp"

namespace berth::machine {
namespace {

using namespace std::string_view_literals;

constexpr std::array vendor_names{"unknown"sv, "amd"sv, "nvidia"sv};
constexpr std::array xnack_names{"unknown"sv, "none"sv, "boot_parameter"sv, "per_process"sv};
constexpr std::array state_names{"unknown"sv, "off"sv, "on"sv, "inapplicable"sv};
constexpr std::array link_names{"unknown"sv, "pcie"sv, "xgmi"sv, "nvlink"sv, "socket"sv};
constexpr std::array iommu_names{"unknown"sv, "off"sv, "passthrough"sv, "translated"sv};

constexpr std::array port_names{"unknown"sv,    "endpoint"sv,  "upstream"sv,
                                "downstream"sv, "root_port"sv, "bridge"sv};

}  // namespace

std::string_view to_string(vendor value) noexcept {
  return name_of(vendor_names, value);
}
std::string_view to_string(xnack_ability value) noexcept {
  return name_of(xnack_names, value);
}
std::string_view to_string(setting_state value) noexcept {
  return name_of(state_names, value);
}
std::string_view to_string(link_kind value) noexcept {
  return name_of(link_names, value);
}
std::string_view to_string(iommu_mode value) noexcept {
  return name_of(iommu_names, value);
}
std::string_view to_string(pci_port value) noexcept {
  return name_of(port_names, value);
}

std::optional<vendor> parse_vendor(std::string_view text) noexcept {
  return value_of<vendor>(vendor_names, text);
}
std::optional<xnack_ability> parse_xnack_ability(std::string_view text) noexcept {
  return value_of<xnack_ability>(xnack_names, text);
}
std::optional<setting_state> parse_setting_state(std::string_view text) noexcept {
  return value_of<setting_state>(state_names, text);
}
std::optional<link_kind> parse_link_kind(std::string_view text) noexcept {
  return value_of<link_kind>(link_names, text);
}
std::optional<iommu_mode> parse_iommu_mode(std::string_view text) noexcept {
  return value_of<iommu_mode>(iommu_names, text);
}

}  // namespace berth::machine
