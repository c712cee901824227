// SPDX-License-Identifier: Apache-2.0
// From the calls and device records of a recording to the events of a trace.
#pragma once

#include "trace/import/recording/about.hpp"
#include "trace/import/recording/content.hpp"
#include "trace/import/recording/copy_ends.hpp"
#include "trace/trace.hpp"

namespace berth::trace::recording {

// Appends all events to `into`, by rising begin, and says how.
[[nodiscard]] conversion convert(const content& recorded, ranges_known known, trace& into);

}  // namespace berth::trace::recording
