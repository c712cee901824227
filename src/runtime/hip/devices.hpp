// SPDX-License-Identifier: Apache-2.0
// What HIP tells of its devices: attributes, one by one, since the layout of the properties
// structure differs between majors. An attribute that a version lacks is left unknown.
#pragma once

#include <vector>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "runtime/hip/abi.hpp"

namespace berth::runtime::hip {

// All devices. Initialises the runtime. Errors: gpu_no_device, gpu_runtime_unusable.
result<std::vector<device_info>> list_devices(const api& calls);

// Rate of the clock that berth_spin reads.
std::int64_t wall_clock_khz(const api& calls, int device);

// A failed call must not stay behind as the program's last error.
void forget_last_error(const api& calls, status failed) noexcept;

}  // namespace berth::runtime::hip
