// SPDX-License-Identifier: Apache-2.0
// What is read of the shared cases, each of which says at its head what it holds.
#include <gtest/gtest.h>

#include "support/shared_cases.hpp"
#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::link_kind;
using machine::setting_state;
using machine::xnack_ability;

using cpus = std::vector<std::uint32_t>;

// Of a case's file: what was pasted, from `part` up to `end`.
machine::survey read_case(const std::filesystem::path& file, std::string_view part = "",
                          std::string_view end = "") {
  auto text = test::content_of(file);
  text.erase(0, text.find("======== RAW TEXT"));
  text.erase(0, text.find('\n') + 1);
  if (!part.empty()) {
    text.erase(0, text.find(part));
  }
  if (!end.empty()) {
    text.erase(std::min(text.find(end), text.size()));
  }
  return test::read_text(std::move(text));
}

#define BERTH_CASE(name)                                     \
  const auto file = berth::test::shared_case("cases/" name); \
  BERTH_REQUIRE_SHARED(file)

std::size_t count_of(const machine::survey& seen, link_kind kind) {
  return static_cast<std::size_t>(
      std::ranges::count(seen.machine.links, kind, &machine::link::kind));
}

TEST(SharedPaste, D02GpuOrderIsTheReverseOfNumaOrder) {
  BERTH_CASE("d02_mi250_reverse_numa_order_3x.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 4U);
  for (std::uint32_t at = 0; at < 4; ++at) {
    EXPECT_EQ(seen.machine.gpus[at].numa_node, 3 - at);
  }
  ASSERT_EQ(seen.machine.numa_nodes.size(), 4U);
  EXPECT_EQ(seen.machine.numa_nodes[3].cpus.front(), 48U);
}

TEST(SharedPaste, D03OldNamesOfRoutesAndCpusWithoutNodes) {
  BERTH_CASE("d03_p100_numa_bandwidthTest_numactl.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[1].near_cpus, (cpus{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(seen.machine.gpus[1].numa_node, std::nullopt);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->route, "SOC");
}

TEST(SharedPaste, D04RedirectionAndSourceValidationAlone) {
  BERTH_CASE("d04_acs_blocks_p2p_nccl_hang.txt");
  EXPECT_EQ(read_case(file, "", "-------- nccl#606").machine.set.acs_redirect, setting_state::on);
  EXPECT_EQ(read_case(file, "-------- nccl#606", "-------- nccl#257").machine.set.acs_redirect,
            setting_state::off);
  EXPECT_EQ(read_case(file, "-------- rccl#1129").machine.set.iommu,
            machine::iommu_mode::passthrough);
}

TEST(SharedPaste, D05TheEndpointsLinkIsNotTheSlots) {
  BERTH_CASE("d05_pcie_links_behind_internal_switch_and_idle.txt");
  const auto seen = read_case(file, "-------- (2)", "-------- (3)");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].pci_path.at(0).trained.generation, 5U);
  EXPECT_EQ(seen.machine.gpus[0].trained_link.generation, std::nullopt);
  const auto idle = read_case(file, "-------- (3)", "-------- (4)");
  ASSERT_EQ(idle.machine.pci_devices.size(), 1U);
  EXPECT_EQ(idle.machine.pci_devices[0].trained.generation, 1U);
}

TEST(SharedPaste, D06LinksBelowWhatTheirDevicesCanDo) {
  BERTH_CASE("d06_lspci_rootport_x1_downgraded.txt");
  const auto seen = read_case(file);
  const auto& devices = seen.machine.pci_devices;
  ASSERT_EQ(devices.size(), 5U);
  EXPECT_EQ(devices[0].port, machine::pci_port::root_port);
  EXPECT_EQ(devices[0].capable.width, 8U);
  EXPECT_EQ(devices[0].trained.width, 1U);
  EXPECT_EQ(devices[0].capable.generation, 4U);
  EXPECT_EQ(devices[0].trained.generation, 2U);
  EXPECT_EQ(devices[1].capable.generation, 5U);
  EXPECT_EQ(devices[1].trained.generation, 4U);
  EXPECT_EQ(devices[3].address, "0000:00:00.0");
  EXPECT_EQ(devices[3].trained.generation, 3U);
  EXPECT_EQ(devices[4].capable.width, 1U);
}

TEST(SharedPaste, D08RatesThatPeopleTellAndATree) {
  BERTH_CASE("d08_mi100_two_hives_expected_vs_measured.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.rates.size(), 3U);
  EXPECT_DOUBLE_EQ(seen.rates[0].gb_per_s, 70);
  EXPECT_EQ(seen.rates[0].promised_gb_per_s, 92);
  EXPECT_EQ(seen.rates[2].host_is, machine::host_distance::far);
  ASSERT_EQ(seen.machine.gpus.size(), 4U);
  EXPECT_EQ(count_of(seen, link_kind::xgmi), 3U);
}

TEST(SharedPaste, D09CpusAndGpusOfABandwidthTool) {
  BERTH_CASE("d09_mi210_8gpu_rbt_numa_masked.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 8U);
  EXPECT_EQ(seen.machine.gpus[7].pci_address, "0000:cb:00.0");
  EXPECT_TRUE(seen.rates.empty());
}

TEST(SharedPaste, D11TheRuntimesStartTellsXnack) {
  BERTH_CASE("d11_sdma_engine_choice_mi300_d2h.txt");
  const auto seen = read_case(file);
  EXPECT_EQ(seen.machine.set.xnack, setting_state::off);
  EXPECT_EQ(seen.machine.set.hmm, setting_state::on);
}

TEST(SharedPaste, E03TwoHives) {
  BERTH_CASE("e03_showtopo_8gpu_two_hives_xgmi_pcie.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 8U);
  EXPECT_EQ(seen.machine.links.size(), 28U);
  EXPECT_EQ(count_of(seen, link_kind::xgmi), 12U);
  EXPECT_EQ(test::gpu_link(seen, 3, 4)->weight, 72U);
  EXPECT_EQ(test::gpu_link(seen, 3, 4)->hops, 3U);
  EXPECT_EQ(seen.machine.gpus[4].numa_node, 1U);
  EXPECT_EQ(seen.unread_lines, 0U);
  EXPECT_TRUE(seen.contradictions.empty());
}

TEST(SharedPaste, E05AndE06ANumaNodeForEachGpu) {
  for (const auto* const name : {"cases/e05_showtopo_4gpu_mi300a_each_numa.txt",
                                 "cases/e06_showtopo_4gpu_oldformat_site_docs.txt"}) {
    const auto file = berth::test::shared_case(name);
    BERTH_REQUIRE_SHARED(file)
    const auto seen = read_case(file);
    ASSERT_EQ(seen.machine.gpus.size(), 4U) << name;
    EXPECT_EQ(count_of(seen, link_kind::xgmi), 6U) << name;
    EXPECT_EQ(seen.machine.gpus[3].numa_node, 3U) << name;
    EXPECT_EQ(seen.unread_lines, 0U) << name;
  }
}

TEST(SharedPaste, E09CollapsedBlanks) {
  BERTH_CASE("e09_mi100_bridge_collapsed_whitespace.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::pcie);
}

TEST(SharedPaste, E10NumaAlone) {
  BERTH_CASE("e10_showtoponuma_8gpu.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 8U);
  EXPECT_EQ(seen.machine.gpus[7].numa_node, 1U);
  EXPECT_TRUE(seen.problems.empty());
}

TEST(SharedPaste, F01StrayBackslashes) {
  BERTH_CASE("f01_rocminfo_docs_stray_backslashes.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "gfx941");
  EXPECT_EQ(seen.machine.gpus[0].xnack, setting_state::off);
  EXPECT_EQ(seen.machine.gpus[0].compute_units, 304U);
  EXPECT_EQ(seen.machine.set.xnack, setting_state::unknown);
}

TEST(SharedPaste, F02AnApusXnack) {
  BERTH_CASE("f02_rocminfo_raven2_apu_xnack_yes.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].integrated, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[0].xnack, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[0].xnack_can, xnack_ability::boot_parameter);
  EXPECT_EQ(seen.machine.set.xnack, setting_state::on);
}

TEST(SharedPaste, H01SquaresOfFourMachines) {
  BERTH_CASE("h01_nvidia_smi_topo_small_fixtures.txt");
  const auto first = read_case(file, "-------- (1)", "-------- (2)");
  EXPECT_EQ(first.machine.gpus.size(), 2U);
  EXPECT_EQ(test::gpu_link(first, 0, 1)->count, 1U);
  const auto second = read_case(file, "-------- (2)", "-------- (3)");
  EXPECT_EQ(test::gpu_link(second, 0, 1)->count, 3U);
  EXPECT_EQ(test::gpu_link(second, 1, 2)->route, "SYS");
  EXPECT_EQ(second.machine.gpus.at(3).near_cpus.front(), 64U);
  const auto third = read_case(file, "-------- (3)", "-------- (4)");
  EXPECT_EQ(third.machine.gpus.size(), 8U);
  EXPECT_EQ(third.machine.gpus[4].numa_node, 7U);
  EXPECT_EQ(third.machine.gpus[6].numa_node, 5U);
  EXPECT_EQ(test::gpu_link(third, 5, 6)->count, 12U);
  const auto fourth = read_case(file, "-------- (4)");
  EXPECT_EQ(fourth.machine.gpus.size(), 16U);
  EXPECT_EQ(test::gpu_link(fourth, 1, 15)->count, 6U);
  for (const auto* one : {&first, &second, &third, &fourth}) {
    EXPECT_TRUE(one->contradictions.empty());
    EXPECT_TRUE(one->problems.empty());
    EXPECT_EQ(one->unread_lines, 0U);
  }
}

TEST(SharedPaste, J01TwoHivesInTheDriversFiles) {
  BERTH_CASE("j01_kfd_mi210_8gpu_two_hives.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 8U);
  EXPECT_TRUE(seen.contradictions.empty());
  EXPECT_EQ(count_of(seen, link_kind::xgmi), 12U);
  std::size_t in_first = 0;
  for (const auto& gpu : seen.machine.gpus) {
    EXPECT_EQ(gpu.isa, "gfx90a");
    EXPECT_TRUE(gpu.numa_node.has_value());
    in_first += gpu.hive == 1U ? 1U : 0U;
  }
  EXPECT_EQ(in_first, 4U);
  for (const auto& link : seen.machine.links) {
    EXPECT_TRUE(link.kind == link_kind::xgmi || !link.nominal_gb_per_s.has_value());
  }
}

TEST(SharedPaste, J02AnOldKernelsFiles) {
  BERTH_CASE("j02_kfd_oldkernel_2gpu.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[0].memory, 17163091968U);
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 0U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "");
  EXPECT_EQ(seen.machine.gpus[0].compute_units, 64U);
}

TEST(SharedPaste, J05ToJ10TopologyFilesOfRccl) {
  struct expected {
    const char* name;
    std::size_t gpus;
    std::size_t xgmi;
    std::uint32_t generation;
  };
  for (const auto& one : {expected{"cases/j05_rccl_topo_3p_pcie.xml.txt", 3, 0, 4},
                          expected{"cases/j06_rccl_topo_4p3l.xml.txt", 4, 6, 3},
                          expected{"cases/j08_rccl_topo_8p_90a.xml.txt", 8, 12, 4},
                          expected{"cases/j10_rccl_topo_8p_940vm.xml.txt", 8, 28, 5}}) {
    const auto file = berth::test::shared_case(one.name);
    BERTH_REQUIRE_SHARED(file)
    const auto seen = read_case(file);
    ASSERT_EQ(seen.machine.gpus.size(), one.gpus) << one.name;
    EXPECT_EQ(count_of(seen, link_kind::xgmi), one.xgmi) << one.name;
    EXPECT_EQ(seen.machine.gpus[0].host_link.generation, one.generation) << one.name;
    EXPECT_EQ(seen.machine.gpus[0].host_link.width, 16U) << one.name;
    EXPECT_TRUE(seen.machine.gpus[0].numa_node.has_value()) << one.name;
    EXPECT_TRUE(seen.contradictions.empty()) << one.name;
  }
}

TEST(SharedPaste, J13GpusCloseToCores) {
  BERTH_CASE("j13_lumi_lstopo_binding.txt");
  const auto seen = read_case(file);
  ASSERT_EQ(seen.machine.gpus.size(), 8U);
  const auto near = [&](std::string_view address) {
    const auto found = std::ranges::find(seen.machine.gpus, address, &machine::gpu::pci_address);
    return found == seen.machine.gpus.end() ? cpus{} : found->near_cpus;
  };
  EXPECT_EQ(near("0000:d1:00.0").size(), 14U);
  EXPECT_EQ(near("0000:d6:00.0").front(), 9U);
  EXPECT_TRUE(test::has_problem(seen, "several numbers"));
}

}  // namespace
}  // namespace berth::topology
