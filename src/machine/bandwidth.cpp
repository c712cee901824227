// SPDX-License-Identifier: Apache-2.0
#include "machine/bandwidth.hpp"

#include <array>
#include <string_view>

namespace berth::machine {
namespace {

constexpr std::array<std::string_view, 2> clock_names{"device events", "host clock"};
constexpr std::array<std::string_view, 4> verdict_names{"unknown", "as expected", "low",
                                                        "above nominal"};

}  // namespace

std::string_view to_string(timed_by value) noexcept {
  return clock_names.at(static_cast<std::size_t>(value));
}

std::string_view to_string(bandwidth_verdict value) noexcept {
  return verdict_names.at(static_cast<std::size_t>(value));
}

}  // namespace berth::machine
