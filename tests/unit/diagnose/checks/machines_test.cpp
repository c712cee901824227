// SPDX-License-Identifier: Apache-2.0
// Whole machines, made up, healthy and with one thing broken: no false fault, no missed one.
#include <algorithm>
#include <functional>

#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::link_kind;
using machine::setting_state;

machine::survey mi100_two_hives() {
  auto seen = instinct_node(8, "gfx908");
  for (auto& link : seen.machine.links) {
    if ((link.from.id < 4) != (link.to.id < 4)) {
      link.kind = link_kind::pcie;
      link.weight = 72;
    }
  }
  return seen;
}

machine::survey mi250x() {
  auto seen = instinct_node(8);
  std::ranges::reverse(seen.machine.numa_nodes);
  return seen;
}

machine::survey mi300x() {
  auto seen = instinct_node(8, "gfx942");
  for (auto& gpu : seen.machine.gpus) {
    gpu.memory = gpu.bar = 192 * gib;
    for (auto& device : gpu.pci_path) {
      device.capable = device.trained = pcie(5, 16);
    }
  }
  return seen;
}

machine::survey mi300a() {
  auto seen = instinct_node(4, "gfx942");
  seen.machine.numa_nodes.clear();
  for (std::uint32_t index = 0; index < 4; ++index) {
    seen.machine.numa_nodes.push_back(node_of_two(index));
    auto& gpu = seen.machine.gpus[index];
    gpu.numa_node = index;
    gpu.integrated = setting_state::on;
    gpu.bar.reset();
    gpu.pci_path.clear();
    gpu.host_link = gpu.trained_link = {};
  }
  seen.machine.set.transparent_huge_pages = "always";
  seen.machine.set.allowed_cpus.clear();
  for (std::uint32_t cpu = 0; cpu < 32; ++cpu) {
    seen.machine.set.allowed_cpus.push_back(cpu);
  }
  return seen;
}

// One card as eight GPUs, which share its memory and its link.
machine::survey cpx() {
  auto seen = mi300x();
  for (auto& gpu : seen.machine.gpus) {
    gpu.compute_partition = "CPX";
    gpu.memory = gpu.bar = 24 * gib;
    gpu.pci_path = seen.machine.gpus[0].pci_path;
    gpu.numa_node = 0;
  }
  return seen;
}

machine::survey radeon() {
  auto seen = instinct_node(1, "gfx1100");
  seen.machine.numa_nodes.resize(1);
  auto& gpu = seen.machine.gpus[0];
  const auto trained = pcie(4, 16);
  gpu.pci_path = {pci("0000:03:00.0", machine::pci_port::endpoint, 0x1002, trained, trained),
                  pci("0000:02:00.0", machine::pci_port::downstream, 0x1002, trained, trained),
                  pci("0000:01:00.0", machine::pci_port::upstream, 0x1002, trained, trained),
                  pci("0000:00:01.1", machine::pci_port::root_port, 0x1022, trained, trained)};
  seen.machine.set.iommu = machine::iommu_mode::translated;
  return seen;
}

machine::survey hgx() {
  auto seen = instinct_node(8, "sm_90");
  for (auto& gpu : seen.machine.gpus) {
    gpu.made_by = machine::vendor::nvidia;
    gpu.xnack = setting_state::inapplicable;
    gpu.memory = 141 * gib;
    gpu.bar = 256 * gib;
  }
  for (auto& link : seen.machine.links) {
    link.kind = link_kind::nvlink;
    link.weight.reset();
    link.hops.reset();
  }
  return seen;
}

// A GPU that was passed through to a virtual machine: no node, no port of the host.
machine::survey passed_through() {
  auto seen = hgx();
  seen.machine.gpus.resize(1);
  seen.machine.links.clear();
  seen.machine.numa_nodes.resize(1);
  auto& gpu = seen.machine.gpus[0];
  gpu.numa_node.reset();
  gpu.pci_path.resize(1);
  gpu.pci_path[0].capable = gpu.pci_path[0].trained = pcie(5, 16);
  seen.machine.set.virtual_machine = setting_state::on;
  seen.machine.set.cpu_governor.clear();
  return seen;
}

machine::survey mixed() {
  auto seen = instinct_node(2);
  seen.machine.gpus[1].isa = "gfx1030";
  seen.machine.links[0].kind = link_kind::pcie;
  seen.machine.links[0].weight = 40;
  return seen;
}

machine::survey no_gpu() {
  auto seen = instinct_node(0);
  seen.machine.set.iommu = machine::iommu_mode::translated;
  seen.machine.set.numa_balancing = setting_state::on;
  return seen;
}

struct made_up {
  const char* name;
  std::function<machine::survey()> make;
};

const std::vector<made_up>& healthy_machines() {
  static const std::vector<made_up> all{{"MI100 in two hives", mi100_two_hives},
                                        {"MI210", [] { return instinct_node(4); }},
                                        {"MI210 without bridge", [] { return pcie_node(4); }},
                                        {"MI250X", mi250x},
                                        {"MI300X", mi300x},
                                        {"MI300A", mi300a},
                                        {"CPX", cpx},
                                        {"Radeon", radeon},
                                        {"MI210 and Radeon", mixed},
                                        {"HGX", hgx},
                                        {"virtual machine", passed_through},
                                        {"no GPU", no_gpu}};
  return all;
}

std::vector<std::string> faults_of(const machine::survey& seen) {
  std::vector<std::string> faults;
  for (const auto& one : diagnose::check_machine(seen).results) {
    if (one.verdict == verdict::fault) {
      faults.emplace_back(one.check);
    }
  }
  return faults;
}

TEST(Machines, ThatAreHealthyHaveNoFault) {
  for (const auto& one : healthy_machines()) {
    EXPECT_THAT(faults_of(one.make()), testing::IsEmpty()) << one.name;
  }
}

TEST(Machines, WithALinkThatLostLanesHaveThatFaultAlone) {
  for (const auto& one : healthy_machines()) {
    auto seen = one.make();
    bool broken = false;
    for (auto& gpu : seen.machine.gpus) {
      for (auto& device : gpu.pci_path) {
        device.trained.width = 2;
        broken = true;
      }
    }
    if (broken) {
      EXPECT_THAT(faults_of(seen), testing::ElementsAre("link-below-capability")) << one.name;
    }
  }
}

TEST(Machines, ThatHideTheirDevicesHaveThatFaultAlone) {
  for (const auto& one : healthy_machines()) {
    auto seen = one.make();
    for (auto& gpu : seen.machine.gpus) {
      gpu.accessible = setting_state::off;
    }
    if (!seen.machine.gpus.empty()) {
      EXPECT_THAT(faults_of(seen), testing::ElementsAre("device-access")) << one.name;
    }
  }
}

TEST(Machines, WithASmallBarHaveThatFaultWhereItIsOne) {
  for (const auto& one : healthy_machines()) {
    auto seen = one.make();
    bool concerned = false;
    for (auto& gpu : seen.machine.gpus) {
      gpu.bar = 256 * mib;
      concerned =
          concerned || (gpu.made_by == machine::vendor::amd && gpu.integrated != setting_state::on);
    }
    EXPECT_EQ(faults_of(seen),
              concerned ? std::vector<std::string>{"large-bar"} : std::vector<std::string>{})
        << one.name;
  }
}

TEST(Machines, SleepWithoutAFault) {
  for (const auto& one : healthy_machines()) {
    auto seen = one.make();
    for (auto& gpu : seen.machine.gpus) {
      gpu.asleep = setting_state::on;
      for (auto& device : gpu.pci_path) {
        device.trained.generation = 1;
      }
    }
    EXPECT_THAT(faults_of(seen), testing::IsEmpty()) << one.name;
  }
}

TEST(Machines, OfWhichNothingButGpusIsKnownHaveNoFault) {
  for (const auto& one : healthy_machines()) {
    auto seen = one.make();
    seen.kind = machine::survey_kind::pasted;
    seen.machine.links.clear();
    seen.machine.numa_nodes.clear();
    seen.machine.set = {};
    for (auto& gpu : seen.machine.gpus) {
      gpu.pci_path.clear();
      gpu.host_link = gpu.trained_link = {};
      gpu.bar.reset();
      gpu.numa_node.reset();
      gpu.accessible = setting_state::unknown;
    }
    EXPECT_THAT(faults_of(seen), testing::IsEmpty()) << one.name;
  }
}

}  // namespace
}  // namespace berth::test
