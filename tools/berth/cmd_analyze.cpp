// SPDX-License-Identifier: Apache-2.0
#include "cmd_analyze.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "diagnose/diagnosis.hpp"
#include "report/model.hpp"
#include "trace/import/import.hpp"

namespace berth::cli {
namespace {

report::trace_report analyze_file(const std::string& file, const streams& io) {
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
  shown.diagnosis = diagnose::diagnose(read->events);
  shown.about = std::move(read->events.about);
  shown.cut = std::move(read->cut);
  return shown;
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
    std::error_code ignored;
    if (!options.output.empty() && std::filesystem::is_regular_file(file, ignored) &&
        std::filesystem::equivalent(file, options.output, ignored)) {
      return usage("the report would replace the trace that it is about", options.output,
                   "name another file for --output");
    }
  }
  return std::nullopt;
}

}  // namespace

exit_status run_analyze(const analyze_options& options, const streams& io) {
  if (const auto why = contradiction(options)) {
    show_error(io.err, *why);
    return exit_status::wrong_usage;
  }
  report::document shown;
  for (const auto& file : options.files) {
    shown.traces.push_back(analyze_file(file, io));
    const auto& last = shown.traces.back();
    if (last.failure) {
      show_error(io.err, *last.failure);
    } else if (last.cut) {
      show_error(io.err, last.cut->why);
    }
  }
  const bool nothing_read = std::all_of(shown.traces.begin(), shown.traces.end(),
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
