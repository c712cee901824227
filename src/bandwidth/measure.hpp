// SPDX-License-Identifier: Apache-2.0
// How a path is measured.
//
// Copies of page-locked and device memory are asynchronous: they are queued behind a kernel that
// holds the stream (the gate) until all of them stand there, between two events whose times are the
// device's. So neither the queueing nor the launch of the next copy is in the figure. Copies of
// pageable memory block, and are timed by the host's clock around the call, as the program that
// makes them feels it.
//
// The first copies are not counted. A sample is the time of one copy, the mean of those in one
// gate; figures are order statistics of samples. Both directions at once are two streams behind one
// gate: the rate of each, and for which part of the time both were under way. Into fresh pages each
// sample has new ones.
//
// Source and destination have different bytes before, and every byte of the destination is compared
// after each sample: a figure of copies that have not arrived is worth nothing. Of several copies
// in one gate that is what the last one has left.
#pragma once

#include <vector>

#include "bandwidth/plan.hpp"
#include "berth/result.hpp"
#include "machine/bandwidth.hpp"
#include "runtime/driver.hpp"

namespace berth::bandwidth {

struct method {
  unsigned samples = 9;
  unsigned warm_up = 2;
};

// The figures of one path at one size: one, or two for both directions at once. What the runtime
// does not offer, or has no memory for, is a figure without times and with the reason. Blocks.
// @errors transfer_wrong_data, with the place of the first wrong byte; those after which the device
//         is lost
[[nodiscard]] result<std::vector<machine::bandwidth_figure>> measure(runtime::driver& gpu,
                                                                     const planned& what,
                                                                     const method& how);

}  // namespace berth::bandwidth
