// SPDX-License-Identifier: Apache-2.0
#include "emulated_machine.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulator/launch.hpp"
#include "emulator/rocm_libraries.hpp"
#include "emulator/topology/plan.hpp"
#include "machine/catalogue.hpp"

namespace berth::cli {
namespace {

// A file if it looks like one, else a model of the catalogue.
result<machine::model> load_machine(const std::string& name) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos || name.ends_with(".json") ||
      std::filesystem::is_regular_file(name, ignored)) {
    return machine::try_load_model(name);
  }
  return machine::try_get_model(name);
}

// "2 x AMD Instinct MI210"
std::string device_names(const emulator::machine_plan& plan) {
  std::vector<std::pair<std::string, int>> counted;
  for (const auto& gpu : plan.gpus) {
    const auto same = std::find_if(counted.begin(), counted.end(),
                                   [&](const auto& one) { return one.first == gpu.model.title; });
    if (same == counted.end()) {
      counted.emplace_back(gpu.model.title, 1);
    } else {
      ++same->second;
    }
  }
  std::vector<std::string> words;
  words.reserve(counted.size());
  for (const auto& [title, count] : counted) {
    words.push_back(count == 1 ? title : fmt::format("{} x {}", count, title));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void say_what_runs(const streams& io, const emulator::machine_plan& plan) {
  io.err << fmt::format(
      "emulated device: {} (model {}). Device times follow the model; kernels do not run.\n",
      device_names(plan), plan.name);
  const auto missing = emulator::missing_rocm_libraries(emulator::library_folders());
  if (!missing.empty()) {
    io.err << fmt::format("note: not found here: {}\n", emulator::described(missing));
  }
  io.err.flush();
}

}  // namespace

result<program::ending> run_on_emulated_machine(const emulated_machine& machine,
                                                program::start_request program,
                                                std::vector<std::filesystem::path> preload,
                                                const program::held_signals& signals,
                                                const streams& io) {
  const auto model = load_machine(machine.model);
  if (!model) {
    return model.error();
  }
  const auto plan = emulator::plan_machine(*model, machine.gpus);
  if (!plan) {
    return plan.error();
  }
  const auto library = emulator::find_preload_library();
  if (!library) {
    return library.error();
  }
  preload.push_back(*library);
  emulator::launch_request request{.program = std::move(program),
                                   .faults = {},
                                   .trace_file = machine.trace,
                                   .kernel_library = machine.kernels,
                                   .preload = std::move(preload)};
  for (const auto& text : machine.faults) {
    const auto fault = emulator::parse_fault(text);
    if (!fault) {
      return fault.error();
    }
    request.faults.push_back(*fault);
  }
  say_what_runs(io, *plan);
  return emulator::run_on(*plan, request, signals);
}

}  // namespace berth::cli
