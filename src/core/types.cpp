// SPDX-License-Identifier: Apache-2.0
// Spellings of the shared words: one table a type, read in both directions.
#include "berth/types.hpp"

#include <array>
#include <cstddef>

namespace berth {
namespace {

using namespace std::string_view_literals;

// Indexed by the enumerator's value.
constexpr std::array side_names{"unknown"sv, "host"sv, "device"sv};
constexpr std::array memory_kind_names{"unknown"sv, "pageable"sv, "registered"sv,
                                       "pinned"sv,  "managed"sv,  "device"sv};
constexpr std::array engine_names{"unknown"sv, "dma"sv, "kernel"sv, "cpu"sv};
constexpr std::array direction_names{"unknown"sv,          "host_to_device"sv, "device_to_host"sv,
                                     "device_to_device"sv, "peer_to_peer"sv,   "host_to_host"sv};
constexpr std::array provenance_names{"unknown"sv, "nominal"sv, "modelled"sv, "measured"sv};

template <typename Enum, std::size_t Size>
constexpr std::string_view name_of(const std::array<std::string_view, Size>& names,
                                   Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < Size ? names[index] : names[0];
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

}  // namespace

std::string_view to_string(side value) noexcept {
  return name_of(side_names, value);
}
std::string_view to_string(memory_kind value) noexcept {
  return name_of(memory_kind_names, value);
}
std::string_view to_string(engine value) noexcept {
  return name_of(engine_names, value);
}
std::string_view to_string(direction value) noexcept {
  return name_of(direction_names, value);
}
std::string_view to_string(provenance value) noexcept {
  return name_of(provenance_names, value);
}

std::optional<side> parse_side(std::string_view text) noexcept {
  return value_of<side>(side_names, text);
}
std::optional<memory_kind> parse_memory_kind(std::string_view text) noexcept {
  return value_of<memory_kind>(memory_kind_names, text);
}
std::optional<engine> parse_engine(std::string_view text) noexcept {
  return value_of<engine>(engine_names, text);
}
std::optional<direction> parse_direction(std::string_view text) noexcept {
  return value_of<direction>(direction_names, text);
}
std::optional<provenance> parse_provenance(std::string_view text) noexcept {
  return value_of<provenance>(provenance_names, text);
}

}  // namespace berth
