// SPDX-License-Identifier: Apache-2.0
// Whether a figure is what its machine should give. Pure: figures and a profile in, verdicts out.
#pragma once

#include <vector>

#include "machine/bandwidth.hpp"
#include "machine/profile.hpp"

namespace berth::bandwidth {

// Sets verdict, expected rate and causes of the figures of one device. Null profile: nothing is
// known of that GPU, and the verdicts stay unknown.
void judge(std::vector<machine::bandwidth_figure>& figures, int device,
           const machine::machine_profile* expected);

}  // namespace berth::bandwidth
