// SPDX-License-Identifier: Apache-2.0
// Diagnoses of test traces on a machine with round figures, and ways to look at their findings.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/diagnosis.hpp"
#include "support/trace_builder.hpp"

namespace berth::test {

// Both ways: pinned 50 GB/s, pageable 10 GB/s, no fixed cost. 50 MB take 1 ms or 5 ms.
inline machine::machine_profile round_machine() {
  std::vector<machine::path_cost> paths;
  for (const auto way : {direction::host_to_device, direction::device_to_host}) {
    for (const auto& [kind, rate] :
         {std::pair{memory_kind::pinned, 50.0}, std::pair{memory_kind::pageable, 10.0}}) {
      paths.push_back({.where = {.way = way, .host = kind, .by = engine::dma},
                       .device_time = machine::cost::linear(0, rate),
                       .known = provenance::measured,
                       .source = "a test",
                       .call_overhead_ns = std::nullopt});
    }
  }
  return machine::machine_profile("round", std::move(paths), {}, {});
}

// A diagnosis together with the trace that it is about.
struct diagnosed {
  trace::trace events;
  diagnose::diagnosis result;

  // Null if the rule found nothing. The first, if it found several things.
  [[nodiscard]] const diagnose::finding* find(std::string_view rule) const {
    const auto found = std::find_if(result.findings.begin(), result.findings.end(),
                                    [&](const diagnose::finding& one) { return one.rule == rule; });
    return found != result.findings.end() ? &*found : nullptr;
  }
  [[nodiscard]] std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const auto& one : result.findings) {
      names.emplace_back(one.rule);
    }
    return names;
  }
};

inline diagnosed diagnose_on_round_machine(trace_builder& builder) {
  const auto machine = round_machine();
  diagnosed made{builder.build(), {}};
  made.result = diagnose::diagnose(made.events, &machine);
  return made;
}

inline diagnosed diagnose_on_unknown_machine(trace_builder& builder) {
  diagnosed made{builder.build(), {}};
  made.result = diagnose::diagnose(made.events);
  return made;
}

inline double milliseconds_of(std::int64_t time_ns) {
  return static_cast<double>(time_ns) / 1e6;
}

// In ms; a failure if the finding has no saving.
inline double saving_ms(const diagnose::finding& found) {
  if (!found.saving) {
    ADD_FAILURE() << found.rule << " has no saving";
    return -1;
  }
  return milliseconds_of(found.saving->time_ns);
}

inline std::string all_fixes(const diagnose::finding& found) {
  std::string text;
  for (const auto& line : found.fix) {
    text += line + '\n';
  }
  return text;
}

}  // namespace berth::test
