// SPDX-License-Identifier: Apache-2.0
// Asks a machine all that the reader wants to know, so that it can be read, and taken elsewhere,
// without asking again.
#pragma once

#include "topology/files.hpp"
#include "topology/live.hpp"

namespace berth::topology {

[[nodiscard]] bool is_live(const live_options& options);

// Of a folder: its files. Of this machine: also the environment, what this process may open, its
// limits, and NVML's answers; all asked by child processes that are ended at the deadline.
[[nodiscard]] answers observe(const live_options& options);

}  // namespace berth::topology
