// SPDX-License-Identifier: Apache-2.0
// What the CUDA driver's answers mean, and how the contract's options are said to it. Pure
// functions.
#pragma once

#include "berth/runtime/values.hpp"
#include "runtime/cuda/abi.hpp"

namespace berth::runtime::cuda {

// cuDriverGetVersion: major * 1000 + minor * 10.
[[nodiscard]] runtime_version decode_version(int value) noexcept;

// The answers of cuPointerGetAttributes for one address. Each is 8 bytes wide and starts as 0,
// since the widths of the values differ and one for an unknown address is left as it is.
struct pointer_answers {
  std::uint64_t memory_type = 0;
  std::uint64_t device_address = 0;
  std::uint64_t host_address = 0;
  std::uint64_t is_managed = 0;
  std::int64_t device = -2;  // the low 4 bytes are written
  std::uint64_t range_start = 0;
  std::uint64_t range_bytes = 0;
};

// What the address is. Registered and pinned memory both give `pinned` here.
[[nodiscard]] pointer_info decode_pointer(const void* memory,
                                          const pointer_answers& answers) noexcept;

[[nodiscard]] unsigned pinned_flags(const pinned_options& options) noexcept;
[[nodiscard]] unsigned register_flags(const register_options& options) noexcept;
[[nodiscard]] unsigned event_flags(const event_options& options) noexcept;

}  // namespace berth::runtime::cuda
