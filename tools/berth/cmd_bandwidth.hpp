// SPDX-License-Identifier: Apache-2.0
// `berth bandwidth`: the paths of a machine, measured, and whether they are as they should be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bandwidth/plan.hpp"
#include "cli.hpp"

namespace berth::cli {

enum class bandwidth_check : std::uint8_t { off, on };
enum class bandwidth_format : std::uint8_t { text, json, csv };

struct bandwidth_options {
  std::string runtime;  // "cuda", "sim:mi250x"; empty: BERTH_RUNTIME, or what is there
  bandwidth::thoroughness how = bandwidth::thoroughness::usual;
  std::vector<std::string> kinds;  // names of paths; none: all
  std::vector<std::string> sizes;  // "64MiB"; none: as `how` has them
  std::optional<int> device;
  std::optional<unsigned> samples;
  bandwidth_format format = bandwidth_format::text;
  std::string earlier;  // a file of --format json to compare with; empty: none
  std::string profile;  // a file that gets what was measured as a machine file; empty: none
  std::string output;   // a file; empty for standard output
  bandwidth_check check = bandwidth_check::off;
};

// The exit status: done, fault_found with `check` where a figure is low, wrong_usage, unusable,
// wrong_data where bytes arrived wrong. What was measured until then is shown. Ctrl-C ends it after
// the measurement that runs.
[[nodiscard]] exit_status run_bandwidth(const bandwidth_options& options, const streams& io);

}  // namespace berth::cli
