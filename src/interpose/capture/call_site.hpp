// SPDX-License-Identifier: Apache-2.0
// Where a call comes from: raw addresses, named later and elsewhere. Unwinding costs some
// microseconds, so a place is unwound once: a call with the same return address and the same depth
// of the stack is taken for the same place. And a thread spends at most half a percent of its time
// on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/capture/clock.hpp"
#include "interpose/capture/thread_log.hpp"

namespace berth::interpose {

struct call_place {
  const void* return_address = nullptr;
  const void* frame = nullptr;  // of the intercepted call
};

// The id of the place's call site, 0 where none is taken.
[[nodiscard]] std::uint32_t site_of(thread_log& log, const call_place& place,
                                    tick_source clock) noexcept;

}  // namespace berth::interpose
