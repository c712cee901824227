// SPDX-License-Identifier: Apache-2.0
// The conformance suite as a program: conformance [--driver=NAME,...] [--gtest_...]
//
// NAME is a row of the table in drivers.cpp ("cuda", "sim:h200") or a runtime ("sim": all its
// rows). The environment variable BERTH_CONFORMANCE_DRIVERS says the same; without either all
// drivers that this machine has are tested.
// BERTH_CONFORMANCE_DEADLINE: seconds that one case may take before it counts as hanging (120).
// Exit status: 0 all passed, 1 a case failed, 2 wrong usage, 4 a case hangs, 77 no driver that was
// named is here.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/drivers.hpp"
#include "conformance/report.hpp"
#include "conformance/watchdog.hpp"

namespace berth::conformance {
namespace {

constexpr int exit_usage = 2;
constexpr int exit_hangs = 4;
constexpr int exit_absent = 77;

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The value of --driver=, which is taken out of the arguments; the environment's otherwise.
std::string drivers_asked_for(int& count, char** arguments) {
  constexpr std::string_view option = "--driver=";
  std::string names = from_environment("BERTH_CONFORMANCE_DRIVERS");
  int kept = 1;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with(option)) {
      names = argument.substr(option.size());
    } else {
      arguments[kept++] = arguments[i];
    }
  }
  count = kept;
  arguments[kept] = nullptr;
  return names;
}

std::chrono::seconds deadline() {
  const auto text = from_environment("BERTH_CONFORMANCE_DEADLINE");
  long seconds = 120;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::chrono::seconds(seconds);
}

void say_that_it_hangs(const std::string& name) {
  fmt::print(stderr, "\n[  FAILED  ] {} hangs: it has not ended in {} s\n", name,
             deadline().count());
  std::fflush(nullptr);
  std::_Exit(exit_hangs);
}

bool only_lists(int count, char** arguments) {
  return std::any_of(arguments + 1, arguments + count,
                     [](std::string_view argument) { return argument == "--gtest_list_tests"; });
}

int run(int count, char** arguments) {
  const auto names = drivers_asked_for(count, arguments);
  auto drivers =
      select_drivers(names, only_lists(count, arguments) ? presence::assumed : presence::proven);
  if (!drivers) {
    fmt::print(stderr, "{}\n", drivers.error().to_string());
    return exit_usage;
  }
  if (drivers->here.empty()) {
    for (const auto& missing : drivers->absent) {
      fmt::print(stderr, "{} is not here: {}\n", missing.name, missing.reason);
    }
    // A runtime that found no device may leave memory behind, which is not for us to report.
    std::fflush(nullptr);
    std::_Exit(exit_absent);
  }
  instantiated_drivers() = drivers->here;
  testing::InitGoogleMock(&count, arguments);
  if (count > 1) {
    fmt::print(stderr, "unknown argument: {}\n", arguments[1]);
    return exit_usage;
  }
  watchdog dog(deadline(), say_that_it_hangs);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  listeners.Append(std::make_unique<reporter>(std::move(drivers->absent), dog).release());
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace berth::conformance

int main(int argc, char** argv) {
  return berth::conformance::run(argc, argv);
}
