// SPDX-License-Identifier: Apache-2.0
// What HIP's answers mean, by version. Pure functions: recorded answers of every major test them.
#pragma once

#include "berth/runtime/values.hpp"
#include "runtime/hip/abi.hpp"

namespace berth::runtime::hip {

// hipRuntimeGetVersion: major * 10000000 + minor * 100000 + patch.
[[nodiscard]] runtime_version decode_version(int value) noexcept;

// hipMemoryType. 5.x: 0 host, 1 device, 2 array, 3 unified, 4 managed (since 5.7).
// Since 6.0: 0 unregistered, 1 host, 2 device, 3 managed, 10 array, 11 unified.
enum class memory_type : std::uint8_t {
  unknown,
  unregistered,
  host,
  device,
  array,
  unified,
  managed
};
[[nodiscard]] memory_type decode_memory_type(int value, const runtime_version& version) noexcept;

// Whether an answer of hipPointerGetAttributes says "not mine": an error until 5.7, a type
// since 6.0.
[[nodiscard]] bool is_unregistered(status answer, const pointer_attributes& attributes,
                                   const runtime_version& version) noexcept;

// The pointer's kind, device, addresses and grain from a successful answer; base and bytes are
// asked for elsewhere. Registered memory cannot be told from pinned.
[[nodiscard]] pointer_info decode_pointer(const pointer_attributes& attributes,
                                          const runtime_version& version) noexcept;

// Flags of hipHostMalloc. NonCoherent is given alone of the coherence flags: together with Mapped
// its meaning differs between AMD's text and code, and host memory is mapped without it.
[[nodiscard]] unsigned pinned_flags(const pinned_options& options) noexcept;
[[nodiscard]] unsigned register_flags(const register_options& options) noexcept;
[[nodiscard]] unsigned event_flags(const event_options& options) noexcept;

// hipMemoryAdvise.
[[nodiscard]] int advice_value(advice what) noexcept;

}  // namespace berth::runtime::hip
