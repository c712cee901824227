// SPDX-License-Identifier: Apache-2.0
#include "transfer/plan.hpp"

#include <algorithm>

namespace berth::transfer {
namespace {

// Below this a fresh destination's pages are left to be faulted in one by one.
constexpr bytes_t least_populated = 4 * mib;
// How a fresh destination is filled where the profile leaves resident ones to the runtime: the
// runtimes are ten times slower there.
constexpr staging_rule fresh_rule{0, 1, 512 * kib, 4 * mib, 256 * kib};
// Below this, faults of a mapped file's pages cost more than threads gain.
constexpr bytes_t least_read_ahead = 2 * mib;

bool is_file_source(const copy_facts& facts) noexcept {
  return facts.way == direction::host_to_device && facts.host_pages == runtime::pages::of_file;
}

bool is_host_only(memory_kind kind) noexcept {
  return is_pageable(kind) || is_page_locked(kind);
}

decision in_one_go(const copy_facts& facts, copy_path path, copy_reason why) {
  return {.plan = {.path = path, .reason = why, .way = facts.way, .bytes = facts.bytes},
          .store = slot_store::ordinary};
}

decision left_to_runtime(const copy_facts& facts, copy_reason why) {
  return in_one_go(facts, copy_path::runtime, why);
}

decision staged(const copy_facts& facts, const staging_rule& rule, const engine_means& means) {
  copy_plan plan{.path = copy_path::staged_threaded,
                 .reason = copy_reason::pageable,
                 .way = facts.way,
                 .bytes = facts.bytes,
                 .threads = std::clamp(rule.threads, 1U, std::max(means.threads, 1U)),
                 .first_block = rule.first_block,
                 .largest_block = rule.largest_block,
                 .piece = rule.piece};
  if (is_fresh_result(facts)) {
    // All threads: making pages present costs as much as copying.
    plan.populates = true;
    plan.threads = std::max(means.threads, 1U);
  }
  // What is not there may be a file's: it is not told from memory that nobody has touched.
  plan.reads_ahead =
      facts.way == direction::host_to_device && facts.host_pages != runtime::pages::resident;
  // At least two blocks must fit into the ring, or link and threads take turns.
  plan.largest_block = std::min(plan.largest_block, std::max<bytes_t>(means.ring_bytes / 4, 1));
  plan.first_block = std::min(plan.first_block, plan.largest_block);
  plan.piece = std::min(plan.piece, plan.largest_block);
  if (plan.threads == 1) {
    plan.path = copy_path::staged_inline;
    plan.reason = copy_reason::one_cpu;
  }
  return {.plan = plan, .store = rule.store};
}

}  // namespace

bool needs_staging(const copy_facts& facts) noexcept {
  return (facts.way == direction::host_to_device && is_pageable(facts.source)) ||
         (facts.way == direction::device_to_host && is_pageable(facts.destination));
}

bool is_fresh_result(const copy_facts& facts) noexcept {
  return facts.way == direction::device_to_host && facts.host_pages == runtime::pages::fresh &&
         facts.bytes >= least_populated;
}

direction direction_of(memory_kind source, memory_kind destination) noexcept {
  const bool from_device = source == memory_kind::device;
  const bool to_device = destination == memory_kind::device;
  if (from_device && to_device) {
    return direction::device_to_device;
  }
  if (to_device && is_host_only(source)) {
    return direction::host_to_device;
  }
  if (from_device && is_host_only(destination)) {
    return direction::device_to_host;
  }
  return is_host_only(source) && is_host_only(destination) ? direction::host_to_host
                                                           : direction::unknown;
}

std::vector<block> cut_for(const copy_plan& plan, bytes_t granule) {
  return cut(plan.bytes, {.first = plan.first_block,
                          .largest = plan.largest_block,
                          .piece = plan.piece,
                          .granule = granule});
}

decision decide(const copy_facts& facts, const engine_means& means) {
  if (facts.bytes == 0) {
    return in_one_go(facts, copy_path::nothing, copy_reason::no_bytes);
  }
  if (facts.capturing) {
    return left_to_runtime(facts, copy_reason::capturing);
  }
  if (facts.source == memory_kind::managed || facts.destination == memory_kind::managed) {
    return left_to_runtime(facts, copy_reason::managed_end);
  }
  switch (facts.way) {
    case direction::host_to_host:
      return left_to_runtime(facts, copy_reason::both_host);
    case direction::unknown:
      return left_to_runtime(facts, copy_reason::unknown_memory);
    default:
      break;
  }
  if (!needs_staging(facts) || facts.kept) {
    if (facts.wants_kernel) {
      return in_one_go(facts, copy_path::kernel, copy_reason::requested);
    }
    return facts.kept ? in_one_go(facts, copy_path::kept, copy_reason::kept)
                      : in_one_go(facts, copy_path::direct, copy_reason::page_locked);
  }
  if (facts.host_reaches_device) {
    return left_to_runtime(facts, copy_reason::host_reaches_device);
  }
  if (means.profile == nullptr) {
    return left_to_runtime(facts, means.has_failed ? copy_reason::no_ring : copy_reason::not_ready);
  }
  if (means.profile->to_device.empty() && means.profile->to_host.empty()) {
    return left_to_runtime(facts, copy_reason::no_profile);
  }
  if (is_file_source(facts) && facts.bytes < least_read_ahead) {
    return left_to_runtime(facts, copy_reason::small);
  }
  const auto* rule = means.profile->rule_for(facts.way, facts.bytes);
  if (rule == nullptr && is_fresh_result(facts)) {
    rule = &fresh_rule;
  }
  if (rule == nullptr) {
    const auto why = facts.bytes < means.profile->smallest_staged() ? copy_reason::small
                                                                    : copy_reason::slower_here;
    return left_to_runtime(facts, why);
  }
  return staged(facts, *rule, means);
}

}  // namespace berth::transfer
