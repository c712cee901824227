// SPDX-License-Identifier: Apache-2.0
// The faults that the user ordered: counts occurrences and says when one is to go wrong.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/machine_spec.hpp"

namespace berth::emulator {

class fault_plan {
public:
  explicit fault_plan(const std::vector<fault_spec>& ordered) {
    for (const auto& one : ordered) {
      plan_.emplace_back(one, 0);
    }
  }

  // Counts one occurrence. What the user ordered for it, if anything.
  std::optional<fault_spec> occurs(fault_kind kind, std::uint64_t bytes = 0,
                                   std::string_view what = {}) {
    const std::lock_guard hold(lock_);
    std::optional<fault_spec> due;
    for (auto& [ordered, count] : plan_) {
      const bool counts = ordered.kind == kind && bytes >= ordered.at_least &&
                          (ordered.only.empty() || ordered.only == what);
      if (counts && (++count == ordered.nth || ordered.nth == 0)) {
        due = ordered;
      }
    }
    return due;
  }

private:
  std::mutex lock_;
  std::vector<std::pair<fault_spec, std::uint64_t>> plan_;
};

}  // namespace berth::emulator
