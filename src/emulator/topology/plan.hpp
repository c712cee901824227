// SPDX-License-Identifier: Apache-2.0
// A machine model as the kernel driver would number and wire it: NUMA nodes first, then GPUs, each
// with its ids, its place on the PCI bus and its links. What the model does not say is completed
// here as the driver would on such a machine, and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/result.hpp"
#include "emulator/machine_spec.hpp"
#include "emulator/topology/chips.hpp"
#include "machine/model.hpp"

namespace berth::emulator {

// The driver's numbers for kinds of links (HSA_IOLINKTYPE).
enum class link_type : std::uint32_t { hypertransport = 1, pcie = 2, xgmi = 11 };

struct planned_link {
  std::uint32_t from = 0;  // node of the driver
  std::uint32_t to = 0;
  link_type type = link_type::pcie;
  std::uint32_t weight = 0;
  std::uint64_t min_mb_per_s = 0;
  std::uint64_t max_mb_per_s = 0;
};

struct planned_node {
  std::uint32_t index = 0;  // of the driver; equal to the NUMA node's number here
  bytes_t memory = 0;
  std::vector<std::uint32_t> cpus;
  std::vector<std::uint32_t> distances;  // to each node
  std::vector<planned_link> links;
};

struct planned_gpu {
  machine::gpu model;
  const chip* made_as = nullptr;
  std::uint32_t index = 0;  // among the GPUs
  std::uint32_t node = 0;   // of the driver
  std::uint32_t numa = 0;   // index of its planned_node
  std::uint32_t kfd_id = 0;
  std::uint32_t render_minor = 0;
  std::uint32_t bus = 0;  // PCI: device and function are 0
  std::uint32_t device = 0;
  bytes_t memory = 0;
  bool large_bar = true;
  std::vector<planned_link> io_links;
  std::vector<planned_link> peer_links;  // through the host

  [[nodiscard]] std::string pci_address() const;
};

struct machine_plan {
  std::string name;
  std::string title;
  std::vector<planned_node> nodes;
  std::vector<planned_gpu> gpus;
  bool hmm = true;
  numa_nodes numa = numa_nodes::real;
  machine::machine_profile profile;
  std::vector<machine::link> links;  // as in the model
  xnack_mode xnack = xnack_mode::off;
  xnack_support xnack_can = xnack_support::unsupported;
};

// With so many GPUs: of a model of one GPU, that many on one NUMA node; of a node, its first.
// @errors usage where the model has no GPU of AMD that the emulator can be, or too few of them
[[nodiscard]] result<machine_plan> plan_machine(const machine::model& of,
                                                std::optional<std::uint32_t> gpus);

// The link of the model between two places, whichever way round it stands there. Null for none.
[[nodiscard]] const machine::link* find_link(const std::vector<machine::link>& links,
                                             machine::place a, machine::place b);

// What the preloaded library has to know of it. The files are left empty.
[[nodiscard]] machine_spec spec_of(const machine_plan& plan);

}  // namespace berth::emulator
