// SPDX-License-Identifier: Apache-2.0
// berth's kernels on HIP: compiled for the device at first use, by AMD's run-time compiler.
// Until 6.x libamdhip64 holds the compiler itself; since 7.0 it is libhiprtc, of the same number.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "berth/result.hpp"
#include "runtime/hip/abi.hpp"
#include "runtime/launch_plan.hpp"
#include "runtime/loader.hpp"

namespace berth::runtime::hip {

using kernel_functions = std::array<kernel_t, kernel_names.size()>;

// The run-time compiler that belongs to a runtime library of this major version.
// Errors: gpu_kernel_unavailable with all that was tried.
result<compiler_api> load_compiler(void* runtime_library, int major, const linker& with);

// Machine code of berth's kernels for an architecture ("gfx90a"), or for the calling thread's
// current device if that is empty. Blocks for up to some seconds.
// Errors: gpu_kernel_unavailable with the compiler's log.
result<std::string> compile_kernels(const compiler_api& compiler,
                                    const std::string& architecture = {});

// The kernels of a compiled image, in the current device. The module stays loaded.
// Errors: gpu_kernel_unavailable.
result<kernel_functions> load_kernels(const api& calls, const std::string& image);

// The source, builtin_kernels.cu.
std::string_view kernel_source() noexcept;

}  // namespace berth::runtime::hip
