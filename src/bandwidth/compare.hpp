// SPDX-License-Identifier: Apache-2.0
// Two runs on one machine: what has become slower or faster, beyond what both repeat within.
#pragma once

#include <string>

#include "berth/result.hpp"
#include "machine/bandwidth.hpp"

namespace berth::bandwidth {

// Figures of the same device, path and size are compared by their medians. A change is one of at
// least a twentieth that is also larger than the two runs' spreads (half of 5th to 95th percentile)
// together.
// @errors usage: an earlier run of other GPUs
[[nodiscard]] result<machine::bandwidth_comparison> compare(
    const machine::bandwidth_results& now, const machine::bandwidth_results& before,
    std::string name_of_before);

}  // namespace berth::bandwidth
