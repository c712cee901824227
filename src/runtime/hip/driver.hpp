// SPDX-License-Identifier: Apache-2.0
// The HIP driver's entry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/result.hpp"
#include "runtime/driver.hpp"
#include "runtime/loader.hpp"
#include "runtime/open.hpp"

namespace berth::runtime::hip {

// Looks for libamdhip64 and opens it; what was seen on the way is written into `seen`, also when it
// fails. Errors: gpu_no_runtime, gpu_runtime_unusable, gpu_no_device.
result<std::shared_ptr<driver>> open_driver(const linker& with, candidate& seen);

// Folders of a ROCm that is not in the linker's path: $ROCM_PATH/lib, /opt/rocm/lib.
std::vector<std::string> rocm_directories(const linker& with);

}  // namespace berth::runtime::hip
