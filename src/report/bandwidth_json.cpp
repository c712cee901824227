// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/bandwidth.hpp"

namespace berth::report {
namespace {

using json = nlohmann::ordered_json;
using machine::bandwidth_figure;

std::string traits_of(const machine::path& of) {
  return machine::to_string(of.traits);
}

// Of a figure or a change.
json path_of(const auto& one) {
  return {{"device", one.device},
          {"direction", to_string(one.where.way)},
          {"host_memory", to_string(one.where.host)},
          {"engine", to_string(one.where.by)},
          {"traits", traits_of(one.where)},
          {"bytes", one.bytes}};
}

json comparison_of(const machine::bandwidth_comparison& shown) {
  json changes = json::array();
  for (const auto& one : shown.changes) {
    json made = path_of(one);
    made["before_gb_per_s"] = one.before_gb_per_s;
    made["now_gb_per_s"] = one.now_gb_per_s;
    changes.push_back(std::move(made));
  }
  return {{"with", shown.with}, {"compared", shown.compared}, {"changes", changes}};
}

json figure_of(const bandwidth_figure& one) {
  json made = path_of(one);
  if (!one.ns) {
    made["not_measured"] = one.why_not;
    return made;
  }
  made["gb_per_s"] = one.gb_per_s();
  made["median_ns"] = one.ns->median;
  made["p5_ns"] = one.ns->p5;
  made["p95_ns"] = one.ns->p95;
  made["samples"] = one.ns->count;
  made["clock"] = to_string(one.clock);
  made["overlap"] = one.overlap ? json(*one.overlap) : json(nullptr);
  made["verdict"] = to_string(one.verdict);
  made["expected"] = nullptr;
  if (one.expected_gb_per_s) {
    made["expected"] = {{"gb_per_s", one.expected_gb_per_s->value},
                        {"known", to_string(one.expected_gb_per_s->known)},
                        {"source", one.expected_gb_per_s->source}};
  }
  made["causes"] = one.causes;
  return made;
}

// Quoted where a comma, a quote or a line's end is in it.
std::string csv_word(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char one : text) {
    quoted += one == '"' ? "\"\"" : std::string(1, one);
  }
  return quoted + "\"";
}

}  // namespace

std::string to_json(const machine::bandwidth_results& shown) {
  json devices = json::array();
  for (const auto& one : shown.devices) {
    devices.push_back({{"index", one.index}, {"name", one.name}, {"pci_address", one.pci_address}});
  }
  json figures = json::array();
  for (const auto& one : shown.figures) {
    figures.push_back(figure_of(one));
  }
  const json made = {
      {"schema", "berth.bandwidth/1"},
      {"runtime", shown.runtime},
      {"known", to_string(shown.known)},
      {"devices", devices},
      {"ended_early", shown.ended_early.empty() ? json(nullptr) : json(shown.ended_early)},
      {"comparison", shown.comparison ? comparison_of(*shown.comparison) : json(nullptr)},
      {"figures", figures},
      {"notes", shown.notes}};
  return made.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_csv(const machine::bandwidth_results& shown) {
  std::string text =
      "device,direction,host_memory,engine,traits,bytes,gb_per_s,median_ns,p5_ns,p95_ns,samples,"
      "clock,overlap,verdict,expected_gb_per_s,not_measured\n";
  for (const auto& one : shown.figures) {
    const auto number = [&](double value) { return one.ns ? fmt::format("{:.6g}", value) : ""; };
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", one.device, to_string(one.where.way),
        to_string(one.where.host), to_string(one.where.by), csv_word(traits_of(one.where)),
        one.bytes, number(one.gb_per_s()), number(one.ns ? one.ns->median : 0),
        number(one.ns ? one.ns->p5 : 0), number(one.ns ? one.ns->p95 : 0),
        one.ns ? one.ns->count : 0, to_string(one.clock),
        one.overlap ? fmt::format("{:.4f}", *one.overlap) : "", to_string(one.verdict),
        one.expected_gb_per_s ? fmt::format("{:.6g}", one.expected_gb_per_s->value) : "",
        csv_word(one.why_not));
  }
  return text;
}

}  // namespace berth::report
