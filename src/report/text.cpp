// SPDX-License-Identifier: Apache-2.0
// The report as text for a terminal.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "core/text.hpp"
#include "diagnose/rule.hpp"
#include "report/page.hpp"
#include "report/render.hpp"

namespace berth::report {
namespace {

using diagnose::finding;
using diagnose::severity;
using std::chrono::nanoseconds;

std::string duration(std::int64_t time_ns) {
  return format_duration(nanoseconds(time_ns));
}

std::string share(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) {
    return "-";
  }
  const double value = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return value > 0 && value < 9.95 ? fmt::format("{:.1f} %", value)
                                   : fmt::format("{:.0f} %", value);
}

style style_of(severity value) noexcept {
  switch (value) {
    case severity::fault:
      return style::red;
    case severity::advice:
      return style::yellow;
    case severity::note:
      break;
  }
  return style::green;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (auto& c : result) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return result;
}

std::string value_of(const diagnose::measure& shown) {
  switch (shown.unit) {
    case diagnose::unit::bytes:
      return format_bytes(static_cast<bytes_t>(shown.value));
    case diagnose::unit::nanoseconds:
      return duration(static_cast<std::int64_t>(shown.value));
    case diagnose::unit::gb_per_s:
      return format_rate(shown.value);
    case diagnose::unit::share:
      return fmt::format("{:.1f} %", shown.value * 100);
    case diagnose::unit::count:
      break;
  }
  return fmt::format("{:.0f}", shown.value);
}

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string source_words(const trace_report& shown) {
  const auto& about = shown.about;
  auto text = fmt::format("{}, {}", about.format, counted(shown.diagnosis.totals.events, "event"));
  if (about.rank) {
    text += fmt::format(", rank {}", *about.rank);
  }
  if (!about.devices.empty()) {
    text += fmt::format(", {}{}",
                        about.devices.size() > 1 ? fmt::format("{} x ", about.devices.size()) : "",
                        text::printable(about.devices.front().name));
  }
  if (about.api != trace::gpu_api::unknown) {
    text += about.api == trace::gpu_api::hip ? ", HIP" : ", CUDA";
    text += about.api_version.empty() ? "" : " " + about.api_version;
  }
  return text;
}

void put_cut(page& out, const trace_report& shown) {
  if (!shown.cut) {
    return;
  }
  out.block("CUT",
            fmt::format("{}. {} whole events were read and are what follows; {} {} lost. [{}]",
                        text::printable(shown.cut->why.message()), shown.cut->whole_events,
                        counted(shown.cut->lost_bytes, "byte"),
                        shown.cut->lost_bytes == 1 ? "is" : "are", shown.cut->why.id()),
            style::red);
}

// Findings may share copies, so that their savings don't add up: say what they give together.
void put_combined_saving(page& out, const diagnose::diagnosis& shown) {
  const auto gaining = std::count_if(shown.findings.begin(), shown.findings.end(),
                                     [](const finding& one) { return !one.gains.empty(); });
  if (gaining > 1) {
    out.block("", fmt::format("All fixes together would save at most {} of {}.",
                              duration(shown.saving_ns), duration(shown.totals.span_ns)));
  }
}

// "Copy time is 91 % of kernel time; 0 % of it runs beside kernels."
std::string ratio_words(const diagnose::totals& totals) {
  if (totals.kernel_busy_ns <= 0) {
    return totals.launches > 0 ? "When kernels ran is not known: only their launches are."
                               : "There are copies but no kernels.";
  }
  constexpr std::int64_t readable = 10;  // beyond 1000 % a factor says more
  const auto compared =
      totals.copy_busy_ns / readable < totals.kernel_busy_ns
          ? share(totals.copy_busy_ns, totals.kernel_busy_ns) + " of"
          : fmt::format("{:.0f} times the", static_cast<double>(totals.copy_busy_ns) /
                                                static_cast<double>(totals.kernel_busy_ns));
  return fmt::format("Copy time is {} kernel time; {} of it runs beside kernels.", compared,
                     share(totals.copy_beside_kernels_ns, totals.copy_busy_ns));
}

void put_device_totals(page& out, const diagnose::totals& totals, std::int64_t all) {
  out.line(fmt::format("GPU span {}   kernels {} ({})   copies {} ({})   GPU busy {}",
                       duration(totals.span_ns), duration(totals.kernel_busy_ns),
                       share(totals.kernel_busy_ns, all), duration(totals.copy_busy_ns),
                       share(totals.copy_busy_ns, all), share(totals.busy_ns, all)));
}

std::string time_of(const diagnose::copy_group& group) {
  return group.without_time == group.count ? "unknown" : duration(group.time_ns);
}

void put_copies(page& out, const diagnose::totals& totals) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [label, group] : labelled(totals)) {
    const auto rate = group.rate();
    std::string bytes = group.without_bytes == group.count ? "unknown" : format_bytes(group.bytes);
    if (group.without_bytes > 0 && group.without_bytes < group.count) {
      bytes += fmt::format(" + {} unknown", group.without_bytes);
    }
    rows.push_back({label, fmt::format("{}", group.count), std::move(bytes), time_of(group),
                    rate ? format_rate(*rate) : "unknown"});
  }
  out.table({{"Copies", align::left},
             {"count", align::right},
             {"bytes", align::right},
             {"time", align::right},
             {"rate", align::right}},
            rows);
}

void put_totals(page& out, const diagnose::totals& totals) {
  if (totals.devices == 0) {
    return;
  }
  const auto all = totals.span_ns * static_cast<std::int64_t>(totals.devices);
  if (totals.has_device_times()) {
    put_device_totals(out, totals, all);
  } else {
    out.line(fmt::format("Recorded span {}   calls blocked in copies {} ({})",
                         duration(totals.span_ns), duration(totals.copy_busy_ns),
                         share(totals.copy_busy_ns, all)));
  }
  if (totals.copies.empty()) {
    return;
  }
  out.line(ratio_words(totals));
  out.line();
  put_copies(out, totals);
}

std::string_view noun_of(const diagnose::place& where) {
  if (where.what == diagnose::counted::calls) {
    return where.count == 1 ? "call" : "calls";
  }
  return where.count == 1 ? "copy" : "copies";
}

void put_finding(page& out, const finding& shown) {
  constexpr std::size_t label = 10;
  constexpr std::size_t indent = 2;
  const auto* const rule = diagnose::find_rule(shown.rule);
  out.line();
  out.block(upper(to_string(shown.severity)),
            fmt::format("{} [{}]", rule != nullptr ? rule->title : "", shown.rule),
            style_of(shown.severity), 8);
  const auto put = [&](std::string_view name, std::string_view text) {
    out.block(name, text, style::faint, label, indent);
  };
  put("", shown.headline);
  std::string evidence;
  for (const auto& one : shown.evidence) {
    evidence += evidence.empty() ? "" : ", ";
    evidence += fmt::format("{} {}", one.name, value_of(one));
    if (one.known != provenance::measured) {
      evidence += fmt::format(" ({})", to_string(one.known));
    }
  }
  put("evidence", evidence);
  for (std::size_t index = 0; index < shown.places.size(); ++index) {
    const auto& place = shown.places[index];
    put(index == 0 ? "where" : "",
        fmt::format("{}: {} {}, {}, {}", text::printable(place.where), place.count, noun_of(place),
                    place.bytes ? format_bytes(*place.bytes) : "bytes unknown",
                    duration(place.time_ns)));
  }
  if (shown.saving && shown.saving->time_ns == 0) {
    put("saving", fmt::format("none: {}", shown.saving->basis));
  } else if (shown.saving) {
    put("saving", fmt::format("{} {} ({}: {})",
                              shown.saving->bound == diagnose::bound::at_most ? "at most" : "about",
                              duration(shown.saving->time_ns), to_string(shown.saving->known),
                              shown.saving->basis));
  } else {
    put("saving", "unknown: it cannot be computed from what is known");
  }
  for (std::size_t index = 0; index < shown.fix.size(); ++index) {
    put(index == 0 ? "fix" : "", shown.fix[index]);
  }
  put("more", fmt::format("docs/rules/{}.md", shown.rule));
}

std::string as_sentence(std::string text) {
  if (!text.empty() && !text.ends_with('.')) {
    text += '.';
  }
  return text;
}

void put_notes(page& out, const trace_report& shown) {
  std::vector<std::string> notes(shown.about.notes);
  notes.insert(notes.end(), shown.diagnosis.notes.begin(), shown.diagnosis.notes.end());
  if (!shown.diagnosis.totals.copies.empty()) {
    notes.push_back(fmt::format("Expected rates rest on {}", shown.diagnosis.expectation_basis));
  }
  if (!notes.empty()) {
    out.line();
  }
  for (auto& note : notes) {
    out.block("Note", text::printable(as_sentence(std::move(note))), style::faint, 6);
  }
}

void put_trace(page& out, const trace_report& shown) {
  if (shown.failure) {
    out.block("ERROR", text::printable(shown.failure->to_string()), style::red);
    return;
  }
  out.block("TRACE", text::printable(shown.file), style::bold);
  out.block("", source_words(shown));
  put_cut(out, shown);
  out.line();
  out.block("VERDICT", shown.diagnosis.verdict, style_of(shown.diagnosis.worst));
  put_combined_saving(out, shown.diagnosis);
  out.line();
  put_totals(out, shown.diagnosis.totals);
  for (const auto& one : shown.diagnosis.findings) {
    put_finding(out, one);
  }
  put_notes(out, shown);
}

// "Recorded without copies or kernels: 3 processes (bash, 2 x python3)."
void put_quiet(page& out, const document& shown) {
  if (shown.quiet.empty()) {
    return;
  }
  std::map<std::string, std::uint64_t> programs;
  for (const auto& one : shown.quiet) {
    ++programs
        [std::filesystem::path(one.program.empty() ? one.file : one.program).filename().string()];
  }
  std::string names;
  for (const auto& [name, count] : programs) {
    names += names.empty() ? "" : ", ";
    names += count > 1 ? fmt::format("{} x {}", count, name) : name;
  }
  out.block("ALSO", text::printable(fmt::format(
                        "Recorded without copies or kernels: {} process{} ({}).",
                        shown.quiet.size(), shown.quiet.size() == 1 ? "" : "es", names)));
}

}  // namespace

std::string to_text(const document& shown, colour colours) {
  page out(colours);
  for (std::size_t index = 0; index < shown.traces.size(); ++index) {
    if (index > 0) {
      out.line();
      out.line(std::string(page_width, '-'), style::faint);
    }
    put_trace(out, shown.traces[index]);
  }
  if (!shown.traces.empty() && !shown.quiet.empty()) {
    out.line();
  }
  put_quiet(out, shown);
  return out.take();
}

}  // namespace berth::report
