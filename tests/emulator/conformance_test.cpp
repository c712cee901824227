// SPDX-License-Identifier: Apache-2.0
// The conformance suite over AMD's own runtime on emulated devices. Host functions stand in for
// berth's kernels (berth_kernels.cpp).
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/exceptions.hpp"
#include "emulator/machines.hpp"
#include "emulator/run_command.hpp"

namespace berth::test {
namespace {

std::string all_but_exceptions() {
  std::string filter = "*-";
  for (const auto& one : conformance_exceptions) {
    filter += fmt::format("{}/*:", one.test);
  }
  return filter;
}

command_end conformance(const emulated& on, const std::string& filter) {
  auto options = on.options();
  options.insert(options.end(), {"--kernels", BERTH_EMULATED_KERNELS});
  return emulate(options, {BERTH_CONFORMANCE, "--driver=hip", "--gtest_filter=" + filter},
                 std::chrono::seconds(550));
}

struct figures {
  int passed = 0;
  int failed = -1;
};

// The last line of the suite's own count: "hip   225   0   45".
figures counted(const std::string& text) {
  const std::regex line("\\nhip +([0-9]+) +([0-9]+) +[0-9]+\\n");
  std::smatch found;
  figures counts;
  if (std::regex_search(text, found, line)) {
    counts = {.passed = std::stoi(found[1]), .failed = std::stoi(found[2])};
  }
  return counts;
}

void expect_all_pass(const emulated& on) {
  const auto end = conformance(on, all_but_exceptions());
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  const auto counts = counted(end.out);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_GT(counts.passed, 200) << "most cases are for every driver";
}

TEST(Conformance, PassesOnOneDevice) {
  BERTH_REQUIRE_ROCM();
  expect_all_pass({.name = "mi210", .machine = "mi210"});
}

// With peers, and with fine-grained memory, which AMD gives to devices of a hive only.
TEST(Conformance, PassesOnTwoDevicesOfAHive) {
  BERTH_REQUIRE_ROCM();
  expect_all_pass({.name = "hive", .machine = "mi100-node", .gpus = 2});
}

class ConformanceException : public testing::TestWithParam<conformance_exception> {};

TEST_P(ConformanceException, IsStillNeeded) {
  BERTH_REQUIRE_ROCM();
  const auto& exception = GetParam();
  const auto shown = emulate({}, {program_path(fmt::format("hip_{}", exception.program))});
  if (exception.when == failing::at_times && shown.status == 0) {
    GTEST_SKIP() << exception.program << " has not shown the fault this time";
  }
  EXPECT_NE(shown.status, 0) << exception.program << " no longer shows the fault: drop it\n"
                             << shown.out << shown.err;
  if (exception.when == failing::always) {
    const auto end =
        conformance({.name = "mi210", .machine = "mi210"}, fmt::format("{}/*", exception.test));
    EXPECT_NE(end.status, 0) << exception.test << " passes: drop the exception";
  }
}

INSTANTIATE_TEST_SUITE_P(Emulator, ConformanceException, testing::ValuesIn(conformance_exceptions),
                         [](const auto& given) { return std::string(given.param.program); });

TEST(ConformanceExceptions, StandInTheDocumentation) {
  static_assert(conformance_exceptions.size() <= 5);
  std::ifstream file(BERTH_SOURCE_DIR "/docs/emulator.md");
  std::ostringstream text;
  text << file.rdbuf();
  const auto documented = text.str();
  for (const auto& one : conformance_exceptions) {
    const auto program = fmt::format("tests/emulator/programs/{}.cpp", one.program);
    EXPECT_NE(documented.find(one.test), std::string::npos) << one.test;
    EXPECT_NE(documented.find(program), std::string::npos) << program;
  }
}

}  // namespace
}  // namespace berth::test
