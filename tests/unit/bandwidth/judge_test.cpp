// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/judge.hpp"

#include <gtest/gtest.h>

#include "machine/catalogue.hpp"

namespace berth::bandwidth {
namespace {

using machine::bandwidth_verdict;

machine::bandwidth_figure figure_with(double gb_per_s, const machine::path& where,
                                      bytes_t bytes = 64 * mib) {
  machine::bandwidth_figure made{.where = where, .bytes = bytes};
  const double ns = static_cast<double>(bytes) / gb_per_s;
  made.ns = statistics::summarise(std::vector<double>{ns, ns, ns});
  return made;
}

bandwidth_verdict verdict_of(double gb_per_s, const machine::path& where,
                             bytes_t bytes = 64 * mib) {
  const auto profile = machine::nominal_profile(*machine::find_by_name("h200"));
  std::vector<machine::bandwidth_figure> figures{figure_with(gb_per_s, where, bytes)};
  judge(figures, 0, &profile);
  return figures.front().verdict;
}

constexpr machine::path pinned{direction::host_to_device, memory_kind::pinned, engine::dma};
constexpr machine::path pageable{direction::host_to_device, memory_kind::pageable, engine::dma};

TEST(BandwidthJudge, TellsLowFromRightFromTooFast) {
  EXPECT_EQ(verdict_of(55.3, pinned), bandwidth_verdict::as_expected);
  EXPECT_EQ(verdict_of(50.0, pinned), bandwidth_verdict::as_expected);
  EXPECT_EQ(verdict_of(27.6, pinned), bandwidth_verdict::low) << "a link of half the width";
  EXPECT_EQ(verdict_of(46.0, pinned), bandwidth_verdict::low);
  EXPECT_EQ(verdict_of(70.0, pinned), bandwidth_verdict::above_nominal);
}

TEST(BandwidthJudge, AllowsPageableCopiesMore) {
  EXPECT_EQ(verdict_of(7.0, pageable), bandwidth_verdict::as_expected);
  EXPECT_EQ(verdict_of(15.0, pageable), bandwidth_verdict::as_expected);
  EXPECT_EQ(verdict_of(2.0, pageable), bandwidth_verdict::low);
}

TEST(BandwidthJudge, AllowsSmallCopiesMore) {
  EXPECT_EQ(verdict_of(20, pinned, 64 * kib), bandwidth_verdict::as_expected);
  EXPECT_EQ(verdict_of(5, pinned, 64 * kib), bandwidth_verdict::low);
}

TEST(BandwidthJudge, KnowsNothingWithoutAProfileOrForAnotherDevice) {
  const auto profile = machine::nominal_profile(*machine::find_by_name("h200"));
  std::vector<machine::bandwidth_figure> figures{figure_with(1, pinned)};
  judge(figures, 0, nullptr);
  EXPECT_EQ(figures.front().verdict, bandwidth_verdict::unknown);
  judge(figures, 1, &profile);
  EXPECT_EQ(figures.front().verdict, bandwidth_verdict::unknown);
}

TEST(BandwidthJudge, SaysTakingTurnsFirstWhereTheDirectionsDo) {
  const auto profile = machine::nominal_profile(*machine::find_by_name("h200"));
  auto one = figure_with(27, {direction::host_to_device, memory_kind::pinned, engine::dma,
                              machine::trait::bidirectional});
  one.overlap = 0.02;
  std::vector<machine::bandwidth_figure> figures{one};
  judge(figures, 0, &profile);
  ASSERT_EQ(figures.front().verdict, bandwidth_verdict::low);
  ASSERT_FALSE(figures.front().causes.empty());
  EXPECT_NE(figures.front().causes.front().find("take turns"), std::string::npos);
}

TEST(BandwidthJudge, LeavesWhatWasNotMeasured) {
  const auto profile = machine::nominal_profile(*machine::find_by_name("h200"));
  std::vector<machine::bandwidth_figure> figures{{.where = pinned, .bytes = mib, .why_not = "no"}};
  judge(figures, 0, &profile);
  EXPECT_EQ(figures.front().verdict, bandwidth_verdict::unknown);
  EXPECT_FALSE(figures.front().expected_gb_per_s);
}

}  // namespace
}  // namespace berth::bandwidth
