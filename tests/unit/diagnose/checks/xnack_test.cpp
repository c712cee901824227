// SPDX-License-Identifier: Apache-2.0
// XNACK: who can, who blocks, and whether it is on.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::setting_state;
using testing::Contains;
using testing::HasSubstr;

constexpr auto xnack_check = "xnack";

TEST(Xnack, OffIsNormalAndTheFixIsNamed) {
  const auto result = only(xnack_check, instinct_node());
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("off on GPUs 0-3 (gfx90a), as is the default"));
  EXPECT_THAT(result.fix, Contains(HasSubstr("HSA_XNACK=1")));
}

TEST(Xnack, OnIsNormal) {
  auto seen = instinct_node();
  seen.machine.set.xnack = setting_state::on;
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("XNACK is on"));
}

TEST(Xnack, OffThoughAskedForIsAFaultWhereNothingExplainsIt) {
  auto seen = instinct_node();
  set_variable(seen, "HSA_XNACK", "1");
  EXPECT_EQ(only(xnack_check, seen).verdict, verdict::fault);
}

TEST(Xnack, OffThoughAskedForIsALimitOfAVirtualFunction) {
  auto seen = instinct_node();
  set_variable(seen, "HSA_XNACK", "1");
  seen.machine.gpus[0].virtual_function = setting_state::on;
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("virtual function"));
}

TEST(Xnack, NeedsAKernelThatMigratesPages) {
  auto seen = instinct_node();
  seen.machine.set.hmm = setting_state::off;
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.fix, Contains(HasSubstr("CONFIG_HMM_MIRROR")));
}

TEST(Xnack, AskedForIsNotOnWhereTheKernelCannot) {
  auto seen = instinct_node();
  seen.machine.set.xnack = setting_state::on;  // as HSA_XNACK=1 says
  set_variable(seen, "HSA_XNACK", "1");
  seen.machine.set.hmm = setting_state::off;
  EXPECT_EQ(only(xnack_check, seen).verdict, verdict::limit);
}

TEST(Xnack, IsForbiddenByNoretry) {
  auto seen = instinct_node();
  seen.machine.set.noretry = setting_state::on;
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("noretry"));
}

TEST(Xnack, OfRadeonIsALimitThatNoSettingChanges) {
  const auto result = only(xnack_check, instinct_node(1, "gfx1100"));
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("cannot retry"));
}

TEST(Xnack, OfOlderInstinctNeedsABootParameter) {
  const auto result = only(xnack_check, instinct_node(2, "gfx908"));
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("amdgpu.noretry=0"));
}

TEST(Xnack, IsBlockedByOneGpuThatCannot) {
  auto seen = instinct_node(3);
  seen.machine.gpus[2].isa = "gfx1030";
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("GPU 2 (gfx1030) cannot use XNACK and GPUs 0-1"));
  EXPECT_THAT(result.fix, Contains(HasSubstr("ROCR_VISIBLE_DEVICES=0,1 HSA_XNACK=1")));
}

TEST(Xnack, YesOfAnIntegratedGpuSaysNothingOfADiscreteOne) {
  auto seen = bare_paste(2);
  seen.machine.gpus[1].isa = "gfx902";
  seen.machine.gpus[1].integrated = setting_state::on;
  seen.machine.set.xnack = setting_state::on;
  const auto results = said_by(xnack_check, seen);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].verdict, verdict::unknown);
  EXPECT_THAT(results[0].headline, HasSubstr("GPU 0 (gfx90a) can use XNACK"));
  EXPECT_EQ(results[1].verdict, verdict::normal);
  EXPECT_THAT(results[1].headline, HasSubstr("says nothing about GPU 0"));
}

TEST(Xnack, YesOfALoneIntegratedGpuIsNoProof) {
  auto seen = bare_paste(1, "gfx902");
  seen.machine.gpus[0].integrated = setting_state::on;
  seen.machine.set.xnack = setting_state::on;
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("says nothing about a discrete GPU"));
}

TEST(Xnack, IsUnknownWhereNobodySaid) {
  EXPECT_EQ(only(xnack_check, bare_paste()).verdict, verdict::unknown);
  EXPECT_EQ(only(xnack_check, bare_paste(1, "")).verdict, verdict::unknown);
}

TEST(Xnack, IsTheDriversDefaultWhereTheEnvironmentWasSeen) {
  auto seen = instinct_node();
  seen.machine.set.xnack = setting_state::unknown;
  const auto result = only(xnack_check, seen);
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("HSA_XNACK is not set"));
}

TEST(Xnack, TriedIsOnOrStaysOff) {
  const auto seen = instinct_node(2);
  auto tried = bare_paste(2);
  tried.machine.set.xnack = setting_state::on;
  tried.machine.gpus[0].xnack = tried.machine.gpus[1].xnack = setting_state::on;
  auto all = diagnose::check_machine(seen);
  diagnose::add_tried_xnack(tried, all, seen);
  EXPECT_EQ(all.worst, verdict::normal);
  EXPECT_THAT(all.results.back().headline, HasSubstr("tried with HSA_XNACK=1: XNACK is on"));
  tried.machine.gpus[1].xnack = setting_state::off;
  diagnose::add_tried_xnack(tried, all, seen);
  EXPECT_EQ(all.worst, verdict::limit);
  EXPECT_THAT(all.results.front().headline, HasSubstr("stays off for GPU 1"));
  diagnose::add_tried_xnack(bare_paste(0), all, seen);
  EXPECT_EQ(all.worst, verdict::limit);
}

TEST(Xnack, IsNoQuestionWithoutAGpuOfAmd) {
  machine::survey seen;
  EXPECT_TRUE(said_by(xnack_check, seen).empty());
  seen = instinct_node(1, "sm_90");
  seen.machine.gpus[0].made_by = machine::vendor::nvidia;
  EXPECT_TRUE(said_by(xnack_check, seen).empty());
}

}  // namespace
}  // namespace berth::test
