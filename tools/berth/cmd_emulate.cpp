// SPDX-License-Identifier: Apache-2.0
#include "cmd_emulate.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulator/launch.hpp"
#include "emulator/rocm_libraries.hpp"
#include "emulator/topology/plan.hpp"
#include "machine/catalogue.hpp"

namespace berth::cli {
namespace {

int refuse(const streams& io, const error& why) {
  show_error(io.err, why);
  return static_cast<int>(why.code() == errc::usage ? exit_status::wrong_usage
                                                    : exit_status::unusable);
}

// A file if it looks like one, else a model of the catalogue.
result<machine::model> load_machine(const std::string& name) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos || name.ends_with(".json") ||
      std::filesystem::is_regular_file(name, ignored)) {
    return machine::try_load_model(name);
  }
  return machine::try_get_model(name);
}

int list_models(const streams& io) {
  for (const auto& model : machine::catalogue()) {
    if (emulator::plan_machine(model, std::nullopt)) {
      io.out << fmt::format("{:20} {}\n", model.name, model.title);
    }
  }
  return static_cast<int>(exit_status::done);
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

int run_emulate(const emulate_options& options, const streams& io) {
  if (options.action == emulate_action::list_models) {
    return list_models(io);
  }
  if (options.program.empty()) {
    return refuse(io, error(errc::usage, "no program to run", "berth emulate",
                            "berth emulate --machine mi210 -- rocminfo"));
  }
  const auto model = load_machine(options.machine);
  if (!model) {
    return refuse(io, model.error());
  }
  const auto plan = emulator::plan_machine(*model, options.gpus);
  if (!plan) {
    return refuse(io, plan.error());
  }
  const auto library = emulator::find_preload_library();
  if (!library) {
    return refuse(io, library.error());
  }
  emulator::launch_request request{.program = options.program,
                                   .faults = {},
                                   .trace_file = options.trace,
                                   .kernel_library = options.kernels,
                                   .preload = *library};
  for (const auto& text : options.faults) {
    const auto fault = emulator::parse_fault(text);
    if (!fault) {
      return refuse(io, fault.error());
    }
    request.faults.push_back(*fault);
  }
  say_what_runs(io, *plan);
  const auto end = emulator::run_on(*plan, request);
  return end ? end->shell_status() : refuse(io, end.error());
}

}  // namespace berth::cli
