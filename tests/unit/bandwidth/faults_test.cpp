// SPDX-License-Identifier: Apache-2.0
// Machines with a fault, measured: what is slow is called low, with a cause, and nothing else is.
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "bandwidth/run.hpp"
#include "machine/catalogue.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::bandwidth {
namespace {

using machine::bandwidth_figure;
using machine::bandwidth_verdict;
using machine::trait;

// Paths that take `factor` times as long for each byte.
struct slowed {
  const char* name;
  std::function<bool(const machine::path&)> is_slow;
  double factor;
  const char* first_cause;  // begins so
};

bool touches_host(const machine::path& of) {
  return of.way == direction::host_to_device || of.way == direction::device_to_host;
}
bool is_locked(const machine::path& of) {
  return touches_host(of) && of.host == memory_kind::pinned;
}

const std::vector<slowed>& faults() {
  static const std::vector<slowed> all{
      {"HalfTheLink", is_locked, 2, "the link is trained below"},
      {"AQuarterOfTheLink", is_locked, 4, "the link is trained below"},
      {"ToTheHostOnly",
       [](const auto& of) { return is_locked(of) && of.way == direction::device_to_host; }, 2,
       "the link is trained below"},
      {"ToTheDeviceOnly",
       [](const auto& of) { return is_locked(of) && of.way == direction::host_to_device; }, 2,
       "the link is trained below"},
      {"CopyEngineAlone", [](const auto& of) { return is_locked(of) && of.by == engine::dma; }, 2,
       "the link is trained below"},
      {"KernelCopiesAlone", [](const auto& of) { return is_locked(of) && of.by == engine::kernel; },
       2, "the link is trained below"},
      {"PageableAtAQuarter",
       [](const auto& of) { return touches_host(of) && of.host == memory_kind::pageable; }, 4,
       "the pages are far or small"},
      {"PageableToTheHost",
       [](const auto& of) {
         return of.way == direction::device_to_host && of.host == memory_kind::pageable;
       },
       4, "the pages are far or small"},
      {"MemoryOfTheDevice", [](const auto& of) { return of.way == direction::device_to_device; }, 2,
       "power or clocks are limited"},
  };
  return all;
}

machine::model slowed_down(const machine::model& of, const slowed& fault) {
  std::vector<machine::path_cost> paths;
  for (auto one : of.profile.paths()) {
    if (fault.is_slow(one.where)) {
      one.device_time = one.device_time.with_rate_divided_by(fault.factor);
    }
    paths.push_back(one);
  }
  auto made = of;
  const auto operations = of.profile.operations();
  const auto quantities = of.profile.quantities();
  made.profile = machine::machine_profile(of.profile.name(), std::move(paths),
                                          {operations.begin(), operations.end()},
                                          {quantities.begin(), quantities.end()});
  return made;
}

std::vector<bandwidth_figure> measured(const machine::model& of) {
  runtime::sim::options how;
  how.machine = of;
  how.devices = 1;
  const auto gpu = runtime::make_sim_driver(how).value();
  const auto plan = make_plan({.kinds = {"pinned", "kernel", "registered", "pageable", "device"},
                               .sizes = {4 * mib}},
                              1)
                        .value();
  return run(*gpu, plan, {.how = {.samples = 1, .warm_up = 1}}).found.figures;
}

using one_fault = std::tuple<const char*, std::size_t>;
class FaultyMachine : public testing::TestWithParam<one_fault> {};

TEST_P(FaultyMachine, HasItsSlowPathsCalledLowAndNoOthers) {
  const auto& [name, index] = GetParam();
  const auto& fault = faults().at(index);
  const auto* const model = machine::find_by_name(name);
  ASSERT_NE(model, nullptr);
  unsigned low = 0;
  unsigned slow = 0;  // of those that the model knows
  for (const auto& one : measured(slowed_down(*model, fault))) {
    ASSERT_TRUE(one.ns) << one.why_not;
    auto as_pinned = one.where;  // registered memory costs what pinned does
    as_pinned.host =
        as_pinned.host == memory_kind::registered ? memory_kind::pinned : one.where.host;
    const bool is_slow = fault.is_slow(as_pinned);
    if (one.verdict == bandwidth_verdict::unknown) {
      continue;
    }
    slow += is_slow ? 1U : 0U;
    EXPECT_EQ(one.verdict == bandwidth_verdict::low, is_slow)
        << machine::to_string(one.where) << " " << one.gb_per_s();
    if (one.verdict == bandwidth_verdict::low) {
      ++low;
      ASSERT_FALSE(one.causes.empty());
      EXPECT_TRUE(one.causes.front().starts_with(fault.first_cause)) << one.causes.front();
    }
  }
  EXPECT_EQ(low, slow);
}

std::string name_of_fault(const testing::TestParamInfo<one_fault>& given) {
  return std::string(std::get<0>(given.param)) + "_" + faults()[std::get<1>(given.param)].name;
}

INSTANTIATE_TEST_SUITE_P(Machines, FaultyMachine,
                         testing::Combine(testing::Values("mi100", "mi210", "mi250x", "mi300x",
                                                          "a100", "h200"),
                                          testing::Range(std::size_t{0}, std::size_t{9})),
                         name_of_fault);

TEST(FaultyCopies, AllTenTimesSlowerAreAllLow) {
  runtime::sim::options how;
  how.model = "h200";
  how.faults = {{.kind = runtime::sim::fault_kind::slow_copy, .nth = 0, .factor = 10}};
  const auto gpu = runtime::make_sim_driver(how).value();
  const auto plan = make_plan({.kinds = {"pinned", "pageable"}, .sizes = {16 * mib}}, 1).value();
  const auto ended = run(*gpu, plan, {.how = {.samples = 1, .warm_up = 0}});
  EXPECT_TRUE(std::all_of(ended.found.figures.begin(), ended.found.figures.end(),
                          [](const auto& one) { return one.verdict == bandwidth_verdict::low; }));
}

TEST(FaultyCopies, AWrongByteEndsTheRunAndKeepsWhatIsThere) {
  runtime::sim::options how;
  how.model = "h200";
  const auto gpu = runtime::make_sim_driver(how).value();
  const auto plan = make_plan({.kinds = {"pinned"}, .sizes = {mib, 2 * mib}}, 1).value();
  std::size_t before = 0;
  const auto ended =
      run(*gpu, plan,
          {.how = {.samples = 1, .warm_up = 0},
           .on_progress = [&](std::size_t done, std::size_t, const planned&) {
             before = done;
             if (done == 2) {
               gpu->inject({.kind = runtime::sim::fault_kind::corrupt_copy, .nth = 1});
             }
           }});
  EXPECT_EQ(before, 2U);
  ASSERT_TRUE(ended.failure);
  EXPECT_EQ(ended.failure->code(), errc::transfer_wrong_data);
  EXPECT_EQ(ended.found.figures.size(), 2U);
  EXPECT_FALSE(ended.found.ended_early.empty());
}

TEST(FaultyCopies, AStoppedRunKeepsWhatIsThere) {
  const auto gpu = runtime::make_sim_driver({.model = "h200"}).value();
  const auto plan = make_plan({.kinds = {"pinned"}, .sizes = {mib, 2 * mib}}, 1).value();
  std::atomic<bool> stop{false};
  const auto ended = run(
      *gpu, plan,
      {.how = {.samples = 1, .warm_up = 0},
       .on_progress = [&](std::size_t done, std::size_t, const planned&) { stop.store(done == 1); },
       .stop = &stop});
  EXPECT_FALSE(ended.failure);
  EXPECT_EQ(ended.found.figures.size(), 2U);
  EXPECT_NE(ended.found.ended_early.find("interrupted after 2 of 4"), std::string::npos)
      << ended.found.ended_early;
}

}  // namespace
}  // namespace berth::bandwidth
