// SPDX-License-Identifier: Apache-2.0
#include "machine/hardware_facts.hpp"

#include <algorithm>
#include <array>

namespace berth::machine {
namespace {

struct isa_ability {
  std::string_view isa;
  xnack_ability can;
};
// The kernel driver switches retries for each process from GC 9.4.2 on; older GFX9 have one switch
// for all, and GFX10.3 and later have none. That a code object can be built for XNACK does not mean
// that the driver offers it.
constexpr std::array isa_abilities = {
    isa_ability{"gfx900", xnack_ability::boot_parameter},
    isa_ability{"gfx902", xnack_ability::boot_parameter},
    isa_ability{"gfx904", xnack_ability::boot_parameter},
    isa_ability{"gfx906", xnack_ability::boot_parameter},
    isa_ability{"gfx908", xnack_ability::boot_parameter},
    isa_ability{"gfx909", xnack_ability::boot_parameter},
    isa_ability{"gfx90c", xnack_ability::boot_parameter},
    isa_ability{"gfx90a", xnack_ability::per_process},
    isa_ability{"gfx940", xnack_ability::per_process},
    isa_ability{"gfx941", xnack_ability::per_process},
    isa_ability{"gfx942", xnack_ability::per_process},
    isa_ability{"gfx950", xnack_ability::per_process},
};

struct isa_address {
  std::string_view prefix;
  std::uint32_t bits;
};
// The masks that the kernel driver sets: gmc_v8_0 to gmc_v12_0. The longest prefix first.
constexpr std::array isa_addresses{
    isa_address{"gfx90a", 48}, isa_address{"gfx94", 48}, isa_address{"gfx95", 48},
    isa_address{"gfx9", 44},   isa_address{"gfx10", 44}, isa_address{"gfx11", 44},
    isa_address{"gfx120", 44}, isa_address{"gfx8", 40},
};

struct speed_generation {
  std::string_view speed;  // GT/s
  std::uint32_t generation;
};
constexpr std::array speeds = {
    speed_generation{"2.5", 1},  speed_generation{"5", 2},    speed_generation{"5.0", 2},
    speed_generation{"8", 3},    speed_generation{"8.0", 3},  speed_generation{"16", 4},
    speed_generation{"16.0", 4}, speed_generation{"32", 5},   speed_generation{"32.0", 5},
    speed_generation{"64", 6},   speed_generation{"64.0", 6},
};

struct lane_rate {
  std::string_view speed;  // GT/s
  double gb_per_s;         // after the line code
};
// By generation, from the first on.
constexpr std::array lane_rates{
    lane_rate{"2.5", 0.25}, lane_rate{"5", 0.5},    lane_rate{"8", 0.985},
    lane_rate{"16", 1.969}, lane_rate{"32", 3.938}, lane_rate{"64", 7.563},
};

constexpr std::array<std::uint64_t, 7> widths = {1, 2, 4, 8, 12, 16, 32};

}  // namespace

xnack_ability xnack_ability_of(std::string_view isa) noexcept {
  const auto* const known = std::ranges::find(isa_abilities, isa, &isa_ability::isa);
  if (known != isa_abilities.end()) {
    return known->can;
  }
  const bool is_graphics =
      isa.starts_with("gfx103") || isa.starts_with("gfx11") || isa.starts_with("gfx12");
  return is_graphics ? xnack_ability::none : xnack_ability::unknown;
}

std::optional<std::uint32_t> dma_bits_of(std::string_view isa) noexcept {
  const auto* const known = std::ranges::find_if(
      isa_addresses, [&](const isa_address& one) { return isa.starts_with(one.prefix); });
  return known == isa_addresses.end() ? std::nullopt : std::optional(known->bits);
}

std::optional<std::uint32_t> pcie_generation_of(std::string_view giga_transfers) noexcept {
  const auto* const known = std::ranges::find(speeds, giga_transfers, &speed_generation::speed);
  return known == speeds.end() ? std::nullopt : std::optional(known->generation);
}

std::string_view pcie_speed_of(std::uint32_t generation) noexcept {
  return generation == 0 || generation > lane_rates.size() ? std::string_view()
                                                           : lane_rates[generation - 1].speed;
}

std::optional<double> pcie_gb_per_s(const pcie_link& link) noexcept {
  const auto generation = link.generation.value_or(0);
  if (generation == 0 || generation > lane_rates.size() || !link.width) {
    return std::nullopt;
  }
  return lane_rates[generation - 1].gb_per_s * *link.width;
}

bool is_pcie_width(std::uint64_t lanes) noexcept {
  return std::ranges::find(widths, lanes) != widths.end();
}

namespace kfd {

link_kind link_kind_of(std::uint64_t type, const place& one, const place& other) noexcept {
  constexpr std::uint64_t hypertransport = 1;
  constexpr std::uint64_t pcie = 2;
  constexpr std::uint64_t qpi = 5;
  constexpr std::uint64_t xgmi = 11;
  const bool is_between_hosts =
      one.kind == place_kind::numa_node && other.kind == place_kind::numa_node;
  switch (type) {
    case pcie:
      return link_kind::pcie;
    case xgmi:
      return link_kind::xgmi;
    case hypertransport:
    case qpi:
      return is_between_hosts ? link_kind::socket : link_kind::unknown;
    default:
      return link_kind::unknown;
  }
}

std::optional<xgmi_links> xgmi_links_of(std::uint64_t least, std::uint64_t most,
                                        std::string_view isa) noexcept {
  constexpr std::uint64_t most_mb_per_s = 10'000'000;
  // Older kernels give this for each link of every chip from MI200 on, whatever its rate is.
  constexpr std::uint64_t fixed_mb_per_s = 50'000;
  // Both are 0 where nobody knows.
  if (least == 0 || most < least || most % least != 0 || most > most_mb_per_s) {
    return std::nullopt;
  }
  xgmi_links found{.count = most / least, .gb_per_s = std::nullopt};
  if (least != fixed_mb_per_s || isa == "gfx90a") {
    found.gb_per_s = static_cast<double>(most) / 1000.0;
  }
  return found;
}

}  // namespace kfd
}  // namespace berth::machine
