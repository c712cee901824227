// SPDX-License-Identifier: Apache-2.0
// `berth run`: runs a program with the recorder preloaded and says why its copies are slow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli.hpp"
#include "cmd_analyze.hpp"
#include "emulated_machine.hpp"
#include "interpose/launch.hpp"

namespace berth::cli {

// The options of a recording as they are typed; what is empty was not given.
struct recording_words {
  std::string device_times = "auto";
  std::string stacks = "auto";
  std::string delay;
  std::string duration;
  std::string signal;
  interpose::contents content = interpose::contents::unread;
  interpose::children children = interpose::children::recorded;
  interpose::copies copies = interpose::copies::left_alone;
  interpose::freed_pinned pinned = interpose::freed_pinned::given_back;
};
// @errors usage
[[nodiscard]] result<interpose::recording_options> recording_options_of(
    const recording_words& words);

struct run_options {
  std::string record;  // a pattern or a folder; empty: recordings go after the report
  std::optional<emulated_machine> emulate;
  recording_words recording;
  output_format format = output_format::text;
  std::string output;  // a file for the report; empty for standard error
  analyze_check check = analyze_check::off;
  unsigned pairs = 0;                // that are compared, with and without --fix; 0: one run
  std::vector<std::string> program;  // with its arguments
};

// Blocks until the program has ended and the report is written. The program's own exit status, 128
// and the signal's number if one has ended it; or one of exit_status: where it could not be
// started, and with `check` where the program has succeeded.
[[nodiscard]] int run_run(const run_options& options, const streams& io);

}  // namespace berth::cli
