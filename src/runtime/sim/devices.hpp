// SPDX-License-Identifier: Apache-2.0
// What a machine model looks like through the contract: the runtime, its capabilities, its devices.
#pragma once

#include <vector>

#include "runtime/sim/options.hpp"

namespace berth::runtime::sim {

// The model that the options name. Errors: usage; input_* for a file.
[[nodiscard]] result<machine::model> model_of(const options& how);

[[nodiscard]] machine::vendor vendor_of(const machine::model& of) noexcept;

// How many devices there are. Errors: usage where the model has none and none were asked for.
[[nodiscard]] result<int> device_count_of(const machine::model& of, const options& how);

// Whether pages migrate on touch. Errors: usage where the GPU cannot.
[[nodiscard]] result<migration> migration_of(const machine::model& of, const options& how);

[[nodiscard]] runtime_info describe_runtime(const machine::model& of, const options& how);
[[nodiscard]] std::vector<device_info> describe_devices(const machine::model& of,
                                                        const options& how, int count,
                                                        migration pages);

}  // namespace berth::runtime::sim
