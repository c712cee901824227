// SPDX-License-Identifier: Apache-2.0
// What was measured of a machine's paths: values only. src/bandwidth fills them, src/report shows
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"
#include "core/statistics.hpp"
#include "machine/cost_model.hpp"

namespace berth::machine {

// Which clock a time was read from.
enum class timed_by : std::uint8_t {
  device_events,  // around copies that stood ready behind a closed gate
  host_clock,     // around a call that blocks
};

// Whether a figure is what its machine should give.
enum class bandwidth_verdict : std::uint8_t {
  unknown,  // nothing to compare it with
  as_expected,
  low,
  above_nominal,  // faster than the link can be: something is measured that was not meant
};

[[nodiscard]] std::string_view to_string(timed_by value) noexcept;
[[nodiscard]] std::string_view to_string(bandwidth_verdict value) noexcept;

// One path at one size. For copies in both directions at once there are two of them, one for each.
struct bandwidth_figure {
  int device = 0;
  path where = {};
  bytes_t bytes = 0;
  timed_by clock = timed_by::device_events;
  std::optional<statistics::summary> ns = std::nullopt;  // of one copy; nothing: not measured
  std::string why_not = {};                              // where it was not
  // Both directions at once: for which part of the time that either was under way both were.
  std::optional<double> overlap = std::nullopt;
  bandwidth_verdict verdict = bandwidth_verdict::unknown;
  std::optional<figure> expected_gb_per_s = std::nullopt;
  std::vector<std::string> causes = {};  // of a low one, likely first, each with how to tell

  // By the median; 0 where not measured.
  [[nodiscard]] double gb_per_s() const noexcept {
    return ns && ns->median > 0 ? static_cast<double>(bytes) / ns->median : 0;
  }
};

// A figure that is not what it was in an earlier run, by more than both runs' spread.
struct bandwidth_change {
  int device = 0;
  path where = {};
  bytes_t bytes = 0;
  double before_gb_per_s = 0;
  double now_gb_per_s = 0;

  [[nodiscard]] bool is_slower() const noexcept { return now_gb_per_s < before_gb_per_s; }
};

struct bandwidth_comparison {
  std::string with;          // what the earlier run is called
  std::size_t compared = 0;  // figures that both have
  std::vector<bandwidth_change> changes;
};

struct bandwidth_device {
  int index = 0;
  std::string name;
  std::string pci_address;  // empty: not told
};

struct bandwidth_results {
  std::string runtime;                     // "CUDA 13.0 (libcuda.so.1)"
  std::string library;                     // "libcuda.so.1", "sim:mi250x"
  provenance known = provenance::unknown;  // measured, or modelled by the simulator
  std::vector<bandwidth_device> devices;
  std::vector<bandwidth_figure> figures;  // in the order in which they were taken
  std::vector<std::string> notes;
  std::optional<bandwidth_comparison> comparison;
  std::string ended_early;  // why; empty: all that was planned is there
};

}  // namespace berth::machine
