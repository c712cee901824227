// SPDX-License-Identifier: Apache-2.0
#include "conformance/report.hpp"

#include <string_view>

#include <fmt/format.h>

namespace berth::conformance {
namespace {

// "copy.round_trip/sim_h200" -> "sim_h200"
std::string driver_in(std::string_view name) {
  const auto slash = name.rfind('/');
  return std::string(slash == std::string_view::npos ? name : name.substr(slash + 1));
}

std::string skip_reason(const testing::TestResult& what) {
  for (int part = 0; part < what.total_part_count(); ++part) {
    if (what.GetTestPartResult(part).skipped()) {
      std::string_view message = what.GetTestPartResult(part).message();
      while (!message.empty() && message.back() == '\n') {
        message.remove_suffix(1);
      }
      return std::string(message);
    }
  }
  return "no reason given";
}

}  // namespace

void reporter::OnTestStart(const testing::TestInfo& which) {
  watchdog_->begin(fmt::format("{}.{}", which.test_suite_name(), which.name()));
}

void reporter::OnTestEnd(const testing::TestInfo& which) {
  watchdog_->end();
  auto& counts = tallies_[driver_in(which.name())];
  if (which.result()->Failed()) {
    ++counts.failed;
  } else if (which.result()->Skipped()) {
    ++counts.skipped;
    ++counts.reasons[skip_reason(*which.result())];
  } else {
    ++counts.passed;
  }
}

void reporter::OnTestProgramEnd(const testing::UnitTest& /*all*/) {
  fmt::print("\n{:<22} {:>7} {:>7} {:>7}\n", "driver", "passed", "failed", "skipped");
  for (const auto& [name, counts] : tallies_) {
    fmt::print("{:<22} {:>7} {:>7} {:>7}\n", name, counts.passed, counts.failed, counts.skipped);
    for (const auto& [reason, times] : counts.reasons) {
      fmt::print("{:>30} skipped: {}\n", times, reason);
    }
  }
  for (const auto& missing : absent_) {
    fmt::print("{:<22} not here: {}\n", missing.name, missing.reason);
  }
  std::fflush(stdout);
}

}  // namespace berth::conformance
