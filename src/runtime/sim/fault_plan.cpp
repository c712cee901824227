// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/fault_plan.hpp"

namespace berth::runtime::sim {

fault_plan::fault_plan(const std::vector<fault>& planned) {
  for (const auto& one : planned) {
    add(one);
  }
}

void fault_plan::add(const fault& what) {
  active_.push_back({.what = what, .seen = 0});
}

bool fault_plan::is_due(counted& one) noexcept {
  ++one.seen;
  return one.what.nth == 0 || one.seen == one.what.nth;
}

std::optional<errc> fault_plan::at_call(call which) {
  ++calls_;
  std::optional<errc> failure;
  for (auto& one : active_) {
    const bool counts =
        one.what.kind == fault_kind::fail_call && (!one.what.only || *one.what.only == which);
    if (counts && is_due(one)) {
      failure = one.what.code.value_or(info_of(which).failure);
    }
  }
  return failure;
}

bool fault_plan::at_operation() {
  bool breaks = false;
  for (auto& one : active_) {
    breaks = (one.what.kind == fault_kind::lose_device && is_due(one)) || breaks;
  }
  return breaks;
}

fault_plan::copy_faults fault_plan::at_copy() {
  copy_faults all;
  for (auto& one : active_) {
    if (one.what.kind == fault_kind::slow_copy && is_due(one)) {
      all.factor *= one.what.factor;
    } else if (one.what.kind == fault_kind::corrupt_copy && is_due(one)) {
      all.corrupt = true;
    }
  }
  return all;
}

}  // namespace berth::runtime::sim
