// SPDX-License-Identifier: Apache-2.0
// From what is known of a copy to how it is carried. Pure: everything that must be asked of the
// runtime or the kernel stands in copy_facts.
#pragma once

#include <cstdint>
#include <optional>

#include "berth/copy_engine.hpp"
#include "berth/runtime/values.hpp"
#include "runtime/page_probe.hpp"
#include "transfer/block_schedule.hpp"
#include "transfer/copy_profile.hpp"

namespace berth::transfer {

struct copy_facts {
  bytes_t bytes = 0;
  memory_kind source = memory_kind::unknown;
  memory_kind destination = memory_kind::unknown;
  direction way = direction::unknown;
  bool kept = false;                 // the host end lies under keep()
  bool host_reaches_device = false;  // integrated or coherently attached
  bool capturing = false;            // the stream
  bool wants_kernel = false;         // copy_options::prefer
  runtime::pages host_pages = runtime::pages::resident;
};

// What the engine can do now.
struct engine_means {
  const copy_profile* profile = nullptr;  // null: not ready
  bool has_failed = false;                // and will not be
  unsigned threads = 1;
  bytes_t ring_bytes = 0;
};

[[nodiscard]] constexpr bool is_staged(const copy_plan& plan) noexcept {
  return plan.path == copy_path::staged_inline || plan.path == copy_path::staged_threaded;
}

// The direction of a copy between two kinds of memory of one device.
[[nodiscard]] direction direction_of(memory_kind source, memory_kind destination) noexcept;

// Between pageable memory and the device.
[[nodiscard]] bool needs_staging(const copy_facts& facts) noexcept;
// To host pages that were never touched, so many that populating them pays.
[[nodiscard]] bool is_fresh_result(const copy_facts& facts) noexcept;

// A plan, and what of it is nobody's business outside.
struct decision {
  copy_plan plan;
  slot_store store = slot_store::ordinary;
};
// The blocks of a staged plan; all but the last are multiples of `granule`.
[[nodiscard]] std::vector<block> cut_for(const copy_plan& plan, bytes_t granule = 1);
[[nodiscard]] decision decide(const copy_facts& facts, const engine_means& means);

}  // namespace berth::transfer
