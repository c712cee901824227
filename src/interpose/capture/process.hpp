// SPDX-License-Identifier: Apache-2.0
// The recorder of this process. The one place with state that all calls share: a preloaded library
// has nobody to hand it anything.
#pragma once

#include "interpose/capture/recorder.hpp"

namespace berth::interpose {

struct buffer_callbacks;

// Null before the library is initialised, and where nothing is to be recorded.
[[nodiscard]] recorder* process_recorder() noexcept;

// When the library is loaded.
void start_process() noexcept;
// When the process ends; `reason` as the trace has it.
void end_process(const char* reason) noexcept;

// The program begins to use a profiling interface of devices itself.
void yield_device_times() noexcept;
// And brings callbacks for its buffers: see cupti_source::adopt.
void adopt_device_buffers(buffer_callbacks& callbacks) noexcept;

}  // namespace berth::interpose
