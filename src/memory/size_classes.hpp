// SPDX-License-Identifier: Apache-2.0
// Sizes of pooled blocks. Up to 2 KiB in steps of 256 bytes (what devices want as alignment), above
// that eight sizes for each power of two, so that rounding up wastes less than an eighth of what
// was asked for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "berth/units.hpp"

namespace berth::memory {

using size_class = std::uint32_t;

inline constexpr bytes_t granule = 256;
inline constexpr bytes_t linear_limit = 8 * granule;
inline constexpr bytes_t largest_block = bytes_t{1} << 46U;

// The smallest class whose blocks hold `bytes`. 1 <= bytes <= largest_block.
[[nodiscard]] constexpr size_class class_of(bytes_t bytes) noexcept {
  if (bytes <= linear_limit) {
    return static_cast<size_class>((bytes - 1) / granule);
  }
  const auto power = static_cast<unsigned>(std::bit_width((bytes - 1) / linear_limit)) - 1;
  const auto step = (bytes - 1 - (linear_limit << power)) / (granule << power);
  return static_cast<size_class>(8 + 8 * power + step);
}

[[nodiscard]] constexpr bytes_t size_of(size_class which) noexcept {
  if (which < 8) {
    return granule * (which + 1);
  }
  const auto power = (which - 8) / 8;
  return (linear_limit << power) + (granule << power) * ((which - 8) % 8 + 1);
}

inline constexpr std::size_t class_count = class_of(largest_block) + 1;

// The class whose list a free block of `bytes` stands in: the largest that it can serve.
// bytes >= granule.
[[nodiscard]] constexpr size_class list_of(bytes_t bytes) noexcept {
  const auto above = class_of(bytes);
  return size_of(above) == bytes ? above : above - 1;
}

}  // namespace berth::memory
