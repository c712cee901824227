// SPDX-License-Identifier: Apache-2.0
// The functions that the preloaded library shows in front of the GPU runtimes'.
#pragma once

#include "interpose/capture/calls.hpp"

namespace berth::interpose {

[[nodiscard]] void* shim_of(call_id call) noexcept;

}  // namespace berth::interpose
