// SPDX-License-Identifier: Apache-2.0
// What a large copy's end on the host is, found out by a few system calls before the copy begins:
// whether its pages were touched, and where they lie.
#pragma once

#include <cstdint>
#include <optional>

#include "interpose/capture/collect.hpp"
#include "interpose/capture/thread_log.hpp"

namespace berth::interpose {

// Smaller copies are not looked at.
inline constexpr std::uint64_t least_looked_at = 1U << 20;

struct host_range {
  std::uintptr_t first = 0;
  std::uint64_t bytes = 0;  // 0: no end is known to be on the host
  bool is_source = false;
  bool is_whole = true;  // false: rows with gaps, which end somewhat behind `bytes`
};

// The end that is on the host, as far as the call itself says.
template <call_id Call>
[[nodiscard]] constexpr host_range host_end_of(const role_values& values) noexcept {
  constexpr auto operation = row_of(Call).operation;
  constexpr bool from_host =
      operation.starts_with("copy_to_symbol") || operation.starts_with("copy_to_array");
  constexpr bool to_host =
      operation.starts_with("copy_from_symbol") || operation.starts_with("copy_from_array");
  if constexpr (!is_copy(Call)) {
    return {};
  } else {
    const auto direction =
        way_of(Call) == way::by_address ? static_cast<way>(values[role::way]) : way_of(Call);
    const auto named = [&](role end) {
      return values[end] == static_cast<std::uint64_t>(named_memory::host);
    };
    if (from_host || direction == way::to_device || named(role::src_memory)) {
      return {.first = values[role::src],
              .bytes = values[role::bytes],
              .is_source = true,
              .is_whole = values[role::rows] <= 1};
    }
    if (to_host || direction == way::to_host || named(role::dst_memory)) {
      return {.first = values[role::dst],
              .bytes = values[role::bytes],
              .is_source = false,
              .is_whole = values[role::rows] <= 1};
    }
    return {};
  }
}

// Fills in pages and host_node of a large copy.
void look_at(const host_range& end, raw_event& event) noexcept;

// A hash of up to 64 samples of the memory; nothing where it can't be read: a call that fails may
// have been given any address.
[[nodiscard]] std::optional<std::uint64_t> sample_hash(const void* memory,
                                                       std::uint64_t bytes) noexcept;

}  // namespace berth::interpose
