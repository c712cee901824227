// SPDX-License-Identifier: Apache-2.0
// `berth emulate`: runs a program of AMD's ROCm on an emulated machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli.hpp"

namespace berth::cli {

enum class emulate_action : std::uint8_t { run, list_models };

struct emulate_options {
  emulate_action action = emulate_action::run;
  std::string machine = "mi210";      // a model's short name or a machine file
  std::optional<std::uint32_t> gpus;  // nothing: as the model says
  std::string trace;                  // a file; empty for none
  std::string kernels;                // a library of host functions; empty for none
  std::vector<std::string> faults;    // as emulator::parse_fault takes them
  std::vector<std::string> program;   // with its arguments
};

// Blocks until the program has ended. The program's own exit status, 128 and the signal's number if
// one has ended it, or one of exit_status where it could not be started.
[[nodiscard]] int run_emulate(const emulate_options& options, const streams& io);

}  // namespace berth::cli
