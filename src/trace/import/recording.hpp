// SPDX-License-Identifier: Apache-2.0
// Reads recordings of `berth run` (docs/trace-format.md) into the event model.
//
// Each call becomes a host event; each copy and fill, too, a device activity: the device's own
// where the recording has it, else one whose time is the call's or unknown. What the recording
// lacks stands in the trace's notes; what is missing of the file, in `cut`.
#pragma once

#include <string>

#include "berth/result.hpp"
#include "trace/import/byte_source.hpp"
#include "trace/import/import.hpp"

namespace berth::trace {

// Blocks; reads the files that were mapped when stacks were recorded, for the names of functions.
// @errors input_unknown_format (also for a newer version), input_truncated (no whole block),
//         file_unreadable, input_compression
[[nodiscard]] result<imported> import_recording(byte_source source, const import_options& options);

// True for a file that begins as a recording does; false also for one that cannot be read.
[[nodiscard]] bool is_recording_file(const std::string& path);

}  // namespace berth::trace
