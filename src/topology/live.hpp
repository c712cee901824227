// SPDX-License-Identifier: Apache-2.0
// Reads a machine: this one, or one whose files lie below a folder. Nothing here creates a GPU
// context. What a sick device may keep waiting for ever is asked by a child process, and cut.
#pragma once

#include <chrono>
#include <filesystem>

#include "machine/survey.hpp"

namespace berth::topology {

struct live_options {
  // "/" is this machine. Any other folder holds captured files: /proc, /sys, and what berth adds
  // in /berth (see bundle.hpp).
  std::filesystem::path root = "/";
  // Of everything together. What has not answered by then is left out, and said.
  std::chrono::milliseconds deadline{10'000};
  // One file that takes so long is given up.
  std::chrono::milliseconds patience{2'000};
};

// Never fails: what cannot be read is a problem of the survey. Blocks for up to the deadline.
[[nodiscard]] machine::survey read_machine(const live_options& options = {});

}  // namespace berth::topology
