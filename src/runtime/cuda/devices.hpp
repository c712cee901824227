// SPDX-License-Identifier: Apache-2.0
// What the CUDA driver tells of its devices. Needs no context.
#pragma once

#include <vector>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "runtime/cuda/abi.hpp"

namespace berth::runtime::cuda {

struct device_entry {
  device_t handle = 0;
  device_info info;
};

// All devices. Initialises the driver. Errors: gpu_no_device, gpu_runtime_unusable.
result<std::vector<device_entry>> list_devices(const api& calls);

// The driver's word for a status: "CUDA_ERROR_INVALID_VALUE".
const char* name_of(const api& calls, status answer) noexcept;

}  // namespace berth::runtime::cuda
