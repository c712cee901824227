// SPDX-License-Identifier: Apache-2.0
// On simulated machines the right figures are known: what is measured must be what the model says.
#include "bandwidth/measure.hpp"

#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bandwidth/judge.hpp"
#include "machine/catalogue.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::bandwidth {
namespace {

namespace sim = runtime::sim;

std::shared_ptr<runtime::sim_driver> simulated(sim::options how) {
  how.devices = 1;
  return runtime::make_sim_driver(how).value();
}

class MeasuredModel : public testing::TestWithParam<const char*> {};

TEST_P(MeasuredModel, GivesTheModelsFiguresWithinTwoPercent) {
  const auto gpu = simulated({.model = GetParam()});
  const auto profile = machine::nominal_profile(*machine::find_by_name(GetParam()));
  const auto plan = make_plan({.sizes = {64 * kib, mib, 8 * mib}}, 1).value();
  unsigned compared = 0;
  for (const auto& one : plan) {
    auto figures = measure(*gpu, one, {.samples = 3, .warm_up = 1});
    ASSERT_TRUE(figures) << figures.error().to_string();
    judge(*figures, 0, &profile);
    for (const auto& figure : *figures) {
      ASSERT_TRUE(figure.ns) << machine::to_string(figure.where) << ": " << figure.why_not;
      if (!figure.expected_gb_per_s) {
        continue;
      }
      // Short copies of both directions begin and end one by one: the model has them side by side.
      if (figure.overlap && figure.bytes < 8 * mib) {
        continue;
      }
      ++compared;
      EXPECT_NEAR(figure.gb_per_s() / figure.expected_gb_per_s->value, 1, 0.02)
          << machine::to_string(figure.where) << ", " << figure.bytes;
      EXPECT_EQ(figure.verdict, machine::bandwidth_verdict::as_expected);
      EXPECT_TRUE(figure.causes.empty());
    }
  }
  EXPECT_GT(compared, 15U) << "of " << plan.size();
}

INSTANTIATE_TEST_SUITE_P(Models, MeasuredModel,
                         testing::Values("mi100", "mi210", "mi250x", "mi300x", "v100", "a100",
                                         "h100", "h200", "rx7900xtx"),
                         [](const auto& given) { return std::string(given.param); });

TEST(Measure, BothDirectionsAtOnceHaveTwoFiguresAndTheirOverlap) {
  const auto gpu = simulated({.model = "h200"});
  const auto plan = make_plan({.kinds = {"both"}, .sizes = {16 * mib}}, 1).value();
  ASSERT_EQ(plan.size(), 1U);
  const auto figures = measure(*gpu, plan.front(), {}).value();
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].where.way, direction::host_to_device);
  EXPECT_EQ(figures[1].where.way, direction::device_to_host);
  ASSERT_TRUE(figures[0].overlap);
  EXPECT_GT(*figures[0].overlap, 0.95);
  EXPECT_NEAR(figures[0].gb_per_s() + figures[1].gb_per_s(), 99.5, 2.5);
}

// Whether the measurement ends so with its `nth` copy spoilt. Each is made once.
bool finds_wrong_copy(const char* kind, std::uint64_t nth, unsigned samples = 1) {
  const auto gpu = simulated({.model = "mi210"});
  const auto plan = make_plan({.kinds = {kind}, .sizes = {64 * mib}}, 1).value();
  gpu->inject({.kind = sim::fault_kind::corrupt_copy, .nth = nth});
  const auto figures = measure(*gpu, plan.back(), {.samples = samples, .warm_up = 0});
  if (figures) {
    return false;
  }
  EXPECT_EQ(figures.error().code(), errc::transfer_wrong_data) << kind;
  EXPECT_NE(figures.error().message().find("the first at offset"), std::string::npos);
  return true;
}

// Of the copies that fill, that are measured and that compare; those that only make the destination
// another before do no harm.
TEST(Measure, SaysWhereAByteArrivedWrong) {
  for (const char* const kind : {"pinned", "registered", "pageable", "fresh", "device"}) {
    unsigned found = 0;
    for (std::uint64_t nth = 1; nth <= 6; ++nth) {
      found += finds_wrong_copy(kind, nth) ? 1U : 0U;
    }
    EXPECT_GE(found, 3U) << kind;
  }
}

TEST(Measure, AlsoInASampleThatALaterOneCovers) {
  for (const char* const kind : {"pinned", "pageable"}) {
    unsigned found = 0;
    for (std::uint64_t nth = 1; nth <= 10; ++nth) {
      found += finds_wrong_copy(kind, nth, 3) ? 1U : 0U;
    }
    EXPECT_EQ(found, 5U) << kind << ": two fill the source, three are measured";
  }
}

TEST(Measure, WhatHasNoMemoryIsNotMeasuredAndSaysWhy) {
  const auto gpu = simulated({.model = "mi210", .device_memory = 4 * mib});
  const auto plan = make_plan({.kinds = {"pinned"}, .sizes = {8 * mib}}, 1).value();
  const auto figures = measure(*gpu, plan.front(), {}).value();
  EXPECT_FALSE(figures.front().ns);
  EXPECT_NE(figures.front().why_not.find("BTH-1205"), std::string::npos) << figures.front().why_not;
  EXPECT_EQ(gpu->held().allocations, 0U) << "nothing is left behind";
}

TEST(Measure, WithoutKernelsThereIsNoGateAndNoCopyByThem) {
  runtime::capability_set none;
  none.add(runtime::capability::kernels);
  const auto gpu = simulated({.model = "mi210", .without = none});
  const auto by_kernel = make_plan({.kinds = {"kernel"}, .sizes = {mib}}, 1).value();
  EXPECT_FALSE(measure(*gpu, by_kernel.front(), {}).value().front().ns);
  const auto pinned = make_plan({.kinds = {"pinned"}, .sizes = {16 * mib}}, 1).value();
  EXPECT_TRUE(measure(*gpu, pinned.front(), {}).value().front().ns);
}

TEST(Measure, GivesEverythingBack) {
  const auto gpu = simulated({.model = "h200"});
  const auto plan = make_plan({.sizes = {mib}}, 1).value();
  for (const auto& one : plan) {
    ASSERT_TRUE(measure(*gpu, one, {.samples = 1, .warm_up = 0}));
  }
  const auto held = gpu->held();
  EXPECT_EQ(held.allocations, 0U);
  EXPECT_EQ(held.registrations, 0U);
  EXPECT_EQ(held.streams, 0U);
  EXPECT_EQ(held.events, 0U);
}

}  // namespace
}  // namespace berth::bandwidth
