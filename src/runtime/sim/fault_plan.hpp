// SPDX-License-Identifier: Apache-2.0
// What is to go wrong, and when it is its turn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/sim/options.hpp"

namespace berth::runtime::sim {

class fault_plan {
public:
  explicit fault_plan(const std::vector<fault>& planned);

  void add(const fault& what);
  void clear() noexcept { active_.clear(); }

  // A call is made: the error that it is to give, or nothing.
  [[nodiscard]] std::optional<errc> at_call(call which);
  // An operation starts: whether it breaks its device.
  [[nodiscard]] bool at_operation();
  struct copy_faults {
    double factor = 1;
    bool corrupt = false;
  };
  // A copy starts.
  [[nodiscard]] copy_faults at_copy();

  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }

private:
  struct counted {
    fault what;
    std::uint64_t seen = 0;
  };
  // Counts it; whether it is the fault's turn.
  static bool is_due(counted& one) noexcept;

  std::vector<counted> active_;
  std::uint64_t calls_ = 0;
};

}  // namespace berth::runtime::sim
