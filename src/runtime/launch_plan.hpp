// SPDX-License-Identifier: Apache-2.0
// Turns a kernel request into what a runtime's launch call wants: the kernel's name, a shape that
// suits device and size, and the parameters. The same for HIP and CUDA, whose kernels are one
// source.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "berth/result.hpp"
#include "runtime/kernels.hpp"

namespace berth::runtime {

// The kernels' names in builtin_kernels.cu, in the order of builtin_kernel.
inline constexpr std::array<const char*, 6> kernel_names{
    "berth_copy", "berth_fill", "berth_touch", "berth_spin", "berth_verify", "berth_scatter"};

// What a plan depends on, of a device.
struct launch_target {
  int compute_units = 1;
  std::int64_t clock_khz = 1'000'000;  // of the clock that berth_spin reads
};

struct launch_plan {
  builtin_kernel kernel = builtin_kernel::copy;
  unsigned blocks = 1;
  unsigned threads = 1;
  std::array<std::uint64_t, 5> parameters{};  // each kernel parameter is 8 bytes wide
};

// Nothing for a request of 0 bytes. Errors: gpu_invalid_value for a shape or request that
// kernels.hpp excludes.
result<std::optional<launch_plan>> plan_launch(const kernel_request& request, launch_shape shape,
                                               const launch_target& target);

}  // namespace berth::runtime
