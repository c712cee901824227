// SPDX-License-Identifier: Apache-2.0
// How running operations slow each other down: on the host link, in the device's memory, on peer
// links, and for compute units.
#pragma once

#include <memory>
#include <span>

#include "runtime/sim/costs.hpp"
#include "runtime/sim/operation.hpp"

namespace berth::runtime::sim {

// Sets `rate` of each.
void share(std::span<const std::shared_ptr<operation>> running, costs& of);

}  // namespace berth::runtime::sim
