// SPDX-License-Identifier: Apache-2.0
#include "cmd_run.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/program.hpp"
#include "core/text.hpp"
#include "recorded_run.hpp"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

// --- After it -----------------------------------------------------------------------------------

// Programs that start others where our environment does not reach.
constexpr std::array<std::string_view, 14> launchers = {
    "docker", "podman", "apptainer", "singularity", "nerdctl", "kubectl", "srun",
    "sbatch", "ssh",    "sudo",      "su",          "mpirun",  "mpiexec", "systemd-run"};

bool disk_is_full(const fs::path& folder) {
  struct statvfs about {};
  return ::statvfs(folder.c_str(), &about) == 0 && about.f_bavail == 0;
}

struct explanation {
  std::string why;
  std::string what_to_do;
};

explanation why_nothing_was_recorded(const prepared_run& run, const program::ending& end) {
  const auto name = text::printable(run.program.path.filename().string());
  std::error_code ignored;
  if (!fs::is_directory(run.files.folder(), ignored)) {
    return {fmt::format("the folder {} is gone", text::printable(run.files.folder().string())),
            "record into a folder that the program leaves alone"};
  }
  if (disk_is_full(run.files.folder())) {
    return {fmt::format("the disk of {} is full", text::printable(run.files.folder().string())),
            "--record FILE names another place"};
  }
  if (run.program.obstacle) {
    return {fmt::format("{} {}, and no program that it started used a GPU runtime", name,
                        run.program.obstacle->why),
            run.program.obstacle->what_to_do};
  }
  if (end.signal != 0) {
    return {fmt::format("{} was ended by signal {} ({}) before it loaded a GPU runtime", name,
                        end.signal,
                        ::strsignal(end.signal)),  // NOLINT(concurrency-mt-unsafe)
            end.signal == SIGKILL
                ? "the system kills so when memory is short: its log (dmesg) says it"
                : ""};
  }
  if (std::find(launchers.begin(), launchers.end(), name) != launchers.end()) {
    return {fmt::format("{} starts programs where its environment does not reach", name),
            "berth env prints what to hand on, for docker, Slurm and MPI: berth env --help"};
  }
  if (end.exit_status != 0) {
    return {fmt::format("{} ended with status {} before it loaded a GPU runtime", name,
                        end.exit_status),
            "its own messages say why"};
  }
  return {fmt::format("neither {} nor a program that it started used a GPU runtime (libamdhip64, "
                      "libcuda)",
                      name),
          "if it uses the GPU all the same, it clears LD_PRELOAD or hides the runtime: see "
          "docs/recording.md, \"When nothing is recorded\""};
}

// The status of the whole run: the program's own, unless only the check objects.
int status_of_run(const program::ending& end, exit_status report, analyze_check check) {
  const int own = end.shell_status();
  return own == 0 && check == analyze_check::on ? static_cast<int>(report) : own;
}

// Several recordings in a folder of their own are read as one job.
exit_status report_on(const std::vector<std::string>& files, const prepared_run& run,
                      const run_options& options, const streams& io) {
  const bool is_job = files.size() > 1 && run.scratch;
  std::istringstream no_input;  // that is the program's
  return run_analyze({.files = is_job ? std::vector{run.files.folder().string()} : files,
                      .format = options.format,
                      .output = options.output,
                      .check = options.check},
                     no_input, all_on_error(io));
}

void name_recordings(const std::vector<std::string>& files, const streams& io) {
  constexpr std::size_t most_named = 8;
  io.err << fmt::format(
      "\nRecorded {}.\nOnce more: berth analyze",
      files.size() == 1 ? "1 process" : fmt::format("{} processes", files.size()));
  for (std::size_t index = 0; index < std::min(files.size(), most_named); ++index) {
    io.err << ' ' << text::shell_word(text::printable(files[index]));
  }
  io.err << (files.size() > most_named ? " ...\n" : "\n");
  io.err.flush();
}

}  // namespace

result<interpose::recording_options> recording_options_of(const recording_words& words) {
  interpose::recording_options made;
  made.content = words.content;
  made.children = words.children;
  made.pinned = words.pinned;
  made.copies = words.copies;
  const auto times = interpose::parse_device_times(words.device_times);
  const auto wanted_stacks = interpose::parse_stacks(words.stacks);
  if (!times || !wanted_stacks) {
    return !times ? times.error() : wanted_stacks.error();
  }
  made.device_times = *times;
  made.stacks = *wanted_stacks;
  for (const auto& [text, into] :
       {std::pair{&words.delay, &made.delay}, std::pair{&words.duration, &made.duration}}) {
    if (!text->empty()) {
      const auto parsed = interpose::parse_seconds(*text);
      if (!parsed) {
        return parsed.error();
      }
      *into = *parsed;
    }
  }
  if (!words.signal.empty()) {
    auto signal = interpose::parse_toggle_signal(words.signal);
    if (!signal) {
      return signal.error();
    }
    made.signal = std::move(signal->name);
  }
  return made;
}

int run_run(const run_options& options, const streams& io) {
  const program::held_signals signals;  // outlives the folder of temporary files
  auto run = prepare_run(options, io);
  if (!run) {
    return static_cast<int>(refuse(io, run.error()));
  }
  const auto end = run_program(options, *run, signals, io);
  if (!end) {
    return static_cast<int>(refuse(io, end.error()));
  }
  const program::held_signals_watch watch([&] {
    if (run->scratch) {
      run->scratch->remove();
    }
  });
  const auto files = run->files.made();
  if (files.empty()) {
    const auto [why, what_to_do] = why_nothing_was_recorded(*run, *end);
    io.err << "note: nothing was recorded: " << why << '\n';
    if (!what_to_do.empty()) {
      io.err << "hint: " << what_to_do << '\n';
    }
    return status_of_run(*end, exit_status::unusable, options.check);
  }
  const auto reported = report_on(files, *run, options, io);
  if (options.emulate) {
    io.err
        << "Note  On an emulated device times and rates are those of this machine's CPU: what the "
           "program\n      does is true, how long it takes is not a GPU's.\n";
  }
  if (!run->scratch) {
    name_recordings(files, io);
  }
  return status_of_run(*end, reported, options.check);
}

}  // namespace berth::cli
