// SPDX-License-Identifier: Apache-2.0
// What the operations of spec/gpu_api.def mean to a trace.
#pragma once

#include <cstdint>
#include <string_view>

#include "berth/types.hpp"

namespace berth::trace::recording {

enum class action : std::uint8_t {
  other,
  copy,
  fill,
  allocate,       // also: registers, maps
  release,        // frees, unregisters
  release_range,  // unmaps: all that lies in a range
  launch,
  synchronise,
  advise,
  prefetch,
  ask_address,  // for the address under which a device reaches host memory
};

enum class completion : std::uint8_t { in_call, later };

struct operation {
  recording::action action = action::other;
  // Of what an allocation gives.
  memory_kind memory = memory_kind::unknown;
  // Of a copy whose operation says so.
  berth::direction way = direction::unknown;
  recording::completion completion = completion::in_call;
};

// Operations that the table lacks count as what their first word says (`copy_...`), or as other.
[[nodiscard]] operation operation_of(std::string_view word) noexcept;

}  // namespace berth::trace::recording
