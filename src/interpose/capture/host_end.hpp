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
};

// The end that is on the host, as far as the call itself says.
[[nodiscard]] host_range host_end_of(call_id call, const role_values& values) noexcept;

// Fills in pages and host_node of a large copy.
void look_at(const host_range& end, raw_event& event) noexcept;

// A hash of up to 64 samples of the memory; nothing where it can't be read: a call that fails may
// have been given any address.
[[nodiscard]] std::optional<std::uint64_t> sample_hash(const void* memory,
                                                       std::uint64_t bytes) noexcept;

}  // namespace berth::interpose
