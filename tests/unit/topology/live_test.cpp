// SPDX-License-Identifier: Apache-2.0
// Synthetic machines as folders: what the live reader concludes of each, healthy and broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/synthetic_machine.hpp"
#include "topology/live.hpp"

namespace berth::topology {
namespace {

using machine::link_kind;
using machine::pci_port;
using machine::setting_state;
using test::machine_folder;
using test::machine_writer;
using test::synthetic_bridge;
using test::synthetic_gpu;
using test::synthetic_machine;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

machine::survey read_folder(const machine_folder& folder) {
  return read_machine({.root = folder.root()});
}

machine::survey read_synthetic(const synthetic_machine& machine) {
  const machine_folder folder;
  machine_writer(folder, machine).write();
  return read_folder(folder);
}

bool has_problem(const machine::survey& seen, std::string_view where, std::string_view what) {
  return std::ranges::any_of(seen.problems, [&](const machine::reading_problem& one) {
    return one.source.find(where) != std::string::npos && one.what.find(what) != std::string::npos;
  });
}

synthetic_bridge root_port(std::string_view address) {
  return {.address = address};
}

synthetic_machine mi210() {
  return {.numa = {{.cpus = "0-7"}, {.cpus = "8-15"}},
          .gpus = {{.address = "0000:03:00.0", .bridges = {root_port("0000:00:01.1")}},
                   {.address = "0000:83:00.0", .numa = 1, .bridges = {root_port("0000:80:01.1")}}}};
}

const machine::link* link_of(const machine::survey& seen, std::uint32_t from, std::uint32_t to) {
  for (const auto& link : seen.machine.links) {
    if (link.from == machine::place{machine::place_kind::gpu, from} &&
        link.to == machine::place{machine::place_kind::gpu, to}) {
      return &link;
    }
  }
  return nullptr;
}

TEST(LiveReader, ReadsAHealthyMi210WithoutAProblem) {
  const auto seen = read_synthetic(mi210());
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(seen.contradictions, IsEmpty());
  EXPECT_EQ(seen.kind, machine::survey_kind::captured);
  ASSERT_THAT(seen.machine.gpus, SizeIs(2));
  const auto& gpu = seen.machine.gpus[1];
  EXPECT_EQ(gpu.model, "mi210");
  EXPECT_EQ(gpu.isa, "gfx90a");
  EXPECT_EQ(gpu.pci_address, "0000:83:00.0");
  EXPECT_EQ(gpu.memory, 64 * gib);
  EXPECT_EQ(gpu.bar, 64 * gib);
  EXPECT_EQ(gpu.bar_address, 0x20000000000U);
  EXPECT_EQ(gpu.dma_bits, 48U);
  EXPECT_EQ(gpu.compute_units, 104U);
  EXPECT_EQ(gpu.dma_engines, 2U);
  EXPECT_EQ(gpu.numa_node, 1U);
  EXPECT_EQ(gpu.xnack_can, machine::xnack_ability::per_process);
  EXPECT_EQ(gpu.xnack, setting_state::unknown);
  EXPECT_EQ(gpu.trained_link.generation, 4U);
  EXPECT_EQ(gpu.trained_link.width, 16U);
  EXPECT_EQ(gpu.asleep, setting_state::off);
  ASSERT_THAT(gpu.pci_path, SizeIs(2));
  EXPECT_EQ(gpu.pci_path[0].port, pci_port::endpoint);
  EXPECT_EQ(gpu.pci_path[1].port, pci_port::root_port);
}

TEST(LiveReader, SaysWhereAFieldWasRead) {
  const auto seen = read_synthetic(mi210());
  const auto* const claim = seen.claim_of("gpus[0].trained_link.width");
  ASSERT_NE(claim, nullptr);
  EXPECT_THAT(claim->source, HasSubstr("0000:03:00.0"));
  ASSERT_NE(seen.claim_of("numa_nodes[1].cpus"), nullptr);
  EXPECT_EQ(seen.claim_of("numa_nodes[1].cpus")->value, "8-15");
}

TEST(LiveReader, ReadsNumaNodesAndSettings) {
  const auto seen = read_synthetic(mi210());
  ASSERT_THAT(seen.machine.numa_nodes, SizeIs(2));
  EXPECT_THAT(seen.machine.numa_nodes[0].cpus, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(seen.machine.numa_nodes[0].memory, 256 * gib);
  EXPECT_EQ(seen.machine.numa_nodes[0].distances[1].value, 32U);
  const auto& set = seen.machine.set;
  EXPECT_EQ(set.kernel_version, "6.8.0-45-generic");
  EXPECT_THAT(set.kernel_options, ElementsAre("iommu=pt"));
  EXPECT_EQ(set.numa_balancing, setting_state::off);
  EXPECT_EQ(set.transparent_huge_pages, "madvise");
  EXPECT_EQ(set.memlock_limit, 8 * mib);
  EXPECT_THAT(set.allowed_cpus, SizeIs(8));
  EXPECT_EQ(set.virtual_machine, setting_state::off);
  EXPECT_EQ(set.noretry, setting_state::unknown) << "-1 is the driver's own choice";
  EXPECT_EQ(set.hmm, setting_state::on);
}

synthetic_machine mi100_two_hives() {
  synthetic_machine machine{.numa = {{.cpus = "0-7"}, {.cpus = "8-15"}}, .gpus = {}};
  static constexpr std::string_view addresses[] = {"0000:03:00.0", "0000:06:00.0", "0000:83:00.0",
                                                   "0000:86:00.0"};
  for (unsigned index = 0; index < 4; ++index) {
    machine.gpus.push_back({.address = addresses[index],
                            .device = 0x738c,
                            .numa = index < 2 ? 0 : 1,
                            .mebibytes = 32768,
                            .bar_mebibytes = 32768,
                            .gfx = 90008,
                            .units = 120,
                            .hive = index < 2 ? 0xabcdef12345678U : 0x12345678abcdefU});
  }
  machine.xgmi = {{.from = 0, .to = 1, .mb_per_s_each = 0},
                  {.from = 2, .to = 3, .mb_per_s_each = 0}};
  return machine;
}

TEST(LiveReader, TellsTheTwoHivesOfMi100s) {
  const auto seen = read_synthetic(mi100_two_hives());
  ASSERT_THAT(seen.machine.gpus, SizeIs(4));
  EXPECT_EQ(seen.machine.gpus[0].hive, 1U);
  EXPECT_EQ(seen.machine.gpus[1].hive, 1U);
  EXPECT_EQ(seen.machine.gpus[2].hive, 2U);
  EXPECT_EQ(seen.machine.gpus[0].xnack_can, machine::xnack_ability::boot_parameter);
  ASSERT_NE(link_of(seen, 0, 1), nullptr);
  EXPECT_EQ(link_of(seen, 0, 1)->kind, link_kind::xgmi);
  EXPECT_EQ(link_of(seen, 0, 1)->hops, 1U);
  EXPECT_EQ(link_of(seen, 0, 1)->count, std::nullopt) << "old kernels tell 0";
  EXPECT_EQ(link_of(seen, 1, 2), nullptr);
}

TEST(LiveReader, TakesNoretryForThoseThatHaveOneSwitch) {
  const machine_folder folder;
  machine_writer(folder, mi100_two_hives()).write();
  folder.write("/sys/module/amdgpu/parameters/noretry", "0\n");
  const auto seen = read_folder(folder);
  EXPECT_EQ(seen.machine.gpus[0].xnack, setting_state::on);
  EXPECT_EQ(seen.machine.set.noretry, setting_state::off);
}

TEST(LiveReader, BelievesNeitherOfTwoWeightsOfOneLink) {
  const machine_folder folder;
  machine_writer(folder, mi100_two_hives()).write();
  folder.write("/sys/class/kfd/kfd/topology/nodes/3/io_links/1/properties",
               "type 11\nnode_from 3\nnode_to 2\nweight 30\n");
  const auto seen = read_folder(folder);
  EXPECT_THAT(seen.contradictions, Not(IsEmpty()));
  EXPECT_EQ(link_of(seen, 0, 1)->weight, std::nullopt);
}

synthetic_machine mi250x() {
  synthetic_machine machine{
      .numa = {{.cpus = "0-7"}, {.cpus = "8-15"}, {.cpus = "16-23"}, {.cpus = "24-31"}},
      .gpus = {}};
  static constexpr std::string_view addresses[] = {"0000:c1:00.0", "0000:c6:00.0", "0000:c9:00.0",
                                                   "0000:ce:00.0", "0000:d1:00.0", "0000:d6:00.0",
                                                   "0000:d9:00.0", "0000:de:00.0"};
  for (unsigned index = 0; index < 8; ++index) {
    machine.gpus.push_back({.address = addresses[index],
                            .device = 0x7408,
                            .numa = static_cast<int>(index / 2),
                            .units = 110,
                            .hive = 77});
  }
  for (unsigned pair = 0; pair < 4; ++pair) {
    machine.xgmi.push_back({.from = 2 * pair, .to = 2 * pair + 1, .links = 4});
  }
  machine.xgmi.push_back({.from = 0, .to = 2});
  return machine;
}

TEST(LiveReader, ReadsTheEightDiesOfMi250x) {
  const auto seen = read_synthetic(mi250x());
  ASSERT_THAT(seen.machine.gpus, SizeIs(8));
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_EQ(seen.machine.gpus[7].model, "mi250x");
  EXPECT_EQ(seen.machine.gpus[7].numa_node, 3U);
  EXPECT_EQ(link_of(seen, 0, 1)->count, 4U);
  EXPECT_EQ(link_of(seen, 0, 1)->nominal_gb_per_s, 200.0);
  EXPECT_EQ(link_of(seen, 0, 2)->count, 1U);
}

TEST(LiveReader, BelievesNeitherNumaNodeWhereTwoSourcesDiffer) {
  const machine_folder folder;
  machine_writer(folder, mi250x()).write();
  folder.write("/sys/devices/pci0000:00/0000:c1:00.0/numa_node", "3\n");
  const auto seen = read_folder(folder);
  EXPECT_EQ(seen.machine.gpus[0].numa_node, std::nullopt);
  ASSERT_THAT(seen.contradictions, SizeIs(1));
  EXPECT_EQ(seen.contradictions[0].field, "gpus[0].numa_node");
}

synthetic_machine mi300x(std::uint32_t gfx, unsigned device) {
  return {.numa = {{.cpus = "0-47"}, {.cpus = "48-95"}},
          .gpus = {{.address = "0000:05:00.0",
                    .device = device,
                    .kind = 0x120000,
                    .trained = {"32.0 GT/s PCIe", 16},
                    .capable = {"32.0 GT/s PCIe", 16},
                    .mebibytes = 196608,
                    .bar_mebibytes = 262144,
                    .gfx = gfx,
                    .units = 304,
                    .hive = 5,
                    .compute_partition = "SPX",
                    .memory_partition = "NPS1"},
                   {.address = "0000:26:00.0",
                    .device = device,
                    .kind = 0x120000,
                    .mebibytes = 196608,
                    .bar_mebibytes = 262144,
                    .gfx = gfx,
                    .units = 304,
                    .hive = 5}},
          .xgmi = {{.from = 0, .to = 1}}};
}

TEST(LiveReader, ReadsMi300xAndDoesNotTakeTheDriversConstantForARate) {
  const auto seen = read_synthetic(mi300x(90402, 0x74a1));
  ASSERT_THAT(seen.machine.gpus, SizeIs(2));
  const auto& gpu = seen.machine.gpus[0];
  EXPECT_EQ(gpu.model, "mi300x");
  EXPECT_EQ(gpu.isa, "gfx942");
  EXPECT_EQ(gpu.bar, 192 * gib) << "no more than there is memory";
  EXPECT_EQ(gpu.compute_partition, "SPX");
  EXPECT_EQ(gpu.memory_partition, "NPS1");
  EXPECT_EQ(gpu.trained_link.generation, 5U);
  EXPECT_EQ(link_of(seen, 0, 1)->nominal_gb_per_s, std::nullopt);
}

TEST(LiveReader, ReadsMi300aAsOneThatSharesTheHostsMemory) {
  auto machine = mi300x(90402, 0x74a0);
  machine.gpus.resize(1);
  machine.xgmi.clear();
  machine.gpus[0].capability |= 1U << 28U;
  const auto seen = read_synthetic(machine);
  ASSERT_THAT(seen.machine.gpus, SizeIs(1));
  EXPECT_EQ(seen.machine.gpus[0].model, "mi300a");
  EXPECT_EQ(seen.machine.gpus[0].integrated, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[0].coherent_host_access, setting_state::on);
}

TEST(LiveReader, ReadsPartitionsAsGpusOfOneDevice) {
  auto machine = mi300x(90402, 0x74a1);
  machine.xgmi.clear();
  machine.gpus.resize(1);
  machine.gpus[0].units = 38;
  machine.gpus[0].compute_partition = "CPX";
  for (unsigned partition = 1; partition < 8; ++partition) {
    machine.gpus.push_back(machine.gpus[0]);
    machine.gpus.back().partition = partition;
  }
  const auto seen = read_synthetic(machine);
  ASSERT_THAT(seen.machine.gpus, SizeIs(8));
  EXPECT_EQ(seen.machine.gpus[7].pci_address, "0000:05:00.0");
  EXPECT_EQ(seen.machine.gpus[7].compute_partition, "CPX");
  EXPECT_EQ(seen.machine.gpus[7].compute_units, 38U);
}

synthetic_gpu radeon() {
  return {.address = "0000:03:00.0",
          .device = 0x73bf,
          .kind = 0x030000,
          .bridges = {{.address = "0000:02:00.0", .vendor = 0x1002},
                      {.address = "0000:01:00.0",
                       .vendor = 0x1002,
                       .trained = {"8.0 GT/s PCIe", 8},
                       .capable = {"16.0 GT/s PCIe", 16}},
                      {.address = "0000:00:01.1",
                       .trained = {"8.0 GT/s PCIe", 8},
                       .capable = {"16.0 GT/s PCIe", 16}}},
          .mebibytes = 16384,
          .bar_mebibytes = 16384,
          .gfx = 100300,
          .units = 72};
}

TEST(LiveReader, LooksPastTheSwitchOnARadeonCard) {
  const auto seen = read_synthetic({.numa = {{.cpus = "0-7"}}, .gpus = {radeon()}});
  ASSERT_THAT(seen.machine.gpus, SizeIs(1));
  const auto& gpu = seen.machine.gpus[0];
  ASSERT_THAT(gpu.pci_path, SizeIs(4));
  EXPECT_EQ(gpu.pci_path[0].trained.width, 16U);
  EXPECT_EQ(gpu.pci_path[1].port, pci_port::downstream);
  EXPECT_EQ(gpu.pci_path[2].port, pci_port::upstream);
  EXPECT_EQ(gpu.pci_path[3].port, pci_port::root_port);
  EXPECT_EQ(gpu.trained_link.width, 8U) << "of the card's slot, not of the inner link";
  EXPECT_EQ(gpu.trained_link.generation, 3U);
  EXPECT_EQ(gpu.host_link.width, 16U);
  EXPECT_EQ(gpu.isa, "gfx1030");
  EXPECT_EQ(gpu.xnack_can, machine::xnack_ability::none);
  EXPECT_EQ(gpu.xnack, setting_state::off);
  EXPECT_EQ(gpu.model, "") << "cards of several names have this id";
}

TEST(LiveReader, TellsASmallBar) {
  auto gpu = radeon();
  gpu.bar_mebibytes = 256;
  const auto seen = read_synthetic({.numa = {{.cpus = "0-7"}}, .gpus = {gpu}});
  EXPECT_EQ(seen.machine.gpus[0].bar, 256 * mib);
  EXPECT_EQ(seen.machine.gpus[0].memory, 16 * gib);
}

TEST(LiveReader, TellsALinkThatTrainedBelowWhatBothEndsCan) {
  auto machine = mi210();
  machine.gpus[0].trained = {"16.0 GT/s PCIe", 8};
  const auto seen = read_synthetic(machine);
  EXPECT_EQ(seen.machine.gpus[0].trained_link.width, 8U);
  EXPECT_EQ(seen.machine.gpus[0].host_link.width, 16U);
}

TEST(LiveReader, TakesTheSlotForTheLimitWhereItCanDoLess) {
  auto machine = mi210();
  machine.gpus[0].bridges[0].capable = {"8.0 GT/s PCIe", 8};
  const auto seen = read_synthetic(machine);
  EXPECT_EQ(seen.machine.gpus[0].host_link.generation, 3U);
  EXPECT_EQ(seen.machine.gpus[0].host_link.width, 8U);
}

TEST(LiveReader, ReadsAMachineOfInstinctAndRadeon) {
  auto machine = mi210();
  machine.gpus.push_back(radeon());
  machine.gpus.back().address = "0000:23:00.0";
  machine.gpus.back().bridges.clear();
  const auto seen = read_synthetic(machine);
  ASSERT_THAT(seen.machine.gpus, SizeIs(3));
  EXPECT_EQ(seen.machine.gpus[0].xnack_can, machine::xnack_ability::per_process);
  EXPECT_EQ(seen.machine.gpus[2].xnack_can, machine::xnack_ability::none);
}

synthetic_machine hgx() {
  synthetic_machine machine{
      .numa = {{.cpus = "0-55"}, {.cpus = "56-111"}}, .gpus = {}, .has_kfd = false};
  static constexpr std::string_view addresses[] = {"0000:18:00.0", "0000:2a:00.0", "0000:9a:00.0",
                                                   "0000:ab:00.0"};
  for (unsigned index = 0; index < 4; ++index) {
    machine.gpus.push_back({.address = addresses[index],
                            .vendor = 0x10de,
                            .device = 0x2335,
                            .kind = 0x030200,
                            .numa = index < 2 ? 0 : 1,
                            .trained = {"32.0 GT/s PCIe", 16},
                            .capable = {"32.0 GT/s PCIe", 16},
                            .bar_mebibytes = 262144,
                            .gfx = 0});
  }
  return machine;
}

constexpr std::string_view hgx_nvml =
    "driver 580.65.06\ngpu 0\naddress 0000:18:00.0\nname NVIDIA H200\nmemory 150754820096\n"
    "isa sm_90\npstate 0\nnvlink switch\nnvlink switch\ngpu 1\naddress 0000:2a:00.0\n"
    "name NVIDIA H200\nmemory 150754820096\npstate 8\nnvlink switch\nnvlink switch\n";

TEST(LiveReader, ReadsAnHgxMachineFromPciAndWhatNvidiasLibrarySaid) {
  const machine_folder folder;
  machine_writer(folder, hgx()).write();
  folder.write("/berth/nvml", hgx_nvml);
  const auto seen = read_folder(folder);
  ASSERT_THAT(seen.machine.gpus, SizeIs(4));
  EXPECT_THAT(seen.problems, IsEmpty());
  const auto& gpu = seen.machine.gpus[0];
  EXPECT_EQ(gpu.made_by, machine::vendor::nvidia);
  EXPECT_EQ(gpu.title, "NVIDIA H200");
  EXPECT_EQ(gpu.model, "h200");
  EXPECT_EQ(gpu.isa, "sm_90");
  EXPECT_EQ(gpu.xnack, setting_state::inapplicable);
  EXPECT_EQ(gpu.trained_link.generation, 5U);
  EXPECT_EQ(gpu.asleep, setting_state::off);
  EXPECT_EQ(seen.machine.gpus[1].asleep, setting_state::on) << "P8 is idle";
  ASSERT_NE(link_of(seen, 0, 1), nullptr);
  EXPECT_EQ(link_of(seen, 0, 1)->kind, link_kind::nvlink);
  EXPECT_EQ(link_of(seen, 0, 1)->count, 2U);
  EXPECT_EQ(seen.machine.set.driver_version, "580.65.06");
}

TEST(LiveReader, ReadsAVirtualMachineWhoseFirmwareTellsNoNumaNode) {
  auto machine = hgx();
  machine.numa.resize(1);
  machine.gpus.resize(1);
  machine.gpus[0].numa = -1;
  const machine_folder folder;
  machine_writer(folder, machine).write();
  folder.write("/proc/cpuinfo", "flags : fpu hypervisor\n");
  const auto seen = read_folder(folder);
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_EQ(seen.machine.gpus[0].numa_node, std::nullopt);
  EXPECT_EQ(seen.machine.gpus[0].virtual_function, setting_state::unknown);
  EXPECT_EQ(seen.machine.set.virtual_machine, setting_state::on);
}

TEST(LiveReader, ReadsAMachineWithoutAGpu) {
  const auto seen = read_synthetic({.numa = {{.cpus = "0-3"}}, .gpus = {}, .has_kfd = false});
  EXPECT_THAT(seen.machine.gpus, IsEmpty());
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(seen.machine.numa_nodes, SizeIs(1));
}

TEST(LiveReader, ReadsAnEmptyFolderAsNothing) {
  const machine_folder folder;
  const auto seen = read_folder(folder);
  EXPECT_THAT(seen.claims, IsEmpty());
  EXPECT_THAT(seen.problems, IsEmpty());
}

TEST(LiveReader, ReadsWhoMayOpenAGpuOnlyWhereItWasAsked) {
  const machine_folder folder;
  machine_writer(folder, mi210()).write();
  EXPECT_EQ(read_folder(folder).machine.gpus[0].accessible, setting_state::unknown);
  folder.write("/berth/access", "/dev/kfd no\n");
  EXPECT_EQ(read_folder(folder).machine.gpus[0].accessible, setting_state::off);
  folder.write("/berth/access", "/dev/kfd yes\n");
  EXPECT_EQ(read_folder(folder).machine.gpus[0].accessible, setting_state::on);
}

TEST(LiveReader, ReadsTheEnvironmentThatWasCaptured) {
  const machine_folder folder;
  machine_writer(folder, mi210()).write();
  folder.write("/berth/environment", "HSA_ENABLE_SDMA=0\nHSA_XNACK=1\n");
  const auto seen = read_folder(folder);
  EXPECT_EQ(seen.machine.set.sdma, setting_state::off);
  EXPECT_EQ(seen.machine.set.xnack, setting_state::on);
  EXPECT_THAT(seen.machine.set.environment, SizeIs(2));
}

TEST(LiveReader, ReadsAVirtualFunctionAndForgivesItTheLinkItHasNot) {
  auto machine = mi210();
  machine.gpus.resize(1);
  machine.gpus[0].trained = {"Unknown", 0};
  machine.gpus[0].capable = {"Unknown", 0};
  const machine_folder folder;
  machine_writer(folder, machine).write();
  folder.make_folder("/sys/devices/pci0000:00/0000:02:00.0");
  folder.link("/sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0/physfn",
              "/sys/devices/pci0000:00/0000:02:00.0");
  const auto seen = read_folder(folder);
  EXPECT_EQ(seen.machine.gpus[0].virtual_function, setting_state::on);
  EXPECT_THAT(seen.problems, IsEmpty());
}

// The kernel's own bytes: a root port (PCI Express at 0x40) that redirects (ACS at 0x100).
TEST(LiveReader, SeesAccessControlWhereTheConfigurationMayBeRead) {
  const machine_folder folder;
  machine_writer(folder, mi210()).write();
  std::string config(4096, '\0');
  config[0x34] = 0x40;
  config[0x40] = 0x10;
  config[0x42] = 0x42;
  config[0x100] = 0x0d;
  config[0x106] = 0x1d;
  folder.write("/sys/devices/pci0000:00/0000:00:01.1/config", config);
  const auto seen = read_folder(folder);
  EXPECT_EQ(seen.machine.gpus[0].pci_path[1].port, pci_port::root_port);
  EXPECT_EQ(seen.machine.gpus[0].pci_path[1].acs_redirect, setting_state::on);
  EXPECT_EQ(seen.machine.set.acs_redirect, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[1].pci_path[1].acs_redirect, setting_state::unknown);
}

TEST(LiveReader, ReadsTheModeOfTheIommuFromTheGroupOfAGpu) {
  const machine_folder folder;
  machine_writer(folder, mi210()).write();
  folder.write("/sys/kernel/iommu_groups/7/type", "identity\n");
  folder.link("/sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0/iommu_group",
              "/sys/kernel/iommu_groups/7");
  EXPECT_EQ(read_folder(folder).machine.set.iommu, machine::iommu_mode::passthrough);
  folder.write("/sys/kernel/iommu_groups/7/type", "DMA-FQ\n");
  EXPECT_EQ(read_folder(folder).machine.set.iommu, machine::iommu_mode::translated);
}

TEST(LiveReader, LeavesOutWhatCannotBeTrueAndSaysSo) {
  const machine_folder folder;
  machine_writer(folder, mi210()).write();
  const std::string gpu = "/sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0";
  folder.write(gpu + "/numa_node", "4096\n");
  folder.write(gpu + "/current_link_width", "0\n");
  folder.write(gpu + "/current_link_speed", "99 GT/s\n");
  folder.write("/sys/devices/system/node/node1/cpulist", "9-3\n");
  folder.write("/sys/devices/system/node/node0/distance", "10\n");
  const auto seen = read_folder(folder);
  EXPECT_TRUE(has_problem(seen, "numa_node", "4096"));
  EXPECT_TRUE(has_problem(seen, "current_link_width", "x0"));
  EXPECT_TRUE(has_problem(seen, "current_link_speed", "99"));
  EXPECT_TRUE(has_problem(seen, "cpulist", "9-3"));
  EXPECT_TRUE(has_problem(seen, "distance", "1 distances for 2 nodes"));
  EXPECT_EQ(seen.machine.gpus[0].trained_link.width, std::nullopt);
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 0U) << "the compute driver tells it as well";
}

TEST(LiveReader, SurvivesDeadLinksBinaryTextAndFilesOfTheWrongKind) {
  const machine_folder folder;
  machine_writer(folder, mi210()).write();
  folder.link("/sys/bus/pci/devices/0000:99:00.0", "/sys/devices/nowhere");
  folder.link("/sys/bus/pci/devices/0000:9a:00.0", "/sys/bus/pci/devices/0000:9a:00.0");
  folder.write("/sys/class/kfd/kfd/topology/nodes/2/properties", std::string("\0\xff\n\x01", 4));
  folder.remove("/proc/version");
  folder.make_folder("/proc/version");
  folder.write("/sys/kernel/mm/transparent_hugepage/enabled", "\x1b[31m");
  const auto seen = read_folder(folder);
  EXPECT_TRUE(has_problem(seen, "0000:99:00.0", "not there"));
  EXPECT_TRUE(has_problem(seen, "0000:9a:00.0", "leads nowhere"));
  EXPECT_TRUE(has_problem(seen, "nodes/2/properties", "no line"));
  EXPECT_TRUE(has_problem(seen, "/proc/version", "not a file"));
  EXPECT_THAT(seen.machine.gpus, SizeIs(2)) << "PCI still knows both";
}

TEST(LiveReader, DoesNotFollowLinksOutOfTheRoot) {
  const machine_folder outside;
  outside.write("/version", "Linux version 9.9.9\n");
  const machine_folder folder;
  folder.make_folder("/proc");
  folder.link("/proc/version", (outside.root() / "version").string());
  EXPECT_EQ(read_folder(folder).machine.set.kernel_version, "");
  folder.remove("/proc/version");
  folder.link("/proc/version", "../../../../../../../../../../proc/version");
  EXPECT_EQ(read_folder(folder).machine.set.kernel_version, "");
}

TEST(LiveReader, ReadsThisMachineInTime) {
  const auto seen = read_machine();
  EXPECT_EQ(seen.kind, machine::survey_kind::live);
  EXPECT_NE(seen.machine.set.kernel_version, "");
  EXPECT_THAT(seen.machine.set.allowed_cpus, Not(IsEmpty()));
}

TEST(LiveReader, GivesUpAtTheDeadlineAndSaysSo) {
  const auto seen = read_machine({.deadline = std::chrono::milliseconds(0)});
  EXPECT_FALSE(seen.problems.empty());
}

}  // namespace
}  // namespace berth::topology
