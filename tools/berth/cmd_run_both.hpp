// SPDX-License-Identifier: Apache-2.0
// `berth run --ab`: the program with and without --fix, in turns, and what that changes.
#pragma once

#include "cmd_run.hpp"

namespace berth::cli {

// Runs the program options.pairs times each way; which way comes first changes from pair to pair.
// Blocks until all runs have ended. Stops at a run that fails: its exit status is the answer then.
[[nodiscard]] int run_both_ways(const run_options& options, const streams& io);

}  // namespace berth::cli
