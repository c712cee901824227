// SPDX-License-Identifier: Apache-2.0
// What was measured, as a machine file (docs/machine-files.md): so that the rest of berth expects
// of a machine what that machine gives.
#pragma once

#include <string>
#include <string_view>

#include "berth/result.hpp"
#include "machine/bandwidth.hpp"

namespace berth::bandwidth {

// The text of a machine file of that device's measured paths. What was not measured comes from the
// model of its name. `when`: "2026-12-01", for the figures' source.
// @errors usage: a device that is not there, of which no model is known, or without a figure
[[nodiscard]] result<std::string> to_machine_file(const machine::bandwidth_results& of, int device,
                                                  std::string_view when);

}  // namespace berth::bandwidth
