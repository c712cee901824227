// SPDX-License-Identifier: Apache-2.0
// What the suite prints at its end: for each driver how many cases passed, failed and were skipped,
// why they were skipped, and which drivers are not on this machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/drivers.hpp"
#include "conformance/watchdog.hpp"

namespace berth::conformance {

struct tally {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  std::map<std::string, int> reasons;  // of skips
};

// Tells the watchdog of each case and counts what became of it.
class reporter : public testing::EmptyTestEventListener {
public:
  reporter(std::vector<absent_driver> absent, watchdog& dog)
      : absent_(std::move(absent)), watchdog_(&dog) {}

  void OnTestStart(const testing::TestInfo& which) override;
  void OnTestEnd(const testing::TestInfo& which) override;
  void OnTestProgramEnd(const testing::UnitTest& all) override;

private:
  std::vector<absent_driver> absent_;
  watchdog* watchdog_;
  std::map<std::string, tally> tallies_;  // by driver, as in the names of tests
};

}  // namespace berth::conformance
