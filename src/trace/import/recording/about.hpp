// SPDX-License-Identifier: Apache-2.0
// What a recording says of itself: its process, what was watched, and what is missing, as facts for
// rules and as notes for people.
#pragma once

#include <cstdint>

#include "trace/import/recording/content.hpp"
#include "trace/recording/block_reader.hpp"
#include "trace/trace.hpp"

namespace berth::trace::recording {

// How its copies and fills were turned into activities.
struct conversion {
  std::uint64_t by_call = 0;            // activities whose time is the call's
  std::uint64_t without_time = 0;       // activities without a time
  std::uint64_t shared_bytes = 0;       // batches whose copies got an even share of its bytes
  std::uint64_t uncounted_batches = 0;  // batches of absurdly many copies
  std::uint64_t absurd_bytes = 0;       // sizes that cannot be true
  std::uint64_t unknown_hosts = 0;      // host ends of unknown kind, because events were lost
  std::uint64_t unknown_apis = 0;       // events of interfaces that this reader does not know
};

// Events that are not there: dropped by the recorder, or in blocks that are missing.
[[nodiscard]] bool lost_events(const content& recorded, const damage& losses);

// Facts, framework, api, devices, rank and notes.
[[nodiscard]] metadata describe(const content& recorded, const damage& losses,
                                const conversion& converted);

}  // namespace berth::trace::recording
