// SPDX-License-Identifier: Apache-2.0
// Which call asked for which copy or fill of a device. Runtimes don't say so to everyone; what they
// do keep is the order: the first call with the same bytes, direction and stream that no other copy
// belongs to.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"
#include "trace/import/recording/operations.hpp"

namespace berth::trace::recording {

enum class carried : std::uint8_t { copy, fill };

// Of a call.
struct asked_copy {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  carried what = carried::copy;
  std::optional<bytes_t> bytes;
  berth::direction direction = direction::unknown;
  std::optional<std::uint64_t> stream;  // the program's handle
  std::optional<std::uint64_t> correlation;
  std::uint64_t count = 1;  // of copies that it asked for
  recording::completion completion = completion::in_call;
};

// Of a device's record.
struct made_copy {
  std::int64_t begin = 0;
  carried what = carried::copy;
  std::optional<bytes_t> bytes;
  berth::direction direction = direction::unknown;
  std::optional<std::uint64_t> stream;  // the program's handle
  std::optional<std::uint64_t> correlation;
};

inline constexpr std::uint32_t no_call = std::numeric_limits<std::uint32_t>::max();

// For each made copy the index of its call, or no_call. Both by rising begin.
[[nodiscard]] std::vector<std::uint32_t> match_copies(const std::vector<asked_copy>& asked,
                                                      const std::vector<made_copy>& made);

}  // namespace berth::trace::recording
