// SPDX-License-Identifier: Apache-2.0
// Settings and environment that change how memory moves.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::setting_state;
using testing::HasSubstr;

TEST(CopyEngines, AreNormalWhereNothingSteersThem) {
  EXPECT_EQ(only("copy-engines", instinct_node()).verdict, verdict::normal);
}

TEST(CopyEngines, AreALimitWhereTheEnvironmentTurnsThemOff) {
  auto seen = instinct_node();
  set_variable(seen, "HSA_ENABLE_SDMA", "0");
  seen.machine.set.sdma = setting_state::off;
  const auto result = only("copy-engines", seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("HSA_ENABLE_SDMA=0"));
}

TEST(CopyEngines, AreALimitWhereOnlyTheStateIsKnown) {
  auto seen = instinct_node();
  seen.machine.set.sdma = setting_state::off;
  EXPECT_EQ(only("copy-engines", seen).verdict, verdict::limit);
}

TEST(CopyEngines, AreNotSteeredByADefault) {
  auto seen = instinct_node();
  set_variable(seen, "HSA_ENABLE_SDMA", "1");
  set_variable(seen, "AMD_SERIALIZE_COPY", "0");
  EXPECT_EQ(only("copy-engines", seen).verdict, verdict::normal);
}

TEST(CopyEngines, AreUnknownWithoutTheEnvironment) {
  EXPECT_EQ(only("copy-engines", bare_paste()).verdict, verdict::unknown);
}

TEST(MemoryLimits, AreNormalWhereLockedMemoryIsShort) {
  const auto result = only("memory-limits", instinct_node());
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("8 MiB"));
}

TEST(MemoryLimits, AreALimitWhereTheGroupHasLessThanAGpu) {
  auto seen = instinct_node();
  seen.machine.set.memory_limit = 16 * gib;
  const auto result = said_by("memory-limits", seen).front();
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("16 GiB of host memory, less than the 64 GiB"));
}

TEST(MemoryLimits, AreUnknownWithoutFigures) {
  EXPECT_EQ(only("memory-limits", bare_paste()).verdict, verdict::unknown);
}

TEST(NumaBalancing, IsALimitWhereThereAreNodesToBalance) {
  auto seen = instinct_node();
  EXPECT_EQ(only("numa-balancing", seen).verdict, verdict::normal);
  seen.machine.set.numa_balancing = setting_state::on;
  EXPECT_EQ(only("numa-balancing", seen).verdict, verdict::limit);
  seen.machine.set.numa_balancing = setting_state::unknown;
  EXPECT_EQ(only("numa-balancing", seen).verdict, verdict::unknown);
  seen.machine.numa_nodes.resize(1);
  EXPECT_TRUE(said_by("numa-balancing", seen).empty());
}

TEST(HugePages, AreALimitWhereTheyAreOff) {
  auto seen = instinct_node();
  EXPECT_EQ(only("huge-pages", seen).verdict, verdict::normal);
  seen.machine.set.transparent_huge_pages = "never";
  EXPECT_EQ(only("huge-pages", seen).verdict, verdict::limit);
  seen.machine.set.transparent_huge_pages.clear();
  EXPECT_EQ(only("huge-pages", seen).verdict, verdict::unknown);
}

TEST(HugePages, ShouldBeAlwaysOnAnApuOfInstinct) {
  auto seen = instinct_node(4, "gfx942");
  for (auto& gpu : seen.machine.gpus) {
    gpu.integrated = setting_state::on;
  }
  EXPECT_EQ(only("huge-pages", seen).verdict, verdict::limit);
  seen.machine.set.transparent_huge_pages = "always";
  EXPECT_EQ(only("huge-pages", seen).verdict, verdict::normal);
}

TEST(Governor, IsALimitWhereItSavesPower) {
  auto seen = instinct_node();
  EXPECT_EQ(only("cpu-governor", seen).verdict, verdict::normal);
  seen.machine.set.cpu_governor = "powersave";
  EXPECT_EQ(only("cpu-governor", seen).verdict, verdict::limit);
  seen.machine.set.cpu_governor.clear();
  EXPECT_TRUE(said_by("cpu-governor", seen).empty());
}

}  // namespace
}  // namespace berth::test
