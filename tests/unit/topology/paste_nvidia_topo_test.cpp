// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::link_kind;

using cpus = std::vector<std::uint32_t>;

TEST(PastedNvidiaTopo, FillsTheMachine) {
  const auto seen = test::read_text(
      "$ nvidia-smi topo -m\n"
      "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV18\tSYS\tPIX\t0-1,8-9\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tSYS\tNODE\t0-1,8-9\t0\t\tN/A\n"
      "GPU2\tSYS\tSYS\t X \tSYS\t2-3\t1\t\tN/A\n"
      "NIC0\tPIX\tNODE\tSYS\t X \t\t\t\n\n"
      "Legend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
      "NIC Legend:\n\n  NIC0: mlx5_0\n");
  ASSERT_EQ(seen.machine.gpus.size(), 3U);
  EXPECT_EQ(seen.unread_lines, 0U);
  EXPECT_TRUE(seen.problems.empty());
  EXPECT_EQ(seen.machine.gpus[0].made_by, machine::vendor::nvidia);
  EXPECT_EQ(seen.machine.gpus[0].near_cpus, (cpus{0, 1, 8, 9}));
  EXPECT_EQ(seen.machine.gpus[2].numa_node, 1U);
  ASSERT_EQ(seen.machine.numa_nodes.size(), 2U);
  EXPECT_EQ(seen.machine.numa_nodes[1].cpus, (cpus{2, 3}));
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::nvlink);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->count, 18U);
  EXPECT_EQ(test::gpu_link(seen, 0, 2)->kind, link_kind::pcie);
  EXPECT_EQ(test::gpu_link(seen, 0, 2)->route, "SYS");
}

TEST(PastedNvidiaTopo, TakesTheColumnsFromTheRowsWhereThereIsNoHeadline) {
  const auto seen = test::read_text("GPU0 X NV4 0-7\nGPU1 NV4 X 8-15\n");
  ASSERT_NE(test::gpu_link(seen, 0, 1), nullptr);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->count, 4U);
  EXPECT_EQ(seen.machine.gpus.at(1).near_cpus.front(), 8U);
}

TEST(PastedNvidiaTopo, LeavesOutARowThatLostACell) {
  const auto seen = test::read_text(
      "GPU0 GPU1 GPU2 CPU Affinity\n"
      "GPU0 X NV1 NV2 0-7\n"
      "GPU1 X NV3 0-7\n"
      "GPU2 NV2 NV3 X 0-7\n");
  EXPECT_TRUE(test::has_problem(seen, "GPU1"));
  ASSERT_NE(test::gpu_link(seen, 0, 2), nullptr);
  EXPECT_EQ(test::gpu_link(seen, 0, 2)->count, 2U);
}

TEST(PastedNvidiaTopo, TrustsNeitherOfTwoCellsThatDisagree) {
  const auto seen = test::read_text("GPU0 GPU1 CPU Affinity\nGPU0 X NV1 0-7\nGPU1 SYS X 0-7\n");
  EXPECT_TRUE(test::is_contradicted(seen, "links[0].kind"));
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::unknown);
}

TEST(PastedNvidiaTopo, LeavesOutWhatCannotBe) {
  const auto seen = test::read_text(
      "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV900 0-7 4096\nGPU1 NV900 X 9-3 0\n");
  EXPECT_TRUE(test::has_problem(seen, "\"NV900\""));
  EXPECT_TRUE(test::has_problem(seen, "\"4096\""));
  EXPECT_TRUE(test::has_problem(seen, "\"9-3\""));
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->count, std::nullopt);
}

TEST(PastedNvidiaTopo, TakesSeveralNodesForNone) {
  const auto seen = test::read_text("GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-7 0-1\n");
  EXPECT_EQ(seen.machine.gpus.at(0).numa_node, std::nullopt);
  EXPECT_TRUE(seen.problems.empty());
}

TEST(PastedNvidiaTopo, ReadsARowThatWasCut) {
  const auto seen =
      test::read_text("GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV12 NV12 0-7\nGPU1 NV12 X NV1");
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->count, 12U);
  EXPECT_EQ(test::gpu_link(seen, 0, 2)->count, 12U);
}

}  // namespace
}  // namespace berth::topology
