// SPDX-License-Identifier: Apache-2.0
// How much GPU memory the host can address.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using testing::HasSubstr;

constexpr auto bar_check = "large-bar";

TEST(LargeBar, IsNormalWhereItIsAsLargeAsTheMemory) {
  EXPECT_EQ(only(bar_check, instinct_node()).verdict, verdict::normal);
}

TEST(LargeBar, IsAFaultWhereItIsMissing) {
  auto seen = instinct_node(2);
  seen.machine.gpus[1].bar = 256 * mib;
  const auto results = said_by(bar_check, seen);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].verdict, verdict::fault);
  EXPECT_THAT(results[0].headline, HasSubstr("GPU 1: the host can address 256 MiB of 64 GiB"));
  EXPECT_THAT(results[0].gpus, testing::ElementsAre(1U));
}

TEST(LargeBar, IsAFaultWhereItIsSmallerThanTheMemory) {
  auto seen = instinct_node(1);
  seen.machine.gpus[0].bar = 32 * gib;
  EXPECT_EQ(only(bar_check, seen).verdict, verdict::fault);
}

TEST(LargeBar, IsALimitOfDesktopCardsOfNvidia) {
  auto seen = instinct_node(1, "sm_75");
  seen.machine.gpus[0].made_by = machine::vendor::nvidia;
  seen.machine.gpus[0].bar = 256 * mib;
  EXPECT_EQ(only(bar_check, seen).verdict, verdict::limit);
}

TEST(LargeBar, IsUnknownWithoutFigures) {
  EXPECT_EQ(only(bar_check, bare_paste()).verdict, verdict::unknown);
}

TEST(LargeBar, IsNotAskedOfIntegratedGpus) {
  auto seen = instinct_node(1);
  seen.machine.gpus[0].integrated = machine::setting_state::on;
  seen.machine.gpus[0].bar = 256 * mib;
  EXPECT_TRUE(said_by(bar_check, seen).empty());
}

}  // namespace
}  // namespace berth::test
