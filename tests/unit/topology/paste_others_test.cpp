// SPDX-License-Identifier: Apache-2.0
// Pasted text of the rarer families: amd-smi, KFD files, lstopo, RCCL, and single lines.
#include <gtest/gtest.h>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::link_kind;
using machine::setting_state;

using cpus = std::vector<std::uint32_t>;

TEST(PastedAmdSmi, ReadsTables) {
  const auto seen = test::read_text(
      "$ amd-smi topology\nACCESS TABLE:\n             0000:0c:00.0 0000:22:00.0\n"
      "0000:0c:00.0 ENABLED      ENABLED\n0000:22:00.0 ENABLED      ENABLED\n\n"
      "WEIGHT TABLE:\n             0000:0c:00.0 0000:22:00.0\n"
      "0000:0c:00.0 0            15\n0000:22:00.0 15           0\n\n"
      "LINK TYPE TABLE:\n             0000:0c:00.0 0000:22:00.0\n"
      "0000:0c:00.0 SELF         XGMI\n0000:22:00.0 XGMI         SELF\n");
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[1].pci_address, "0000:22:00.0");
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->weight, 15U);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::xgmi);
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedAmdSmi, ReadsJsonWithCommasTooMany) {
  const auto seen = test::read_text(R"([
  {
    "gpu": 0,
    "bdf": "0000:01:00.0",
    "links": [
      {"gpu": 0, "bdf": "0000:01:00.0", "weight": 0, "link_type": "SELF", "num_hops": 0},
      {"gpu": 1, "bdf": "0001:01:00.0", "weight": 15, "link_type": "XGMI", "num_hops": 1},
    ]
  },
  {
    "gpu": 1,
    "bdf": "0001:01:00.0",
    "links": [
      {"gpu": 0, "bdf": "0000:01:00.0", "weight": 30, "link_type": "XGMI", "num_hops": 1},
    ]
  },
]
)");
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[1].pci_address, "0001:01:00.0");
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::xgmi);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->hops, 1U);
  EXPECT_TRUE(test::is_contradicted(seen, "links[0].weight"));
}

TEST(PastedAmdSmi, SaysThatHalfOfAJsonTextIsNone) {
  const auto seen = test::read_text("[\n{\"gpu\": 0, \"bdf\": \"0000:01:00.0\", \"links\": [\n");
  EXPECT_TRUE(test::has_problem(seen, "not whole"));
  EXPECT_TRUE(seen.machine.gpus.empty());
}

TEST(PastedKfd, ReadsFilesInAnyOrder) {
  const auto seen = test::read_text(
      "==> nodes/2/properties <==\nsimd_count 416\nsimd_per_cu 4\ngfx_target_version 90402\n"
      "location_id 25600\nhive_id 7\n"
      "==> nodes/1/properties <==\nsimd_count 416\nsimd_per_cu 4\ngfx_target_version 90010\n"
      "location_id 25344\nhive_id 7\n"
      "==> nodes/0/properties <==\ncpu_cores_count 8\nsimd_count 0\n"
      "==> nodes/1/io_links/0/properties <==\ntype 2\nnode_from 1\nnode_to 0\nweight 20\n"
      "==> nodes/1/io_links/1/properties <==\ntype 11\nnode_from 1\nnode_to 2\nweight 15\n"
      "min_bandwidth 50000\nmax_bandwidth 100000\n");
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "gfx90a");
  EXPECT_EQ(seen.machine.gpus[1].isa, "gfx942");
  EXPECT_EQ(seen.machine.gpus[0].pci_address, "0000:63:00.0");
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 0U);
  EXPECT_EQ(seen.machine.gpus[0].hive, 1U);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->count, 2U);
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedKfd, TakesNeitherOfTwoValues) {
  const auto seen = test::read_text(
      "nodes/1/properties:simd_count 416\nnodes/1/properties:simd_per_cu 4\n"
      "nodes/1/properties:gfx_target_version 90010\nnodes/1/properties:gfx_target_version 90402\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "");
  EXPECT_EQ(seen.machine.gpus[0].compute_units, 104U);
  EXPECT_TRUE(test::has_problem(seen, "neither is taken"));
}

TEST(PastedRccl, ReadsWhatStandsBeforeACut) {
  const auto seen = test::read_text(
      "<system version=\"1\">\n"
      "<cpu numaid=\"1\" affinity=\"00000003,0000000f\">\n"
      "<pci busid=\"0000:21:00.0\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">\n"
      "<pci busid=\"0000:23:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
      "<gpu dev=\"0\" sm=\"104\" gcn=\"910\">\n<xgmi target=\"0000:26:00.0\" "
      "count=\"2\"/>\n</gpu>\n"
      "</pci>\n</pci>\n<pci busid=\"0000:26:00.0\" link_sp");
  EXPECT_TRUE(test::has_problem(seen, "not whole"));
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "gfx90a");
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 1U);
  EXPECT_EQ(seen.machine.gpus[0].host_link.width, 8U);
  EXPECT_EQ(seen.machine.gpus[0].host_link.generation, 4U);
  EXPECT_EQ(seen.machine.numa_nodes.at(0).cpus, (cpus{0, 1, 2, 3, 32, 33}));
}

TEST(PastedRccl, LeavesOutAWidthThatCannotBe) {
  const auto seen = test::read_text(
      "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"3\">\n"
      "<pci busid=\"0000:23:00.0\" link_speed=\"32.0 GT/s PCIe\" link_width=\"0\">\n"
      "<gpu dev=\"0\" sm=\"90\"/>\n</pci>\n</cpu>\n</system>\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].made_by, machine::vendor::nvidia);
  EXPECT_EQ(seen.machine.gpus[0].isa, "sm_90");
  EXPECT_EQ(seen.machine.gpus[0].host_link.width, std::nullopt);
  EXPECT_TRUE(test::has_problem(seen, "width x0"));
}

TEST(PastedLstopo, TellsWhichCpusAGpuHangsBelow) {
  const auto seen = test::read_text(R"(
Machine (503GB total)
  Package L#0
    NUMANode L#0 (P#3 125GB)
    L3 L#0 (32MB)
      L2 L#0 (512KB) + Core L#0
        PU L#0 (P#4)
        PU L#1 (P#68)
      HostBridge
        PCI 43:00.0 (Display)
          GPU(RSMI) "rsmi0"
    L3 L#1 (32MB)
      PU L#2 (P#5)
)");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].pci_address, "0000:43:00.0");
  EXPECT_EQ(seen.machine.gpus[0].near_cpus, (cpus{4, 68}));
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 3U);
  // The text ends among the node's CPUs, so these may not be all.
  EXPECT_TRUE(seen.machine.numa_nodes.at(0).cpus.empty());
}

TEST(PastedLines, ReadsSettings) {
  const auto seen = test::read_text(
      "NUMA node(s):        2\nNUMA node1 CPU(s):   16-17\nnode 0 cpus: 0 1\n"
      "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt amdgpu.noretry=0\n"
      "export HSA_XNACK=1\nHSA_ENABLE_SDMA=0\nROCR_VISIBLE_DEVICES=$LOCAL\n");
  EXPECT_EQ(seen.machine.numa_nodes.at(1).cpus, (cpus{16, 17}));
  EXPECT_EQ(seen.machine.numa_nodes.at(0).cpus, (cpus{0, 1}));
  EXPECT_EQ(seen.machine.set.iommu, machine::iommu_mode::passthrough);
  EXPECT_EQ(seen.machine.set.noretry, setting_state::off);
  EXPECT_EQ(seen.machine.set.sdma, setting_state::off);
  EXPECT_EQ(seen.machine.set.kernel_options.size(), 2U);
  ASSERT_EQ(seen.machine.set.environment.size(), 2U);
  EXPECT_EQ(seen.machine.set.environment[0].name, "HSA_XNACK");
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedLines, TakesNeitherOfTwoValuesOfAVariable) {
  const auto seen = test::read_text("HSA_XNACK=1\nHSA_XNACK=0\n");
  EXPECT_TRUE(seen.machine.set.environment.empty());
  EXPECT_TRUE(test::is_contradicted(seen, "settings.environment.HSA_XNACK"));
}

}  // namespace
}  // namespace berth::topology
