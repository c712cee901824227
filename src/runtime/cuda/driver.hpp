// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's entry.
#pragma once

#include <memory>

#include "berth/result.hpp"
#include "runtime/driver.hpp"
#include "runtime/loader.hpp"
#include "runtime/open.hpp"

namespace berth::runtime::cuda {

// Looks for libcuda and opens it; what was seen on the way is written into `seen`, also when it
// fails. No device's context is made before it is used. Errors: gpu_no_runtime,
// gpu_runtime_unusable, gpu_no_device.
result<std::shared_ptr<driver>> open_driver(const linker& with, candidate& seen);

}  // namespace berth::runtime::cuda
