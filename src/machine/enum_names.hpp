// SPDX-License-Identifier: Apache-2.0
// Spellings of the machine's enumerations: one table a type, indexed by the enumerator's value and
// read in both directions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace berth::machine {

template <typename Enum, std::size_t Size>
constexpr std::string_view name_of(const std::array<std::string_view, Size>& names,
                                   Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < Size ? names[index] : std::string_view("unknown");
}

template <typename Enum, std::size_t Size>
constexpr std::optional<Enum> value_of(const std::array<std::string_view, Size>& names,
                                       std::string_view text) noexcept {
  for (std::size_t index = 0; index < Size; ++index) {
    if (names[index] == text) {
      return static_cast<Enum>(index);
    }
  }
  return std::nullopt;
}

}  // namespace berth::machine
