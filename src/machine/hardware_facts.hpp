// SPDX-License-Identifier: Apache-2.0
// What names and numbers of hardware mean, wherever they were read: instruction sets, speeds of
// PCIe, the codes of AMD's compute driver (KFD).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "machine/machine.hpp"

namespace berth::machine {

// By the name of the instruction set: "gfx90a".
[[nodiscard]] xnack_ability xnack_ability_of(std::string_view isa) noexcept;

// Bits of the addresses that its driver lets a GPU of AMD use, for host memory and for other
// devices; nothing for an instruction set that is not known.
[[nodiscard]] std::optional<std::uint32_t> dma_bits_of(std::string_view isa) noexcept;

// The generation of PCIe with that speed in GT/s: 4 of "16" and "16.0".
[[nodiscard]] std::optional<std::uint32_t> pcie_generation_of(
    std::string_view giga_transfers) noexcept;

// "16" of 4; empty for a generation that there is not.
[[nodiscard]] std::string_view pcie_speed_of(std::uint32_t generation) noexcept;

// One direction, as the line code leaves it; nothing where a part is unknown or is none.
[[nodiscard]] std::optional<double> pcie_gb_per_s(const pcie_link& link) noexcept;

// Lanes that a link can have.
[[nodiscard]] bool is_pcie_width(std::uint64_t lanes) noexcept;

namespace kfd {

// Bits of "capability" (HSA_CAPABILITY).
inline constexpr std::uint64_t svm_bit = 1ULL << 27U;
inline constexpr std::uint64_t coherent_host_bit = 1ULL << 28U;
// Kinds of memory (HSA_HEAPTYPE).
inline constexpr std::uint64_t heap_system = 0;
inline constexpr std::uint64_t heap_visible = 1;  // the host reaches all of it
inline constexpr std::uint64_t heap_private = 2;

// Of the type of a link (HSA_IOLINKTYPE) between those two places.
[[nodiscard]] link_kind link_kind_of(std::uint64_t type, const place& one,
                                     const place& other) noexcept;

struct xgmi_links {
  std::uint64_t count;             // to that peer
  std::optional<double> gb_per_s;  // of all together; nothing where the driver does not know
};
// From min_bandwidth and max_bandwidth in MB/s: one link's, and that of all links to the peer.
// Nothing for figures that say nothing. `isa`: of the GPU.
[[nodiscard]] std::optional<xgmi_links> xgmi_links_of(std::uint64_t least, std::uint64_t most,
                                                      std::string_view isa) noexcept;

}  // namespace kfd
}  // namespace berth::machine
