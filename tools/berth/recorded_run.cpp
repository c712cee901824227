// SPDX-License-Identifier: Apache-2.0
#include "recorded_run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

// The program cannot be recorded: an error where no program that it starts can be, else a warning.
result<void> judge(const interpose::checked_program& program, interpose::children children,
                   const streams& io) {
  if (!program.obstacle) {
    return {};
  }
  const auto& found = *program.obstacle;
  if (!found.spares_children() || children == interpose::children::left_out) {
    return error(errc::gpu_not_supported, "cannot be recorded: it " + found.why,
                 found.program.string(), found.what_to_do);
  }
  io.err << fmt::format("warning: {} {}; only programs that it starts can be recorded\nhint: {}\n",
                        text::printable(found.program.string()), found.why, found.what_to_do);
  io.err.flush();
  return {};
}

// The report's place is tried before a long run, not after it.
result<void> try_output(const std::string& output, const std::string& recording) {
  if (output.empty()) {
    return {};
  }
  std::error_code ignored;
  const auto file = fs::absolute(output, ignored);
  if (file == recording) {
    return error(errc::usage, "the report would replace the recording that it is about", output,
                 "name another file for --output");
  }
  const auto folder = file.parent_path();
  const bool there = fs::exists(file, ignored);
  const auto& tried = there ? file : folder;
  if (fs::is_directory(file, ignored) || !fs::is_directory(folder, ignored) ||
      ::access(tried.c_str(), W_OK) != 0) {
    const int why = fs::is_directory(file, ignored) ? EISDIR : errno;
    return error(errc::file_unwritable, std::generic_category().message(why), output,
                 "name a file in a folder that exists and can be written");
  }
  return {};
}

}  // namespace

result<prepared_run> prepare_run(const run_options& options, const streams& io) {
  if (options.program.empty()) {
    return error(errc::usage, "no program to run", "berth run", "berth run -- ./program");
  }
  auto recording = recording_options_of(options.recording);
  if (!recording) {
    return recording.error();
  }
  auto program = interpose::check_program(options.program.front());
  if (!program) {
    return program.error();
  }
  if (auto judged = judge(*program, recording->children, io); !judged) {
    return judged.error();
  }
  auto recorder = interpose::find_recorder();
  if (!recorder) {
    return recorder.error();
  }
  if (const auto answer = interpose::try_preloading(*recorder); !answer) {
    return answer.error();
  }
  std::optional<temporary_folder> scratch;
  auto where = options.record;
  if (where.empty()) {
    auto made = temporary_folder::create("run");
    if (!made) {
      return made.error();
    }
    where = made->path().string();
    scratch.emplace(std::move(*made));
  }
  auto files = interpose::recording_files::prepare(where, program->path.filename().string());
  if (!files) {
    return files.error();
  }
  if (auto tried = try_output(options.output, files->pattern()); !tried) {
    return tried.error();
  }
  recording->file = files->pattern();
  const int toggle = recording->signal.empty()
                         ? 0
                         : interpose::parse_toggle_signal(recording->signal).value().number;
  return prepared_run{.program = std::move(*program),
                      .recorder = std::move(*recorder),
                      .recording = std::move(*recording),
                      .toggle = toggle,
                      .scratch = std::move(scratch),
                      .files = std::move(*files)};
}

result<program::ending> run_program(const run_options& options, prepared_run& run,
                                    const program::held_signals& signals, const streams& io) {
  // Not before all else is found right: an earlier recording is worth more than a run that is
  // refused.
  if (auto room = run.files.make_room(); !room) {
    return room.error();
  }
  program::start_request start{.words = options.program,
                               .environment = interpose::variables_of(run.recording),
                               .pid_variable = {},
                               .passed_signals = {}};
  // What an outer recording has set is not meant for this one.
  for (const auto& name : program::names_with("BERTH_RECORD_")) {
    const auto is_set = [&](const program::variable& one) { return one.name == name; };
    if (std::none_of(start.environment.begin(), start.environment.end(), is_set)) {
      start.environment.push_back({.name = name, .value = {}});
    }
  }
  if (run.recording.children == interpose::children::left_out) {
    start.pid_variable = interpose::only_process_variable;
  }
  if (run.toggle != 0) {
    start.passed_signals.push_back(run.toggle);
    io.err << fmt::format("note: kill -{} {} switches the recording\n", run.recording.signal,
                          ::getpid());
    io.err.flush();
  }
  if (options.emulate) {
    return run_on_emulated_machine(*options.emulate, std::move(start), {run.recorder}, signals, io);
  }
  start.environment.push_back(
      {.name = "LD_PRELOAD", .value = program::preload_list({&run.recorder, 1})});
  return program::run(start, signals);
}

}  // namespace berth::cli
