// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/compare.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace berth::bandwidth {
namespace {

using machine::bandwidth_figure;

constexpr double least_change = 0.05;

double spread_of(const statistics::summary& of) {
  return of.median > 0 ? (of.p95 - of.p5) / 2 / of.median : 0;
}

bool is_same(const bandwidth_figure& a, const bandwidth_figure& b) {
  return a.device == b.device && a.where == b.where && a.bytes == b.bytes;
}

result<void> require_same_devices(const machine::bandwidth_results& now,
                                  const machine::bandwidth_results& before,
                                  const std::string& name) {
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  if (!std::equal(now.devices.begin(), now.devices.end(), before.devices.begin(),
                  before.devices.end(), same)) {
    return error(errc::usage, "the earlier run is of other GPUs", name,
                 "compare runs of one machine");
  }
  return {};
}

}  // namespace

result<machine::bandwidth_comparison> compare(const machine::bandwidth_results& now,
                                              const machine::bandwidth_results& before,
                                              std::string name_of_before) {
  if (auto same = require_same_devices(now, before, name_of_before); !same) {
    return same.error();
  }
  machine::bandwidth_comparison made{
      .with = std::move(name_of_before), .compared = 0, .changes = {}};
  for (const auto& one : now.figures) {
    const auto old =
        std::find_if(before.figures.begin(), before.figures.end(),
                     [&](const bandwidth_figure& other) { return is_same(one, other); });
    if (!one.ns || old == before.figures.end() || !old->ns || old->ns->median <= 0 ||
        one.ns->median <= 0) {
      continue;
    }
    ++made.compared;
    const double change = std::abs(one.ns->median / old->ns->median - 1);
    if (change > std::max(least_change, spread_of(*one.ns) + spread_of(*old->ns))) {
      made.changes.push_back({one.device, one.where, one.bytes, old->gb_per_s(), one.gb_per_s()});
    }
  }
  return made;
}

}  // namespace berth::bandwidth
