// SPDX-License-Identifier: Apache-2.0
// Which way a copy went and what its ends were, from all that a recording says of it: the ranges
// that its addresses lay in, the call's own words, the device's record.
#pragma once

#include <cstdint>
#include <optional>

#include "berth/types.hpp"
#include "trace/import/recording/address_replay.hpp"
#include "trace/import/recording/content.hpp"

namespace berth::trace::recording {

// Whether all allocations are known, so that an address in no known range is the host's.
enum class ranges_known : std::uint8_t { all, some };

struct copy_ends {
  berth::direction direction = direction::unknown;
  memory_kind source = memory_kind::unknown;
  memory_kind destination = memory_kind::unknown;
  std::optional<std::uint32_t> device;  // whose memory an end is, if that is known
};

// Of a call, or of a device's record.
[[nodiscard]] copy_ends ends_of(const content& recorded, const event& which, const touched& ranges,
                                direction hint, ranges_known known);

// What one knows and the other does not; where both know, the call goes by addresses and is right.
[[nodiscard]] copy_ends joined(const copy_ends& call, const copy_ends& device_record) noexcept;

}  // namespace berth::trace::recording
