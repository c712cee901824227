// SPDX-License-Identifier: Apache-2.0
// What the names in traces mean: calls of the CUDA and HIP interfaces, and the spellings that
// profilers have given to copies over the years.
#pragma once

#include <optional>
#include <string_view>

#include "berth/types.hpp"
#include "trace/trace.hpp"

namespace berth::trace {

struct call_meaning {
  event_kind kind = event_kind::other_call;
  gpu_api api = gpu_api::unknown;
  // Of what an allocation gives or a free returns; unknown for other calls.
  memory_kind memory = memory_kind::unknown;
};

// Of a call as profilers print it: "cudaMemcpyAsync", "hipMemcpyWithStream", "cuMemcpyHtoD_v2".
[[nodiscard]] call_meaning meaning_of_call(std::string_view name) noexcept;

struct copy_meaning {
  berth::direction direction = direction::unknown;
  memory_kind source = memory_kind::unknown;
  memory_kind destination = memory_kind::unknown;
};

// Of a copy as profilers print it: "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice".
// Nothing if the name names no direction.
[[nodiscard]] std::optional<copy_meaning> meaning_of_copy(std::string_view name) noexcept;

// Of hipMemcpyKind and cudaMemcpyKind, which agree: 0 H2H, 1 H2D, 2 D2H, 3 D2D.
[[nodiscard]] direction direction_of_kind(std::uint64_t kind) noexcept;

// AMD's runtime copies and fills with kernels of its own where it does not use SDMA; in a trace
// they look like the program's. Nothing for a kernel of the program.
[[nodiscard]] std::optional<event_kind> runtime_kernel(std::string_view name) noexcept;

}  // namespace berth::trace
