// SPDX-License-Identifier: Apache-2.0
// What checks share: names of things, evidence from claims, and questions about a machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/checks/check.hpp"
#include "machine/survey.hpp"

namespace berth::diagnose {

// "gpus[0].bar"; `position` is that in machine.gpus.
[[nodiscard]] std::string gpu_field(std::size_t position, std::string_view name);
// "GPU 3", "GPUs 0-3 and 5".
[[nodiscard]] std::string gpu_names(std::span<const std::uint32_t> indices);
// "0-3,8", as the kernel writes lists.
[[nodiscard]] std::vector<std::uint32_t> indices_of(const machine::survey& seen,
                                                    std::span<const std::size_t> positions);
[[nodiscard]] std::string number_list(std::span<const std::uint32_t> numbers);
// "AMD Instinct MI210", "gfx90a" or the vendor: the best that is known.
[[nodiscard]] std::string model_of(const machine::gpu& gpu);
// "16 GT/s x8"; "?" for what is unknown.
[[nodiscard]] std::string link_text(const machine::pcie_link& link);
// What the way from a GPU to the host gives copies: the hop that limits, as trained, or, where an
// idle GPU may have slowed it down, as both ends can. Nothing where that is not known.
[[nodiscard]] std::optional<machine::pcie_link> host_link_of(const machine::survey& seen,
                                                             std::size_t position);
// "mode" of a field with its source. Where no claim has that field, one below it may.
[[nodiscard]] check_evidence evidence_of(const machine::survey& seen, std::string field,
                                         std::string value);

// Null where it is not set, or nobody has looked.
[[nodiscard]] const machine::environment_variable* find_variable(const machine::survey& seen,
                                                                 std::string_view name);
[[nodiscard]] std::size_t count_gpus(const machine::survey& seen, machine::vendor made_by);
// Data centre parts of AMD: what the ISA tells. Radeon and unknown ones are none.
[[nodiscard]] bool is_instinct(const machine::gpu& gpu);
[[nodiscard]] const machine::numa_node* find_node(const machine::survey& seen, std::uint32_t id);

// Pairs of GPUs, by position, and the best link between the two.
struct gpu_pair {
  std::size_t first;
  std::size_t second;
  std::optional<machine::link> joined;  // nothing: the input tells of none
};
[[nodiscard]] std::vector<gpu_pair> pairs_of(const machine::survey& seen);
[[nodiscard]] bool is_fast(const gpu_pair& pair);  // xGMI or NVLink
// GPUs whose peers are, or may be, reached through PCIe.
[[nodiscard]] bool has_pcie_peers(const machine::survey& seen);

// As read, or by its ISA or its model; also that the driver offers it to no older graphics part.
[[nodiscard]] machine::xnack_ability xnack_ability_of(const machine::gpu& gpu);

// What rocminfo, started with HSA_XNACK=1, shows of the GPUs.
[[nodiscard]] check_result tried_xnack(const machine::survey& tried);

}  // namespace berth::diagnose
