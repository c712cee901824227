// SPDX-License-Identifier: Apache-2.0
// What is measured follows from what was asked for, and nonsense is refused before anything runs.
#include "bandwidth/plan.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace berth::bandwidth {
namespace {

errc refusal_of(const wish& wanted, int devices = 1) {
  const auto plan = make_plan(wanted, devices);
  return plan ? errc{} : plan.error().code();
}

TEST(BandwidthPlan, HasEachPathOnEachDeviceInEachSize) {
  const auto plan = make_plan({.sizes = {mib, 16 * mib}}, 2).value();
  EXPECT_EQ(plan.size(), 2 * 2 * all_paths().size());
}

TEST(BandwidthPlan, OfNamedPathsHasNothingElse) {
  const auto plan = make_plan({.kinds = {"pageable", "both"}, .sizes = {mib}}, 1).value();
  EXPECT_EQ(plan.size(), 3U);
  EXPECT_TRUE(std::all_of(plan.begin(), plan.end(), [](const planned& one) {
    return one.what.name == "pageable" || one.what.name == "both";
  }));
}

TEST(BandwidthPlan, OfOneDeviceHasNoOther) {
  const auto plan = make_plan({.sizes = {mib}, .device = 1}, 3).value();
  EXPECT_FALSE(plan.empty());
  EXPECT_TRUE(
      std::all_of(plan.begin(), plan.end(), [](const planned& one) { return one.device == 1; }));
}

TEST(BandwidthPlan, SmallCopiesAreNotCalledFresh) {
  const auto plan = make_plan({.kinds = {"fresh"}, .sizes = {4 * kib, mib}}, 1).value();
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan.front().bytes, mib);
}

TEST(BandwidthPlan, RefusesNonsense) {
  EXPECT_EQ(refusal_of({.kinds = {"pined"}}), errc::usage);
  EXPECT_EQ(refusal_of({.sizes = {0}}), errc::usage);
  EXPECT_EQ(refusal_of({.device = 1}), errc::usage);
  EXPECT_EQ(refusal_of({.device = -1}), errc::usage);
}

}  // namespace
}  // namespace berth::bandwidth
