// SPDX-License-Identifier: Apache-2.0
#include "cmd_emulate.hpp"

#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "emulator/topology/plan.hpp"
#include "machine/catalogue.hpp"

namespace berth::cli {
namespace {

int list_models(const streams& io) {
  for (const auto& model : machine::catalogue()) {
    if (emulator::plan_machine(model, std::nullopt)) {
      io.out << fmt::format("{:20} {}\n", model.name, model.title);
    }
  }
  return static_cast<int>(exit_status::done);
}

}  // namespace

int run_emulate(const emulate_options& options, const streams& io) {
  if (options.action == emulate_action::list_models) {
    return list_models(io);
  }
  if (options.program.empty()) {
    return static_cast<int>(refuse(io, error(errc::usage, "no program to run", "berth emulate",
                                             "berth emulate --machine mi210 -- rocminfo")));
  }
  const program::held_signals signals;
  const program::start_request program{
      .words = options.program, .environment = {}, .pid_variable = {}, .passed_signals = {}};
  const auto end = run_on_emulated_machine(options.machine, program, {}, signals, io);
  return end ? end->shell_status() : static_cast<int>(refuse(io, end.error()));
}

}  // namespace berth::cli
