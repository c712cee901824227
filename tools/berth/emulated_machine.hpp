// SPDX-License-Identifier: Apache-2.0
// The emulated machine that a program is started on, as the command line names it: what
// `berth emulate` and `berth run --emulate` share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "berth/result.hpp"
#include "cli.hpp"
#include "core/program.hpp"

namespace berth::cli {

struct emulated_machine {
  std::string model = "mi210";        // a model's short name or a machine file
  std::optional<std::uint32_t> gpus;  // nothing: as the model says
  std::string trace;                  // a file; empty for none
  std::string kernels;                // a library of host functions; empty for none
  std::vector<std::string> faults;    // as emulator::parse_fault takes them
};

// Says on standard error what it runs on, and blocks until the program has ended. `preload` comes
// before the emulator.
// @errors usage, file_unreadable, file_unwritable, and those of machine files; gpu_not_supported in
//         a build without the emulator
[[nodiscard]] result<program::ending> run_on_emulated_machine(
    const emulated_machine& machine, program::start_request program,
    std::vector<std::filesystem::path> preload, const program::held_signals& signals,
    const streams& io);

}  // namespace berth::cli
