// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/profile_file.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bandwidth/expected_model.hpp"
#include "machine/catalogue.hpp"

namespace berth::bandwidth {
namespace {

using json = nlohmann::ordered_json;
using machine::bandwidth_figure;
using machine::trait;

constexpr std::array all_traits{trait::bidirectional, trait::write_combined, trait::huge_pages,
                                trait::best_engine,   trait::numa_remote,    trait::file_mapped,
                                trait::fresh_pages};

json traits_of(const machine::path& of) {
  json names = json::array();
  for (const auto one : all_traits) {
    if (of.traits.has(one)) {
      names.push_back(machine::to_string(one));
    }
  }
  return names;
}

// A file names its engines: of the one that the runtime takes by itself, as the model has it.
engine engine_of(const machine::path& of, const machine::model& model) {
  if (of.by != engine::unknown) {
    return of.by;
  }
  const auto found = model.profile.lookup(of);
  return found && found->answered.by != engine::unknown ? found->answered.by : engine::kernel;
}

// Larger copies never take less time in a profile: what noise has made so takes as long.
json points_of(std::vector<const bandwidth_figure*> figures) {
  std::sort(figures.begin(), figures.end(),
            [](const auto* a, const auto* b) { return a->bytes < b->bytes; });
  json points = json::array();
  double longest = 0;
  for (const auto* const one : figures) {
    longest = std::max(longest, one->ns->median);
    points.push_back({{"bytes", one->bytes}, {"ns", longest}});
  }
  return points;
}

json row_of(const std::vector<const bandwidth_figure*>& figures, const machine::model& model,
            provenance known) {
  const auto& first = *figures.front();
  json row{{"direction", to_string(first.where.way)}};
  if (first.where.way != direction::device_to_device) {
    row["host"] = to_string(first.where.host);
  }
  row["engine"] = to_string(engine_of(first.where, model));
  if (!first.where.traits.empty()) {
    row["traits"] = traits_of(first.where);
  }
  row["cost"] = {{"points", points_of(figures)}};
  if (first.clock == machine::timed_by::host_clock) {
    row["call_overhead_ns"] = 0;  // within the time
  }
  row["provenance"] = to_string(known);
  row["source"] = "run";
  return row;
}

std::vector<machine::path> paths_of(const machine::bandwidth_results& of, int device) {
  std::vector<machine::path> all;
  for (const auto& one : of.figures) {
    if (one.device == device && one.ns &&
        std::find(all.begin(), all.end(), one.where) == all.end()) {
      all.push_back(one.where);
    }
  }
  return all;
}

error refused(std::string what, const machine::bandwidth_device& device, std::string hint) {
  return error(errc::usage, std::move(what), fmt::format("GPU {}: {}", device.index, device.name),
               std::move(hint));
}

}  // namespace

result<std::string> to_machine_file(const machine::bandwidth_results& of, int device,
                                    std::string_view when) {
  const auto found = std::find_if(of.devices.begin(), of.devices.end(),
                                  [&](const auto& one) { return one.index == device; });
  if (found == of.devices.end()) {
    return error(errc::usage, fmt::format("there is no GPU {}", device), "--save-profile");
  }
  const auto* const model = expected_model(of.library, found->name);
  if (model == nullptr) {
    return refused("no model of this GPU is known, and a profile builds on one", *found,
                   "docs/machine-files.md tells how to write a machine file by hand");
  }
  const auto paths = paths_of(of, device);
  if (paths.empty()) {
    return refused("nothing was measured, so there is no profile", *found, "");
  }
  json rows = json::array();
  for (const auto& where : paths) {
    std::vector<const bandwidth_figure*> figures;
    for (const auto& one : of.figures) {
      if (one.device == device && one.ns && one.where == where) {
        figures.push_back(&one);
      }
    }
    rows.push_back(row_of(figures, *model, of.known));
  }
  const json made{{"schema", "berth.machine/1"},
                  {"kind", "gpu"},
                  {"name", model->name + "-measured"},
                  {"title", fmt::format("{}, measured {}", found->name, when)},
                  {"extends", model->name},
                  {"device_names", {found->name}},
                  {"sources", {{"run", fmt::format("berth bandwidth, {}, {}", of.runtime, when)}}},
                  {"paths", rows}};
  return made.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace berth::bandwidth
