// SPDX-License-Identifier: Apache-2.0
#include "cmd_analyze.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <ostream>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text.hpp"
#include "diagnose/diagnosis.hpp"
#include "machine/model.hpp"
#include "machine_input.hpp"
#include "report/model.hpp"
#include "trace/import/import.hpp"
#include "trace/import/recording.hpp"

namespace berth::cli {
namespace {

// What is known of where the traces were made.
struct known_machine {
  const machine::survey* seen = nullptr;    // null: nothing
  const machine::model* profile = nullptr;  // null: that of the GPU's name
};

// A profile of another GPU would make every expectation wrong.
bool fits(const machine::model& profile, const trace::metadata& about) {
  const auto is_named = [&](const auto& device) {
    return std::find(profile.device_names.begin(), profile.device_names.end(), device.name) !=
           profile.device_names.end();
  };
  return profile.device_names.empty() ||
         std::any_of(about.devices.begin(), about.devices.end(), is_named);
}

report::trace_report analyze_file(const std::string& file, const known_machine& on,
                                  const streams& io) {
  report::trace_report shown;
  shown.file = file;
  progress_line progress(io, "reading " + file);
  auto read = trace::try_import(file, {.progress = [&](std::uint64_t done, std::uint64_t total) {
                                  progress.update(done, total);
                                }});
  if (!read) {
    shown.failure = read.error();
    return shown;
  }
  const bool has_profile = on.profile != nullptr && fits(*on.profile, read->events.about);
  if (on.profile != nullptr && !has_profile) {
    read->events.about.notes.push_back(
        fmt::format("The profile is of {}, which is none of this trace's GPUs: it was not used.",
                    text::printable(fmt::format("{}", fmt::join(on.profile->device_names, ", ")))));
  }
  shown.diagnosis =
      diagnose::diagnose(read->events, has_profile ? &on.profile->profile : nullptr, on.seen);
  shown.about = std::move(read->events.about);
  shown.cut = std::move(read->cut);
  return shown;
}

// The recordings in a folder, by name.
result<std::vector<std::string>> recordings_in(const std::string& folder) {
  std::error_code failure;
  std::vector<std::string> found;
  for (auto entry = std::filesystem::directory_iterator(folder, failure);
       !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && trace::is_recording_file(entry->path().string())) {
      found.push_back(entry->path().string());
    }
  }
  if (failure) {
    return error(errc::file_unreadable, failure.message(), folder);
  }
  if (found.empty()) {
    return error(errc::file_unreadable, "a folder without a recording of berth run", folder,
                 "name the traces in it one by one, if they are others'");
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Processes that copied nothing and started no kernel: a launcher, a shell, workers that load data.
bool is_quiet(const report::trace_report& shown) {
  const auto& totals = shown.diagnosis.totals;
  const bool is_whole =
      !shown.failure && (!shown.cut || shown.cut->why.code() == errc::input_truncated);
  return is_whole && totals.devices == 0 && totals.launches == 0 &&
         shown.diagnosis.findings.empty();
}

// Ranks in their order, then processes in the order of their begin.
bool stands_before(const report::trace_report& a, const report::trace_report& b) {
  const auto key = [](const report::trace_report& shown) {
    const auto begin = shown.about.facts.find("process.begin_monotonic_ns");
    const std::string_view time =
        begin != shown.about.facts.end() ? std::string_view(begin->second) : std::string_view();
    return std::tuple(shown.about.rank.value_or(std::numeric_limits<std::int64_t>::max()),
                      time.size(), time);
  };
  return key(a) < key(b);
}

void analyze_folder(const std::string& folder, const known_machine& on, const streams& io,
                    report::document& into) {
  const auto files = recordings_in(folder);
  if (!files) {
    into.traces.push_back({});
    into.traces.back().file = folder;
    into.traces.back().failure = files.error();
    return;
  }
  std::vector<report::trace_report> reports;
  for (const auto& file : *files) {
    auto shown = analyze_file(file, on, io);
    if (is_quiet(shown)) {
      const auto program = shown.about.facts.find("process.program");
      into.quiet.push_back(
          {file, program != shown.about.facts.end() ? program->second : std::string()});
    } else {
      reports.push_back(std::move(shown));
    }
  }
  std::stable_sort(reports.begin(), reports.end(), stands_before);
  std::move(reports.begin(), reports.end(), std::back_inserter(into.traces));
}

report::document analyze_all(const std::vector<std::string>& files, const known_machine& on,
                             const streams& io) {
  report::document shown;
  for (const auto& file : files) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored)) {
      analyze_folder(file, on, io, shown);
    } else {
      shown.traces.push_back(analyze_file(file, on, io));
    }
  }
  return shown;
}

void show_failures(const report::document& shown, const streams& io) {
  for (const auto& one : shown.traces) {
    if (one.failure) {
      show_error(io.err, *one.failure);
    } else if (one.cut) {
      show_error(io.err, one.cut->why);
    }
  }
}

exit_status status_of(const report::document& shown, analyze_check check) {
  const auto any = [&](auto condition) {
    return std::any_of(shown.traces.begin(), shown.traces.end(), condition);
  };
  if (any([](const auto& one) { return one.failure || one.cut; })) {
    return exit_status::unusable;
  }
  const bool fault =
      any([](const auto& one) { return one.diagnosis.worst == diagnose::severity::fault; });
  return fault && check == analyze_check::on ? exit_status::fault_found : exit_status::done;
}

error usage(std::string message, const std::string& where, std::string hint) {
  return error(errc::usage, std::move(message), where, std::move(hint));
}

// What makes no sense before any file is read.
std::optional<error> contradiction(const analyze_options& options) {
  for (const auto& file : options.files) {
    if (file == "-") {
      return usage("- does not stand for standard input", {}, "name it /dev/stdin");
    }
    if (would_replace(file, options.output)) {
      return usage("the report would replace the trace that it is about", options.output,
                   "name another file for --output");
    }
  }
  for (const auto& file : options.machine) {
    if (would_replace(file, options.output)) {
      return usage("the report would replace the machine that it is about", options.output,
                   "name another file for --output");
    }
  }
  return std::nullopt;
}

}  // namespace

exit_status run_analyze(const analyze_options& options, std::istream& in, const streams& io) {
  if (const auto why = contradiction(options)) {
    show_error(io.err, *why);
    return exit_status::wrong_usage;
  }
  std::optional<machine::survey> on;
  if (!options.machine.empty()) {
    auto read = read_machine_files(options.machine, in);
    if (!read) {
      return refuse(io, read.error());
    }
    if (describes_nothing(*read)) {
      return refuse(io, nothing_described(options.machine.front()));
    }
    on = std::move(*read);
  }
  std::optional<machine::model> profile;
  if (!options.profile.empty()) {
    auto read = machine::try_load_model(options.profile);
    if (!read) {
      return refuse(io, read.error());
    }
    profile = std::move(*read);
  }
  const auto shown = analyze_all(
      options.files, {.seen = on ? &*on : nullptr, .profile = profile ? &*profile : nullptr}, io);
  show_failures(shown, io);
  const bool nothing_read =
      shown.quiet.empty() && std::all_of(shown.traces.begin(), shown.traces.end(),
                                         [](const auto& one) { return one.failure.has_value(); });
  // Text about failures alone would only repeat what stands on standard error.
  if (!nothing_read || options.format == output_format::json) {
    const bool to_file = !options.output.empty();
    const auto text = options.format == output_format::json
                          ? report::to_json(shown)
                          : report::to_text(shown, to_file ? report::colour::off : io.colours);
    if (auto written = write_output(io, options.output, text); !written) {
      show_error(io.err, written.error());
      return exit_status::unusable;
    }
  }
  return status_of(shown, options.check);
}

}  // namespace berth::cli
