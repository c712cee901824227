// SPDX-License-Identifier: Apache-2.0
// Starts a program on an emulated machine and cleans up after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "emulator/machine_spec.hpp"
#include "emulator/topology/plan.hpp"

namespace berth::emulator {

struct launch_request {
  std::vector<std::string> program;  // its name or path, then its arguments
  std::vector<fault_spec> faults;
  std::string trace_file;         // empty: none
  std::string kernel_library;     // empty: none
  std::filesystem::path preload;  // libberth_emulator.so
};

// How a program has ended: by its exit status or by a signal.
struct program_end {
  int exit_status = 0;
  int signal = 0;  // 0: none

  // As a shell tells it: 128 and the signal's number for a program that a signal has ended.
  [[nodiscard]] int shell_status() const noexcept {
    return signal != 0 ? 128 + signal : exit_status;
  }
};

// Blocks until the program has ended. Interrupts from the terminal reach the program, which
// decides; SIGTERM is passed on to it. The overlay folder is gone afterwards, however the program
// has ended.
// @errors file_unwritable; usage for a program that cannot be started
[[nodiscard]] result<program_end> run_on(const machine_plan& plan, const launch_request& request);

// libberth_emulator.so: where BERTH_EMULATOR_LIBRARY says, beside this program, or where it was
// installed. @errors file_unreadable
[[nodiscard]] result<std::filesystem::path> find_preload_library();

// "copy-slow,nth=2,by=20ms,from=1MiB": a fault and what it applies to.
// @errors usage
[[nodiscard]] result<fault_spec> parse_fault(std::string_view text);

}  // namespace berth::emulator
