// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::link_kind;

constexpr std::string_view three_gpus = R"(
============================ ROCm System Management Interface ============================
================================ Weight between two GPUs =================================
       GPU0         GPU1         GPU2
GPU0   0            15           72
GPU1   15           0            72
GPU2   72           72           0

================================= Hops between two GPUs ==================================
       GPU0         GPU1         GPU2
GPU0   0            1            3
GPU1   1            0            3
GPU2   3            3            0

=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         PCIE
GPU1   XGMI         0            PCIE
GPU2   PCIE         PCIE         0

======================================= Numa Nodes =======================================
GPU[0]		: (Topology) Numa Node: 0
GPU[0]		: (Topology) Numa Affinity: 0
GPU[1]		: (Topology) Numa Node: 0
GPU[1]		: (Topology) Numa Affinity: 0
GPU[2]		: (Topology) Numa Node: 1
GPU[2]		: (Topology) Numa Affinity: 1
================================== End of ROCm SMI Log ===================================
)";

void expect_three(const machine::survey& seen) {
  ASSERT_EQ(seen.machine.gpus.size(), 3U);
  EXPECT_EQ(seen.machine.gpus[2].numa_node, 1U);
  EXPECT_EQ(seen.machine.numa_nodes.size(), 2U);
  const auto* near = test::gpu_link(seen, 0, 1);
  const auto* far = test::gpu_link(seen, 1, 2);
  ASSERT_NE(near, nullptr);
  ASSERT_NE(far, nullptr);
  EXPECT_EQ(near->kind, link_kind::xgmi);
  EXPECT_EQ(near->weight, 15U);
  EXPECT_EQ(near->hops, 1U);
  EXPECT_EQ(far->kind, link_kind::pcie);
  EXPECT_EQ(far->weight, 72U);
  EXPECT_EQ(far->hops, 3U);
}

std::string changed(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(PastedRocmSmi, FillsTheMachine) {
  const auto seen = test::read_text(std::string(three_gpus));
  expect_three(seen);
  EXPECT_EQ(seen.unread_lines, 0U);
  EXPECT_TRUE(seen.contradictions.empty());
}

TEST(PastedRocmSmi, IsReadWithBlanksCollapsed) {
  auto text = changed(std::string(three_gpus), "\t", " ");
  while (text.find("  ") != std::string::npos) {
    text = changed(std::move(text), "  ", " ");
  }
  expect_three(test::read_text(text));
}

TEST(PastedRocmSmi, IsReadInTheSpellingOfSiteDocs) {
  expect_three(
      test::read_text(changed(changed(std::string(three_gpus), "GPU[", "GPU "), "]\t\t", "  ")));
}

TEST(PastedRocmSmi, TrustsNeitherHalfOfAnUnevenTable) {
  const auto seen =
      test::read_text(changed(std::string(three_gpus), "GPU1   15           0            72",
                              "GPU1   30           0            72"));
  EXPECT_TRUE(test::is_contradicted(seen, "links[0].weight"));
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->weight, std::nullopt);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->hops, 1U);
}

TEST(PastedRocmSmi, DoesNotBelieveTheLastCellOfACutRow) {
  const auto seen = test::read_text(
      "==== Weight between two GPUs ====\n GPU0 GPU1 GPU2\nGPU0 0 15 72\nGPU1 15 0 7");
  EXPECT_EQ(test::gpu_link(seen, 0, 2)->weight, 72U);
  // Whole by count, though cut in its last number.
  EXPECT_EQ(test::gpu_link(seen, 1, 2)->weight, 7U);
  const auto cut =
      test::read_text("==== Weight between two GPUs ====\n GPU0 GPU1 GPU2\nGPU0 0 15 72\nGPU1 1");
  EXPECT_EQ(test::gpu_link(cut, 0, 1)->weight, 15U);
  EXPECT_TRUE(test::has_problem(cut, "is cut"));
}

TEST(PastedRocmSmi, LeavesOutARowWithTooManyCells) {
  const auto seen =
      test::read_text("==== Hops between two GPUs ====\n GPU0 GPU1\nGPU0 0 1 2\nGPU1 1 0\n");
  EXPECT_TRUE(test::has_problem(seen, "3 cells for 2 columns"));
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->hops, 1U);
}

TEST(PastedRocmSmi, LeavesOutNodesThatCannotBe) {
  const auto seen = test::read_text(
      "GPU[0]		: (Topology) Numa Node: 4096\nGPU[1]		: (Topology) Numa Node: "
      "-1\n"
      "GPU[99999]		: (Topology) Numa Node: 1\n");
  EXPECT_EQ(seen.machine.gpus.at(0).numa_node, std::nullopt);
  EXPECT_TRUE(test::has_problem(seen, "\"4096\" is no NUMA node"));
  EXPECT_EQ(seen.machine.gpus.size(), 2U);
}

TEST(PastedRocmSmi, SaysWhereNodeAndAffinityDiffer) {
  const auto seen = test::read_text(
      "GPU[0]		: (Topology) Numa Node: 1\nGPU[0]		: (Topology) Numa "
      "Affinity: 0\n");
  EXPECT_EQ(seen.machine.gpus.at(0).numa_node, 1U);
  EXPECT_TRUE(test::has_problem(seen, "NUMA affinity 0 and NUMA node 1"));
}

TEST(PastedRocmSmi, TrustsNeitherOfTwoNodesOfOneGpu) {
  const auto seen = test::read_text(
      "GPU[0]		: (Topology) Numa Node: 1\nGPU[0]		: (Topology) Numa Node: "
      "0\n");
  EXPECT_EQ(seen.machine.gpus.at(0).numa_node, std::nullopt);
  EXPECT_TRUE(test::is_contradicted(seen, "gpus[0].numa_node"));
}

TEST(PastedRocmSmi, ReadsThePairsOfOlderReleases) {
  const auto seen = test::read_text(
      "(Topology) Weight between DRM devices 0 and 1: 40\n"
      "(Topology) Hops between DRM devices 0 and 1: 2\n"
      "(Topology) Link Type between DRM devices 0 and 1: PCIE\n");
  ASSERT_NE(test::gpu_link(seen, 0, 1), nullptr);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->weight, 40U);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->hops, 2U);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::pcie);
}

}  // namespace
}  // namespace berth::topology
