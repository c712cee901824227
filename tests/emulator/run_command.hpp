// SPDX-License-Identifier: Apache-2.0
// Runs a program, with a time limit, and keeps what it writes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace berth::test {

struct command_end {
  int status = -1;  // exit status; 128 + signal; -1: killed because it ran out of time
  std::string out;
  std::string err;
};

inline constexpr std::chrono::seconds usual_limit{90};

[[nodiscard]] command_end run_command(const std::vector<std::string>& words,
                                      std::chrono::seconds limit = usual_limit);

// `berth emulate OPTIONS -- PROGRAM`
[[nodiscard]] command_end emulate(const std::vector<std::string>& options,
                                  const std::vector<std::string>& program,
                                  std::chrono::seconds limit = usual_limit);

// "ASAN_OPTIONS=...": those of this process and more.
[[nodiscard]] std::string sanitizer_options(const std::string& more);

// The path of one of the test programs.
[[nodiscard]] std::string program_path(const std::string& name);

// Why programs of ROCm are not tested here: packages are missing, or are of a release that was not
// tried. Empty if they are.
[[nodiscard]] std::string missing_rocm();

}  // namespace berth::test

#define BERTH_REQUIRE_ROCM()                                                \
  if (const auto missing = berth::test::missing_rocm(); !missing.empty()) { \
    GTEST_SKIP() << missing;                                                \
  }
