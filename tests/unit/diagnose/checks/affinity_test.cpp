// SPDX-License-Identifier: Apache-2.0
// Where the process of each GPU should run.
#include "diagnose/checks/affinity.hpp"
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

TEST(Affinity, NamesNodeCpusAndLinesOfEachGpu) {
  const auto all = diagnose::affinity_of(instinct_node(2));
  ASSERT_EQ(all.gpus.size(), 2U);
  EXPECT_EQ(all.gpus[1].numa_node, 1U);
  EXPECT_EQ(all.gpus[1].numactl,
            "ROCR_VISIBLE_DEVICES=1 numactl --cpunodebind=1 --membind=1 PROGRAM");
  EXPECT_EQ(all.gpus[1].taskset, "ROCR_VISIBLE_DEVICES=1 taskset -c 8-15 PROGRAM");
  EXPECT_EQ(all.slurm, "srun --ntasks-per-node=2 --cpu-bind=mask_cpu:0xff,0xff00 PROGRAM");
}

TEST(Affinity, KeepsToTheCpusThatAreAllowed) {
  auto seen = instinct_node(1);
  seen.machine.set.allowed_cpus = {2, 3, 9};
  EXPECT_THAT(diagnose::affinity_of(seen).gpus[0].cpus, testing::ElementsAre(2U, 3U));
}

TEST(Affinity, CountsGpusOfEachVendorByThemselves) {
  auto seen = instinct_node(2);
  seen.machine.gpus[1].made_by = machine::vendor::nvidia;
  EXPECT_TRUE(diagnose::affinity_of(seen).gpus[1].numactl.starts_with("CUDA_VISIBLE_DEVICES=0 "));
}

TEST(Affinity, TakesTheOnlyNodeWhereTheGpuNamesNone) {
  auto seen = instinct_node(1);
  seen.machine.numa_nodes.resize(1);
  seen.machine.gpus[0].numa_node.reset();
  EXPECT_EQ(diagnose::affinity_of(seen).gpus[0].numa_node, 0U);
}

TEST(Affinity, DoesNotTakeTheOneNodeOfAPasteForAll) {
  auto seen = instinct_node(2);
  seen.kind = machine::survey_kind::pasted;
  seen.machine.numa_nodes.resize(1);
  seen.machine.gpus[1].numa_node.reset();
  EXPECT_FALSE(diagnose::affinity_of(seen).gpus[1].numa_node.has_value());
}

TEST(Affinity, PrefersTheCpusThatAToolCallsClosest) {
  auto seen = instinct_node(1);
  seen.machine.gpus[0].near_cpus = {4, 5};
  EXPECT_THAT(diagnose::affinity_of(seen).gpus[0].cpus, testing::ElementsAre(4U, 5U));
}

// A number that is the order of a paste's lines only is no runtime's.
TEST(Affinity, SelectsNoDeviceByTheOrderOfAppearance) {
  auto seen = instinct_node(2);
  seen.machine.gpus[0].numbered = machine::setting_state::off;
  const auto all = diagnose::affinity_of(seen);
  EXPECT_EQ(all.gpus[0].numactl, "numactl --cpunodebind=0 --membind=0 PROGRAM");
  EXPECT_TRUE(all.slurm.empty());
}

TEST(Affinity, InventsNothing) {
  const auto all = diagnose::affinity_of(bare_paste());
  EXPECT_FALSE(all.gpus[0].numa_node.has_value());
  EXPECT_TRUE(all.gpus[0].numactl.empty());
  EXPECT_TRUE(all.gpus[0].taskset.empty());
  EXPECT_TRUE(all.slurm.empty());
  EXPECT_TRUE(diagnose::affinity_of({}).gpus.empty());
}

}  // namespace
}  // namespace berth::test
