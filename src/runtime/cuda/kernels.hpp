// SPDX-License-Identifier: Apache-2.0
// berth's kernels on CUDA: PTX embedded in the library, which the driver compiles for the device.
#pragma once

#include <array>
#include <string_view>

#include "berth/result.hpp"
#include "runtime/cuda/abi.hpp"
#include "runtime/launch_plan.hpp"

namespace berth::runtime::cuda {

using kernel_functions = std::array<kernel_t, kernel_names.size()>;

// The kernels in the calling thread's current context. The module lives as long as the context.
// Errors: gpu_kernel_unavailable with the compiler's log.
result<kernel_functions> load_kernels(const api& calls);

// builtin_kernels.ptx, ends with a null character beyond its size.
std::string_view kernel_ptx() noexcept;

}  // namespace berth::runtime::cuda
