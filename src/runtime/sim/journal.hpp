// SPDX-License-Identifier: Apache-2.0
// The operations that have run, as tests and the trace read them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "runtime/sim/operation.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::runtime::sim {

class journal {
public:
  void add(const operation& ended, engine by);
  [[nodiscard]] std::vector<executed_operation> all() const;
  [[nodiscard]] std::string text() const;

private:
  std::deque<executed_operation> entries_;
};

}  // namespace berth::runtime::sim
