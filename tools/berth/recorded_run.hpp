// SPDX-License-Identifier: Apache-2.0
// A program that runs with the recorder preloaded: what must be right before it starts, and the
// run.
#pragma once

#include <filesystem>
#include <optional>

#include "cli.hpp"
#include "cmd_run.hpp"
#include "core/program.hpp"
#include "core/temporary_folder.hpp"
#include "interpose/program_check.hpp"
#include "interpose/recording_files.hpp"

namespace berth::cli {

// What is known before the program starts.
struct prepared_run {
  interpose::checked_program program;
  std::filesystem::path recorder;
  interpose::recording_options recording;
  int toggle = 0;  // the number of the signal that switches the recording; 0: none
  std::optional<temporary_folder> scratch;
  interpose::recording_files files;
};

// Warns of a program that cannot be recorded but may start some that can. @errors what is wrong
[[nodiscard]] result<prepared_run> prepare_run(const run_options& options, const streams& io);

// Blocks until the program has ended; an earlier recording of the same name is removed first.
[[nodiscard]] result<program::ending> run_program(const run_options& options, prepared_run& run,
                                                  const program::held_signals& signals,
                                                  const streams& io);

}  // namespace berth::cli
