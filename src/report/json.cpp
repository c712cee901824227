// SPDX-License-Identifier: Apache-2.0
// The report as JSON. docs/json-report.md is the description; a golden file holds it to its word.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "berth/version.hpp"
#include "report/render.hpp"

namespace berth::report {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema_version = 1;

// Microseconds, exact to the nanosecond: 117854.1 rather than 117854.09999999999.
double us(std::int64_t time_ns) {
  return static_cast<double>(time_ns) / 1e3;
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

json error_json(const error& shown) {
  return {{"id", shown.id()},
          {"message", shown.message()},
          {"where", shown.where()},
          {"hint", shown.hint()}};
}

json totals_json(const diagnose::totals& totals) {
  json copies = json::object();
  for (const auto& [label, group] : labelled(totals)) {
    const auto rate = group.rate();
    copies[label] = {{"direction", to_string(group.direction)},
                     {"source_kind", to_string(group.source)},
                     {"destination_kind", to_string(group.destination)},
                     {"count", group.count},
                     {"bytes", group.without_bytes == group.count ? json() : json(group.bytes)},
                     {"count_without_bytes", group.without_bytes},
                     {"count_without_time", group.without_time},
                     {"us", us(group.time_ns)},
                     {"GBps", rate ? json(rounded(*rate)) : json()}};
  }
  const auto ratio = static_cast<double>(totals.copy_busy_ns) /
                     static_cast<double>(std::max<std::int64_t>(1, totals.kernel_busy_ns));
  return {{"events", totals.events},
          {"devices", totals.devices},
          {"kernels", totals.kernels},
          {"fills", totals.fills},
          {"kernel_busy_us", us(totals.kernel_busy_ns)},
          {"gpu_span_us", us(totals.span_ns)},
          {"gpu_busy_us", us(totals.busy_ns)},
          {"copies", std::move(copies)},
          {"copy_busy_us", us(totals.copy_busy_ns)},
          {"copies_timed_by_calls", totals.timed_by_calls},
          {"copies_without_time", totals.without_time},
          {"copy_overlapped_with_kernels_us", us(totals.copy_beside_kernels_ns)},
          {"copy_to_kernel_ratio", totals.kernel_busy_ns > 0 ? json(rounded(ratio)) : json()}};
}

json evidence_json(const diagnose::measure& shown) {
  const auto common = [&](std::string_view unit, double value) {
    return json{
        {"name", shown.name}, {"value", value}, {"unit", unit}, {"known", to_string(shown.known)}};
  };
  switch (shown.unit) {
    case diagnose::unit::bytes:
      return common("bytes", shown.value);
    case diagnose::unit::nanoseconds:
      return common("us", shown.value / 1e3);
    case diagnose::unit::gb_per_s:
      return common("GB/s", rounded(shown.value));
    case diagnose::unit::share:
      return common("share", rounded(shown.value));
    case diagnose::unit::count:
      break;
  }
  return common("count", shown.value);
}

json finding_json(const diagnose::finding& shown) {
  json evidence = json::array();
  for (const auto& one : shown.evidence) {
    evidence.push_back(evidence_json(one));
  }
  json places = json::array();
  for (const auto& place : shown.places) {
    places.push_back({{"where", place.where},
                      {place.what == diagnose::counted::copies ? "copies" : "calls", place.count},
                      {"bytes", place.bytes ? json(*place.bytes) : json()},
                      {"us", us(place.time_ns)}});
  }
  json saved;
  if (shown.saving) {
    saved = {{"us", us(shown.saving->time_ns)},
             {"bound", shown.saving->bound == diagnose::bound::at_most ? "at_most" : "about"},
             {"known", to_string(shown.saving->known)},
             {"basis", shown.saving->basis}};
  }
  return {{"rule", shown.rule},
          {"severity", to_string(shown.severity)},
          {"headline", shown.headline},
          {"evidence", std::move(evidence)},
          {"places", std::move(places)},
          {"lost_us", us(shown.lost_ns)},
          {"saving", std::move(saved)},
          {"fix", shown.fix},
          {"documentation", "docs/rules/" + std::string(shown.rule) + ".md"}};
}

json trace_json(const trace_report& shown) {
  json about{{"file", shown.file}};
  if (shown.failure) {
    about["error"] = error_json(*shown.failure);
    return about;
  }
  json devices = json::array();
  for (const auto& device : shown.about.devices) {
    devices.push_back({{"index", device.index},
                       {"name", device.name},
                       {"memory_bytes", device.memory ? json(*device.memory) : json()}});
  }
  about["format"] = shown.about.format;
  about["api"] = shown.about.api == trace::gpu_api::hip    ? json("hip")
                 : shown.about.api == trace::gpu_api::cuda ? json("cuda")
                                                           : json();
  about["api_version"] = shown.about.api_version.empty() ? json() : json(shown.about.api_version);
  about["rank"] = shown.about.rank ? json(*shown.about.rank) : json();
  about["devices"] = std::move(devices);
  about["cut"] = json();
  if (shown.cut) {
    about["cut"] = error_json(shown.cut->why);
    about["cut"]["whole_events"] = shown.cut->whole_events;
    about["cut"]["lost_bytes"] = shown.cut->lost_bytes;
  }
  about["verdict"] = shown.diagnosis.verdict;
  about["severity"] =
      shown.diagnosis.findings.empty() ? json() : json(to_string(shown.diagnosis.worst));
  about["saving_us"] = us(shown.diagnosis.saving_ns);
  about["expectation_basis"] = shown.diagnosis.expectation_basis;
  about["totals"] = totals_json(shown.diagnosis.totals);
  about["findings"] = json::array();
  for (const auto& one : shown.diagnosis.findings) {
    about["findings"].push_back(finding_json(one));
  }
  about["notes"] = shown.about.notes;
  for (const auto& note : shown.diagnosis.notes) {
    about["notes"].push_back(note);
  }
  return about;
}

}  // namespace

std::string to_json(const document& shown) {
  json whole{{"schema", "berth.analyze"},
             {"schema_version", schema_version},
             {"berth_version", version_text},
             {"traces", json::array()}};
  for (const auto& one : shown.traces) {
    whole["traces"].push_back(trace_json(one));
  }
  whole["quiet_processes"] = json::array();
  for (const auto& one : shown.quiet) {
    whole["quiet_processes"].push_back(
        {{"file", one.file}, {"program", one.program.empty() ? json() : json(one.program)}});
  }
  // File names may be any bytes; JSON must be UTF-8.
  return whole.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace berth::report
