// SPDX-License-Identifier: Apache-2.0
// Writes a trace as Chrome Trace Event JSON, which Perfetto and chrome://tracing open: a track for
// each thread and each stream, arrows from calls to what they started, a counter of allocated
// bytes.
#pragma once

#include <functional>
#include <string_view>

#include "trace/trace.hpp"

namespace berth::trace {

// The member of the JSON's object by which the importer knows such a file again: it is for looking
// at, and says less than the trace that it was made from.
inline constexpr std::string_view chrome_export_member = "berthExport";

// Calls `sink` with the text, part by part; times in it are microseconds with three decimals, so
// exact. Events of one stream that overlap are put on tracks side by side.
void write_chrome(const trace& events, const std::function<void(std::string_view)>& sink);

}  // namespace berth::trace
