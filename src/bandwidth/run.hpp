// SPDX-License-Identifier: Apache-2.0
// A plan, carried out: every figure measured and judged.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "bandwidth/measure.hpp"
#include "machine/bandwidth.hpp"

namespace berth::bandwidth {

struct run_options {
  method how = {};
  // Called before each: how many are done, and what comes next.
  std::function<void(std::size_t done, std::size_t all, const planned& next)> on_progress = {};
  // Looked at between figures: true ends the run with what there is.
  const std::atomic<bool>* stop = nullptr;
};

// What was found, and what has ended the run before its time: then the figures are those until
// there.
struct outcome {
  machine::bandwidth_results found;
  std::optional<error> failure;
};
[[nodiscard]] outcome run(runtime::driver& gpu, const std::vector<planned>& plan,
                          const run_options& options);

}  // namespace berth::bandwidth
