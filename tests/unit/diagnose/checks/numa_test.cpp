// SPDX-License-Identifier: Apache-2.0
// NUMA: processes away from their GPU, and GPUs that count unlike nodes.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using testing::Contains;
using testing::HasSubstr;

TEST(ProcessNuma, IsNormalWhereTheProcessMayRunEverywhere) {
  EXPECT_EQ(only("process-numa", instinct_node()).verdict, verdict::normal);
}

TEST(ProcessNuma, IsAFaultWhereNoGpuIsOnTheNodesOfTheProcess) {
  auto seen = instinct_node(1);
  seen.machine.set.allowed_cpus = {8, 9};
  const auto result = only("process-numa", seen);
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.headline, HasSubstr("bound to NUMA node 1"));
  EXPECT_THAT(result.headline, HasSubstr("distance 32"));
  EXPECT_THAT(result.fix, Contains(HasSubstr("--cpunodebind=0 --membind=0")));
}

TEST(ProcessNuma, IsNormalForOneProcessOfSeveral) {
  auto seen = instinct_node(4);
  seen.machine.set.allowed_cpus = {8, 9};
  const auto result = only("process-numa", seen);
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("near GPUs 2-3; GPUs 0-1 are on another node"));
}

TEST(ProcessNuma, IsUnknownWithoutNodes) {
  EXPECT_EQ(only("process-numa", bare_paste()).verdict, verdict::unknown);
  auto seen = instinct_node();
  seen.machine.set.allowed_cpus.clear();
  EXPECT_EQ(only("process-numa", seen).verdict, verdict::unknown);
}

TEST(ProcessNuma, DoesNotMatterWithOneNode) {
  auto seen = instinct_node(1);
  seen.machine.numa_nodes.resize(1);
  seen.machine.gpus[0].numa_node.reset();  // -1, as virtual machines have it
  EXPECT_EQ(only("process-numa", seen).verdict, verdict::normal);
}

TEST(GpuOrder, IsNormalWhereGpusCountLikeNodes) {
  EXPECT_EQ(only("gpu-numa-order", instinct_node()).verdict, verdict::normal);
}

TEST(GpuOrder, IsALimitWhereItIsTheReverse) {
  auto seen = instinct_node(2);
  seen.machine.gpus[0].numa_node = 1;
  seen.machine.gpus[1].numa_node = 0;
  const auto result = only("gpu-numa-order", seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("the reverse of NUMA order"));
}

TEST(GpuOrder, IsALimitWhereItIsMixed) {
  auto seen = instinct_node(4);
  seen.machine.gpus[0].numa_node = 1;
  const auto result = only("gpu-numa-order", seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("not NUMA order"));
}

TEST(GpuOrder, IsUnknownWhereSomeNodesAreMissing) {
  auto seen = instinct_node(4);
  seen.machine.gpus[3].numa_node.reset();
  EXPECT_EQ(only("gpu-numa-order", seen).verdict, verdict::unknown);
}

TEST(ProcessNuma, IsUnknownWhereAPasteShowsOneNodeOfPerhapsMore) {
  auto seen = bare_paste(2);
  seen.machine.numa_nodes = {node_of_two(0)};
  seen.machine.gpus[0].numa_node = 0;
  EXPECT_EQ(only("process-numa", seen).verdict, verdict::unknown);
}

TEST(GpuOrder, IsUnknownWithoutNodes) {
  EXPECT_EQ(only("gpu-numa-order", bare_paste()).verdict, verdict::unknown);
}

}  // namespace
}  // namespace berth::test
