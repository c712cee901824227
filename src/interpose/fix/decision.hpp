// SPDX-License-Identifier: Apache-2.0
// What becomes of a copy: pure functions from what is known to "fixed" or "passed, because".
#pragma once

#include <array>
#include <cstdint>

#include "berth/copy_engine.hpp"
#include "berth/error.hpp"
#include "interpose/fix/interface.hpp"

namespace berth::interpose::fix {

// What the call itself and the thread say.
struct call_facts {
  runtime of = runtime::hip;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  bool way_is_known = true;  // a direction that fix knows; false: between devices, within one, none
  std::uint64_t rows = 0;    // 0: one run of bytes
  std::uint64_t dst_pitch = 0;
  std::uint64_t src_pitch = 0;
  bool is_own_process = true;
  bool has_ended = false;
};

// Smaller copies are nobody's business: looking at them would cost more than could be gained.
inline constexpr std::uint64_t least_bytes = 1U << 20;

// Handles that mean a default stream: hipStreamLegacy and CU_STREAM_LEGACY are 1, the thread's own
// is 2 in both runtimes.
inline constexpr std::uint64_t legacy_handle = 1;

// Rows that lie in each other, or whose number does not divide the bytes, are the runtime's to
// refuse.
[[nodiscard]] constexpr bool has_usual_rows(const call_facts& facts) noexcept {
  const auto width = facts.rows == 0 ? 0 : facts.bytes / facts.rows;
  return facts.rows == 0 || (width * facts.rows == facts.bytes && facts.dst_pitch >= width &&
                             facts.src_pitch >= width);
}

// `none`: worth asking the engine.
[[nodiscard]] constexpr pass judge_call(const call_facts& facts) noexcept {
  if (facts.bytes < least_bytes) {
    return pass::small;
  }
  if (facts.has_ended) {
    return pass::ended;
  }
  if (!facts.is_own_process) {
    return pass::forked;
  }
  // Older HIP refuses the handle.
  if (!facts.way_is_known || !has_usual_rows(facts) ||
      (facts.of == runtime::hip && facts.stream == legacy_handle)) {
    return pass::other_form;
  }
  return pass::none;
}

struct reason_row {
  copy_reason reason;
  pass why;
};
inline constexpr std::array reason_rows{
    reason_row{copy_reason::no_bytes, pass::small},
    reason_row{copy_reason::small, pass::small},
    reason_row{copy_reason::page_locked, pass::not_pageable},
    reason_row{copy_reason::kept, pass::not_pageable},
    reason_row{copy_reason::requested, pass::not_pageable},
    reason_row{copy_reason::pageable, pass::none},
    reason_row{copy_reason::one_cpu, pass::none},
    reason_row{copy_reason::host_reaches_device, pass::as_fast},
    reason_row{copy_reason::both_host, pass::not_pageable},
    reason_row{copy_reason::managed_end, pass::not_pageable},
    reason_row{copy_reason::unknown_memory, pass::not_pageable},
    reason_row{copy_reason::capturing, pass::capturing},
    reason_row{copy_reason::not_ready, pass::not_ready},
    reason_row{copy_reason::no_profile, pass::as_fast},
    reason_row{copy_reason::slower_here, pass::as_fast},
    reason_row{copy_reason::starved, pass::starved},
    reason_row{copy_reason::no_ring, pass::no_engine},
};

// What the engine has said of a copy. `expected`: the direction that the call names.
[[nodiscard]] constexpr pass judge_plan(const copy_plan& plan, direction expected) noexcept {
  const bool was_staged =
      plan.path == copy_path::staged_inline || plan.path == copy_path::staged_threaded;
  if (was_staged) {
    return pass::none;
  }
  if (expected != direction::unknown && plan.way != direction::unknown && plan.way != expected) {
    return pass::other_way;
  }
  for (const auto& row : reason_rows) {
    if (row.reason == plan.reason && row.why != pass::none) {
      return row.why;
    }
  }
  return pass::failed;  // a plan to stage that was not
}

// An error before, or while, the copy was made. What the runtime would refuse, too, is its to say.
[[nodiscard]] constexpr pass judge_error(errc code) noexcept {
  switch (code) {
    case errc::gpu_capture:
      return pass::capturing;
    case errc::transfer_forked:
      return pass::forked;
    case errc::transfer_overlap:
    case errc::transfer_out_of_range:
    case errc::transfer_unmapped:
      return pass::other_form;
    case errc::gpu_shut_down:
      return pass::ended;
    default:
      return pass::failed;
  }
}

}  // namespace berth::interpose::fix
