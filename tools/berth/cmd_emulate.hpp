// SPDX-License-Identifier: Apache-2.0
// `berth emulate`: runs a program of AMD's ROCm on an emulated machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli.hpp"
#include "emulated_machine.hpp"

namespace berth::cli {

enum class emulate_action : std::uint8_t { run, list_models };

struct emulate_options {
  emulate_action action = emulate_action::run;
  emulated_machine machine;
  std::vector<std::string> program;  // with its arguments
};

// Blocks until the program has ended. The program's own exit status, 128 and the signal's number if
// one has ended it, or one of exit_status where it could not be started.
[[nodiscard]] int run_emulate(const emulate_options& options, const streams& io);

}  // namespace berth::cli
