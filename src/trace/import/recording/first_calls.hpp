// SPDX-License-Identifier: Apache-2.0
// Runtimes start lazily: the first copy of a process, and often the first in the other direction,
// also loads code and sets up queues, for up to a second. Where only the calls are timed, that
// would pass for the copy's time.
#pragma once

#include "trace/trace.hpp"

namespace berth::trace::recording {

// The first copy in each direction that took far longer than the others of its direction give
// reason for loses its time (timing::unknown), and a note says so. Of copies that calls have timed
// only.
void leave_out_first_calls(trace& events);

}  // namespace berth::trace::recording
