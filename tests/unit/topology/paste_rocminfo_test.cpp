// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::setting_state;
using machine::xnack_ability;

constexpr std::string_view two_agents = R"(ROCk module is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.15
XNACK enabled:           NO
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC 7003
  Vendor Name:             CPU
  Node:                    0
  Device Type:             CPU
  Chip ID:                 0(0x0)
  BDFID:                   0
  Compute Unit:            64
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    1048576(0x100000) KB
      Allocatable:             TRUE
*******
Agent 2
*******
  Name:                    gfx90a
  Marketing Name:          AMD Instinct MI210
  Vendor Name:             AMD
  Node:                    1
  Device Type:             GPU
  Cache Info:
    L1:                      16(0x10) KB
  Chip ID:                 29711(0x740f)
  BDFID:                   17152
  Compute Unit:            104
  Coherent Host Access:    FALSE
  Memory Properties:
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    67092480(0x3ffc000) KB
      Allocatable:             TRUE
    Pool 2
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
*** Done ***
)";

std::string changed(std::string_view from, std::string_view to) {
  std::string text(two_agents);
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void expect_mi210(const machine::survey& seen) {
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  const auto& gpu = seen.machine.gpus[0];
  EXPECT_EQ(gpu.made_by, machine::vendor::amd);
  EXPECT_EQ(gpu.title, "AMD Instinct MI210");
  EXPECT_EQ(gpu.model, "mi210");
  EXPECT_EQ(gpu.isa, "gfx90a");
  EXPECT_EQ(gpu.pci_address, "0000:43:00.0");
  EXPECT_EQ(gpu.pci_device_id, 0x740fU);
  EXPECT_EQ(gpu.memory, 67092480 * kib);
  EXPECT_EQ(gpu.compute_units, 104U);
  EXPECT_EQ(gpu.xnack_can, xnack_ability::per_process);
  EXPECT_EQ(gpu.xnack, setting_state::off);
  EXPECT_EQ(gpu.coherent_host_access, setting_state::off);
  EXPECT_EQ(gpu.integrated, setting_state::off);
  EXPECT_EQ(seen.machine.set.xnack, setting_state::off);
}

TEST(PastedRocminfo, FillsTheMachine) {
  const auto seen = test::read_text(std::string(two_agents));
  expect_mi210(seen);
  ASSERT_EQ(seen.machine.numa_nodes.size(), 1U);
  EXPECT_EQ(seen.machine.numa_nodes[0].memory, 1 * gib);
  EXPECT_EQ(seen.unread_lines, 0U);
  EXPECT_TRUE(seen.problems.empty());
  ASSERT_NE(seen.claim_of("gpus[0].xnack"), nullptr);
  EXPECT_EQ(seen.claim_of("gpus[0].xnack")->source, "rocminfo (paste.txt), line 50");
}

TEST(PastedRocminfo, IsReadThroughQuotesColoursAndLostBlanks) {
  std::string worn;
  for (std::size_t at = 0; at < two_agents.size();) {
    const auto end = two_agents.find('\n', at);
    auto line = two_agents.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    worn += "> \x1b[1m" + std::string(line) + "\x1b[0m\\\r\n";
    at = end + 1;
  }
  const auto seen = test::read_text(worn);
  expect_mi210(seen);
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedRocminfo, IsReadThroughTypingErrors) {
  const auto seen = test::read_text(changed("Marketing Name", "Marketting Name"));
  expect_mi210(seen);
}

TEST(PastedRocminfo, TakesWhatAHalfTells) {
  const auto seen = test::read_text(
      std::string(two_agents.substr(0, two_agents.find("BDFID:                   17152"))));
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "gfx90a");
  EXPECT_EQ(seen.machine.gpus[0].pci_address, "");
  EXPECT_EQ(seen.machine.gpus[0].memory, std::nullopt);
  EXPECT_EQ(seen.machine.gpus[0].xnack, setting_state::unknown);
}

TEST(PastedRocminfo, TakesWhatGrepLeft) {
  const auto seen = test::read_text(
      "$ rocminfo | grep -i xnack\n"
      "XNACK enabled:           YES\n"
      "      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+\n"
      "      Name:                    amdgcn-amd-amdhsa--gfx1030\n");
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[0].xnack, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[1].xnack, setting_state::unknown);
  EXPECT_EQ(seen.machine.gpus[1].xnack_can, xnack_ability::none);
  EXPECT_EQ(seen.machine.set.xnack, setting_state::on);
}

TEST(PastedRocminfo, DoesNotGiveAnApusXnackToAnotherGpu) {
  const auto seen = test::read_text(
      "XNACK enabled:           YES\n"
      "Agent 1\n  Name: gfx902\n  Device Type: GPU\n  Memory Properties: APU\n"
      "      Name: amdgcn-amd-amdhsa--gfx902:xnack+\n"
      "Agent 2\n  Name: gfx1030\n  Device Type: GPU\n  Memory Properties:\n"
      "      Name: amdgcn-amd-amdhsa--gfx1030\n");
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[0].integrated, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[0].xnack, setting_state::on);
  EXPECT_EQ(seen.machine.gpus[1].xnack, setting_state::unknown);
}

TEST(PastedRocminfo, TrustsNeitherOfTwoThatDisagree) {
  const auto seen =
      test::read_text(std::string(two_agents) +
                      changed("Compute Unit:            104", "Compute Unit:            60"));
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].compute_units, std::nullopt);
  EXPECT_TRUE(test::is_contradicted(seen, "gpus[0].compute_units"));
  EXPECT_EQ(seen.machine.gpus[0].memory, 67092480 * kib);
}

TEST(PastedRocminfo, LeavesOutWhatCannotBe) {
  auto seen = test::read_text(changed("67092480(0x3ffc000) KB", "67092481(0x3ffc000) KB"));
  EXPECT_EQ(seen.machine.gpus.at(0).memory, std::nullopt);
  EXPECT_TRUE(test::has_problem(seen, "is no size of memory"));
  seen = test::read_text(changed("Node:                    0", "Node:                    4096"));
  EXPECT_TRUE(seen.machine.numa_nodes.empty());
  EXPECT_TRUE(test::has_problem(seen, "is no NUMA node"));
}

TEST(PastedRocminfo, TakesNoAddressThatSeveralGpusHave) {
  const std::string gpu = "Agent 1\n Name: gfx942\n Device Type: GPU\n BDFID: 256\n";
  const auto seen = test::read_text(gpu + gpu);
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[0].pci_address, "");
}

// Real outputs of rocminfo and rocm-smi, over the emulated driver.
TEST(PastedRocminfo, ReadsWhatTheToolPrints) {
  const auto folder = std::filesystem::path(BERTH_SOURCE_DIR) / "tests/emulator/golden";
  const std::vector<pasted_text> pieces{
      {.name = "rocminfo", .text = test::content_of(folder / "mi250x_node.rocminfo.txt")},
      {.name = "showtopo", .text = test::content_of(folder / "mi250x_node.showtopo.txt")}};
  const auto seen = read_pasted(pieces);
  ASSERT_EQ(seen.machine.gpus.size(), 8U);
  EXPECT_TRUE(seen.contradictions.empty());
  EXPECT_TRUE(seen.problems.empty());
  EXPECT_EQ(seen.unread_lines, 0U);
  for (const auto& gpu : seen.machine.gpus) {
    EXPECT_EQ(gpu.model, "mi250x");
    EXPECT_TRUE(gpu.numa_node.has_value());
  }
  EXPECT_EQ(seen.machine.links.size(), 28U);
}

}  // namespace
}  // namespace berth::topology
