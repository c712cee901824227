// SPDX-License-Identifier: Apache-2.0
// Machines as surveys, made up: healthy ones, for tests to break one thing in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/checks/check.hpp"
#include "machine/survey.hpp"

namespace berth::test {

inline machine::pcie_link pcie(std::uint32_t generation, std::uint32_t width) {
  return {generation, width};
}

inline machine::pci_device pci(std::string address, machine::pci_port port, std::uint32_t vendor,
                               machine::pcie_link capable, machine::pcie_link trained) {
  machine::pci_device device;
  device.address = std::move(address);
  device.port = port;
  device.vendor_id = vendor;
  device.capable = capable;
  device.trained = trained;
  device.acs_redirect = machine::setting_state::off;
  return device;
}

// A GPU in a slot of the root port above it, both at full speed.
inline machine::gpu amd_gpu(std::uint32_t index, std::string isa, bytes_t memory,
                            std::uint32_t node) {
  machine::gpu gpu;
  gpu.index = index;
  gpu.made_by = machine::vendor::amd;
  gpu.isa = std::move(isa);
  gpu.pci_address = fmt::format("0000:{:02x}:00.0", 0x10 + index);
  gpu.memory = memory;
  gpu.bar = memory;
  gpu.host_link = pcie(4, 16);
  gpu.trained_link = pcie(4, 16);
  gpu.numa_node = node;
  gpu.asleep = machine::setting_state::off;
  gpu.accessible = machine::setting_state::on;
  gpu.integrated = machine::setting_state::off;
  gpu.pci_path = {
      pci(gpu.pci_address, machine::pci_port::endpoint, 0x1002, pcie(4, 16), pcie(4, 16)),
      pci(fmt::format("0000:00:{:02x}.1", index + 1), machine::pci_port::root_port, 0x1022,
          pcie(4, 16), pcie(4, 16))};
  return gpu;
}

inline machine::numa_node node_of_two(std::uint32_t id) {
  machine::numa_node node;
  node.id = id;
  for (std::uint32_t cpu = 0; cpu < 8; ++cpu) {
    node.cpus.push_back(id * 8 + cpu);
  }
  node.distances = {{0, id == 0 ? 10U : 32U}, {1, id == 1 ? 10U : 32U}};
  return node;
}

inline void join(machine::survey& seen, std::uint32_t a, std::uint32_t b, machine::link_kind kind,
                 std::uint32_t weight) {
  machine::link link;
  link.from = {machine::place_kind::gpu, a};
  link.to = {machine::place_kind::gpu, b};
  link.kind = kind;
  link.weight = weight;
  link.hops = kind == machine::link_kind::xgmi ? 1U : 2U;
  seen.machine.links.push_back(link);
}

// Two sockets, `count` GPUs of that ISA, half of them on each; all joined by xGMI. All is known.
inline machine::survey instinct_node(std::uint32_t count = 4, const std::string& isa = "gfx90a") {
  machine::survey seen;
  seen.kind = machine::survey_kind::captured;
  seen.machine.numa_nodes = {node_of_two(0), node_of_two(1)};
  for (std::uint32_t index = 0; index < count; ++index) {
    seen.machine.gpus.push_back(amd_gpu(index, isa, 64 * gib, index < (count + 1) / 2 ? 0 : 1));
    for (std::uint32_t other = 0; other < index; ++other) {
      join(seen, other, index, machine::link_kind::xgmi, 15);
    }
  }
  auto& set = seen.machine.set;
  set.xnack = machine::setting_state::off;
  set.hmm = machine::setting_state::on;
  set.numa_balancing = machine::setting_state::off;
  set.iommu = machine::iommu_mode::passthrough;
  set.transparent_huge_pages = "madvise";
  set.cpu_governor = "performance";
  set.memlock_limit = 8 * mib;
  set.environment = {{"ROCM_PATH", "/opt/rocm"}};
  set.container = machine::setting_state::off;
  set.virtual_machine = machine::setting_state::off;
  for (std::uint32_t cpu = 0; cpu < 16; ++cpu) {
    set.allowed_cpus.push_back(cpu);
  }
  return seen;
}

// The same without fast links between the GPUs.
inline machine::survey pcie_node(std::uint32_t count = 2) {
  auto seen = instinct_node(count);
  for (auto& link : seen.machine.links) {
    link.kind = machine::link_kind::pcie;
    link.weight = 72;
    link.hops = 3;
  }
  return seen;
}

// GPUs of that ISA of which a paste tells no more.
inline machine::survey bare_paste(std::uint32_t count = 2, const std::string& isa = "gfx90a") {
  machine::survey seen;
  seen.kind = machine::survey_kind::pasted;
  for (std::uint32_t index = 0; index < count; ++index) {
    machine::gpu gpu;
    gpu.index = index;
    gpu.made_by = machine::vendor::amd;
    gpu.isa = isa;
    seen.machine.gpus.push_back(gpu);
  }
  return seen;
}

inline void set_variable(machine::survey& seen, std::string name, std::string value) {
  seen.machine.set.environment.push_back({std::move(name), std::move(value)});
}

// What one check says of a machine.
inline std::vector<diagnose::check_result> said_by(std::string_view id,
                                                   const machine::survey& seen) {
  std::vector<diagnose::check_result> found;
  for (auto& one : diagnose::check_machine(seen).results) {
    if (one.check == id) {
      found.push_back(std::move(one));
    }
  }
  return found;
}

// The only thing that a check says; a failure where it is not one.
inline diagnose::check_result only(std::string_view id, const machine::survey& seen) {
  auto found = said_by(id, seen);
  EXPECT_EQ(found.size(), 1U) << id;
  return found.empty() ? diagnose::check_result{} : found.front();
}

}  // namespace berth::test
