// SPDX-License-Identifier: Apache-2.0
// Which model says what to expect of a device.
#pragma once

#include <string_view>

#include "machine/model.hpp"

namespace berth::bandwidth {

// The model of the simulator is named by its library ("sim:mi250x"), that of a GPU by the device's
// name. Null: none is known.
[[nodiscard]] const machine::model* expected_model(std::string_view library,
                                                   std::string_view device_name);

}  // namespace berth::bandwidth
