// SPDX-License-Identifier: Apache-2.0
#include "cmd_run_both.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/statistics.hpp"
#include "diagnose/workload.hpp"
#include "recorded_run.hpp"
#include "trace/import/import.hpp"

namespace berth::cli {
namespace {

using interpose::copies;
using json = nlohmann::ordered_json;

enum way : std::size_t { plain, fixed, way_count };
constexpr std::array<std::string_view, way_count> way_names{"plain", "fixed"};

// One row of the comparison; all are times in ns.
enum item : std::size_t { whole, to_device, to_host, item_count };
constexpr std::array<std::string_view, item_count> item_names{
    "program", "pageable copies to the GPU", "pageable copies to the host"};
constexpr std::array<std::string_view, item_count> item_keys{"program", "to_device", "to_host"};

struct one_run {
  std::array<double, item_count> time_ns{};
  std::array<bytes_t, item_count> bytes{};
  std::uint64_t fixed_copies = 0;
  bool has_times = true;  // of all copies
};

// Of pageable memory alone: nothing else is changed.
void add_copies(const trace::trace& events, one_run& into) {
  const diagnose::workload work(events, nullptr);
  for (const auto& one : work.copies()) {
    const auto& details = *one.details;
    const bool is_host_copy = details.direction == direction::host_to_device ||
                              details.direction == direction::device_to_host;
    if (!is_host_copy || details.host_kind() != memory_kind::pageable) {
      continue;
    }
    const auto row = details.direction == direction::host_to_device ? to_device : to_host;
    into.time_ns[row] += static_cast<double>(one.working_ns());
    into.bytes[row] += details.bytes.value_or(0);
    into.fixed_copies += details.by == trace::carrier::copy_engine ? 1 : 0;
    into.has_times = into.has_times && one.has_time();
  }
}

struct ended_run {
  program::ending end;
  one_run seen;
};

result<ended_run> run_once(run_options options, copies how, const program::held_signals& signals,
                           const streams& io) {
  options.recording.copies = how;
  auto run = prepare_run(options, io);
  if (!run) {
    return run.error();
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto end = run_program(options, *run, signals, io);
  const auto took = std::chrono::steady_clock::now() - begin;
  if (!end) {
    return end.error();
  }
  ended_run ended{.end = *end, .seen = {}};
  ended.seen.time_ns[whole] = static_cast<double>(took / std::chrono::nanoseconds(1));
  for (const auto& file : run->files.made()) {
    const auto read = trace::try_import(file, {});
    if (!read) {
      return read.error();
    }
    add_copies(read->events, ended.seen);
  }
  return ended;
}

using runs = std::array<std::vector<one_run>, way_count>;

std::vector<double> times_of(const std::vector<one_run>& all, item row) {
  std::vector<double> times;
  times.reserve(all.size());
  for (const auto& one : all) {
    times.push_back(one.time_ns[row]);
  }
  return times;
}

// Of each pair: how long the fixed run took of what the plain one beside it took.
std::vector<double> ratios_of(const runs& all, item row) {
  std::vector<double> ratios;
  for (std::size_t pair = 0; pair < all[plain].size(); ++pair) {
    const auto before = all[plain][pair].time_ns[row];
    if (before > 0) {
      ratios.push_back(all[fixed][pair].time_ns[row] / before);
    }
  }
  return ratios;
}

std::string duration_of(double time_ns) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(time_ns)));
}

std::string cell_of(const std::vector<one_run>& all, item row) {
  const auto time = statistics::median(times_of(all, row)).value_or(0);
  const auto bytes = all.front().bytes[row];
  const auto rate =
      row != whole && time > 0 ? ", " + format_rate(static_cast<double>(bytes) / time) : "";
  return duration_of(time) + rate;
}

std::string text_row(const runs& all, item row) {
  const auto ratio = statistics::summarise(ratios_of(all, row));
  if (!ratio) {
    return fmt::format("{:<28}none\n", item_names[row]);
  }
  return fmt::format("{:<28}{:<24}{:<24}{:.3f} ({:.3f} to {:.3f})\n", item_names[row],
                     cell_of(all[plain], row), cell_of(all[fixed], row), ratio->median,
                     ratio->minimum, ratio->maximum);
}

bool has_all_times(const runs& all) {
  return std::ranges::all_of(all, [](const std::vector<one_run>& side) {
    return std::ranges::all_of(side, [](const one_run& one) { return one.has_times; });
  });
}

std::vector<std::string> doubts_about(const run_options& options, const runs& all) {
  std::vector<std::string> notes;
  if (all[fixed].front().fixed_copies == 0) {
    notes.emplace_back(
        "no copy was fixed: berth run --fix -- PROGRAM says why each was left to the runtime");
  }
  if (!has_all_times(all)) {
    notes.emplace_back("some copies have no time of their own: the program's time counts");
  }
  if (options.emulate) {
    notes.emplace_back("on an emulated device times are those of this machine's CPU, not a GPU's");
  }
  return notes;
}

std::string to_text(const run_options& options, const runs& all) {
  auto text = fmt::format(
      "With and without --fix, {} in turns (medians; ratio of each pair)\n\n"
      "{:<28}{:<24}{:<24}ratio\n",
      all[plain].size() == 1 ? "1 pair" : fmt::format("{} pairs", all[plain].size()), "",
      way_names[plain], way_names[fixed]);
  for (const auto row : {whole, to_device, to_host}) {
    text += text_row(all, row);
  }
  text += fmt::format("\ncopies fixed: {} a run\n", all[fixed].front().fixed_copies);
  for (const auto& note : doubts_about(options, all)) {
    text += "note: " + note + '\n';
  }
  return text;
}

std::string to_json(const run_options& options, const runs& all) {
  json made{{"schema", "berth.ab/1"}, {"pairs", all[plain].size()}, {"program", options.program}};
  for (const auto row : {whole, to_device, to_host}) {
    json figures;
    for (const auto side : {plain, fixed}) {
      figures[way_names[side]] = {{"times_ns", times_of(all[side], row)},
                                  {"bytes", all[side].front().bytes[row]}};
    }
    const auto ratio = statistics::median(ratios_of(all, row));
    figures["ratio"] = ratio ? json(*ratio) : json(nullptr);
    made[item_keys[row]] = std::move(figures);
  }
  made["fixed_copies"] = all[fixed].front().fixed_copies;
  made["notes"] = doubts_about(options, all);
  return made.dump(2) + "\n";
}

}  // namespace

int run_both_ways(const run_options& options, const streams& io) {
  const program::held_signals signals;
  std::ostringstream said_before;  // notes on each run are the same
  const streams quiet{.out = io.out, .err = said_before};
  runs all;
  for (unsigned pair = 0; pair < options.pairs; ++pair) {
    for (const auto side : pair % 2 == 0 ? std::array{plain, fixed} : std::array{fixed, plain}) {
      const auto how = side == plain ? copies::never_fixed : copies::fixed;
      const auto ended = run_once(options, how, signals, all[plain].empty() ? io : quiet);
      if (!ended) {
        return static_cast<int>(refuse(io, ended.error()));
      }
      if (const int status = ended->end.shell_status(); status != 0) {
        io.err << fmt::format(
            "note: the {} run of pair {} ended with status {}: nothing is compared\n",
            way_names[side], pair + 1, status);
        return status;
      }
      all[side].push_back(ended->seen);
    }
  }
  const auto out = all_on_error(io);
  const auto text =
      options.format == output_format::json ? to_json(options, all) : to_text(options, all);
  if (const auto written = write_output(out, options.output, text); !written) {
    return static_cast<int>(refuse(io, written.error()));
  }
  return static_cast<int>(exit_status::done);
}

}  // namespace berth::cli
