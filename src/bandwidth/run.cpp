// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/run.hpp"

#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "bandwidth/expected_model.hpp"
#include "bandwidth/judge.hpp"
#include "machine/catalogue.hpp"

namespace berth::bandwidth {
namespace {

using runtime::driver;

std::string name_of(const driver& gpu) {
  const auto& info = gpu.info();
  return fmt::format("{} {}.{} ({})", runtime::to_string(info.kind), info.version.major,
                     info.version.minor, info.library);
}

void judge_all(driver& gpu, machine::bandwidth_results& found) {
  for (const auto& device : gpu.devices()) {
    const auto* const model = expected_model(gpu.info().library, device.name);
    const auto profile =
        model == nullptr ? std::nullopt : std::optional(machine::nominal_profile(*model));
    judge(found.figures, device.index, profile ? &*profile : nullptr);
    if (!profile) {
      found.notes.push_back(
          fmt::format("GPU {}: no model of \"{}\" is known, so its rates are not judged",
                      device.index, device.name));
    }
  }
}

}  // namespace

outcome run(driver& gpu, const std::vector<planned>& plan, const run_options& options) {
  outcome made;
  made.found.runtime = name_of(gpu);
  made.found.library = gpu.info().library;
  made.found.known = gpu.info().timing;
  for (const auto& device : gpu.devices()) {
    made.found.devices.push_back(
        {device.index, device.name, device.pci_address.value_or(std::string())});
  }
  if (!gpu.info().capabilities.has(runtime::capability::kernels)) {
    made.found.notes.emplace_back(
        "No gate could be shut: the runtime runs no kernels of berth's, and small copies read "
        "low.");
  }
  std::size_t done = 0;
  for (const auto& one : plan) {
    if (options.stop != nullptr && options.stop->load()) {
      made.found.ended_early =
          fmt::format("interrupted after {} of {} measurements", done, plan.size());
      break;
    }
    if (options.on_progress) {
      options.on_progress(done, plan.size(), one);
    }
    auto figures = measure(gpu, one, options.how);
    if (!figures) {
      made.failure = figures.error();
      made.found.ended_early = figures.error().to_string();
      break;
    }
    made.found.figures.insert(made.found.figures.end(), std::make_move_iterator(figures->begin()),
                              std::make_move_iterator(figures->end()));
    ++done;
  }
  judge_all(gpu, made.found);
  return made;
}

}  // namespace berth::bandwidth
