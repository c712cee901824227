// SPDX-License-Identifier: Apache-2.0
// Starts a program on an emulated machine and cleans up after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "core/program.hpp"
#include "emulator/machine_spec.hpp"
#include "emulator/topology/plan.hpp"

namespace berth::emulator {

struct launch_request {
  program::start_request program;
  std::vector<fault_spec> faults;
  std::string trace_file;      // empty: none
  std::string kernel_library;  // empty: none
  // What is preloaded into it, in this order: libberth_emulator.so, and whatever sees its calls
  // before.
  std::vector<std::filesystem::path> preload;
};

// Blocks until the program has ended. Interrupts from the terminal reach the program, which
// decides; SIGTERM is passed on to it. The overlay folder is gone afterwards, however the program
// has ended: it does not outlive the held signals.
// @errors file_unwritable; usage for a program that cannot be started
[[nodiscard]] result<program::ending> run_on(const machine_plan& plan,
                                             const launch_request& request,
                                             const program::held_signals& signals);

// libberth_emulator.so: where BERTH_EMULATOR_LIBRARY says, beside this program, or where it was
// installed. @errors file_unreadable
[[nodiscard]] result<std::filesystem::path> find_preload_library();

// "copy-slow,nth=2,by=20ms,from=1MiB": a fault and what it applies to.
// @errors usage
[[nodiscard]] result<fault_spec> parse_fault(std::string_view text);

}  // namespace berth::emulator
