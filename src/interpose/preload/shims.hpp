// SPDX-License-Identifier: Apache-2.0
// The functions that the preloaded library shows in front of the GPU runtimes'.
#pragma once

#include "interpose/capture/calls.hpp"

namespace berth::interpose {

[[nodiscard]] void* shim_of(call_id call) noexcept;

// What stands in front of CUPTI's call of that name; null for most names.
[[nodiscard]] void* cupti_entry(const char* name) noexcept;

}  // namespace berth::interpose
