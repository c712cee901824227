// SPDX-License-Identifier: Apache-2.0
#include "topology/paste/words.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/text.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::topology::paste {
namespace {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool same(char a, char b) noexcept {
  return lower(a) == lower(b);
}

// The hexadecimal digits at the begin of `text`, which are taken from it.
std::optional<std::uint32_t> take_hex(std::string_view& text, std::size_t most) noexcept {
  const auto count = std::min(text.find_first_not_of("0123456789abcdefABCDEF"), text.size());
  if (count == 0 || count > most) {
    return std::nullopt;
  }
  const auto number = text::whole_number<std::uint64_t>(text.substr(0, count), 16);
  text.remove_prefix(count);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

bool take(std::string_view& text, char wanted) noexcept {
  if (text.empty() || text.front() != wanted) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view text) noexcept {
  text = text::trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return text::whole_number<std::uint64_t>(text.substr(2), 16);
  }
  return text::whole_number<std::uint64_t>(text, 10);
}

std::optional<double> decimal_in(std::string_view text) noexcept {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) {
    return std::nullopt;
  }
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc{} && rest == end && std::isfinite(value) ? std::optional(value)
                                                                       : std::nullopt;
}

std::optional<std::uint64_t> leading_number(std::string_view text) noexcept {
  const auto* const end = std::ranges::find_if_not(text, is_digit);
  return text::whole_number<std::uint64_t>(
      text.substr(0, static_cast<std::size_t>(end - text.begin())), 10);
}

std::optional<std::uint32_t> index_after(std::string_view prefix, std::string_view text) noexcept {
  if (text.size() <= prefix.size() ||
      !std::ranges::equal(text.substr(0, prefix.size()), prefix, same)) {
    return std::nullopt;
  }
  text.remove_prefix(prefix.size());
  const bool has_bracket = text.front() == '[' || text.front() == ' ';
  const auto number = leading_number(text.substr(has_bracket ? 1 : 0));
  return number && *number <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*number))
                                         : std::nullopt;
}

std::optional<key_value> key_value_of(std::string_view text) noexcept {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  auto value = text.substr(colon + 1);
  if (value.starts_with(':')) {  // "SDMA engine uCode::"
    value.remove_prefix(1);
  }
  return key_value{text::trim(text.substr(0, colon)), text::trim(value)};
}

bool is_nearly(std::string_view text, std::string_view wanted) noexcept {
  if (text.size() > wanted.size() + 1 || wanted.size() > text.size() + 1) {
    return false;
  }
  std::size_t alike = 0;
  while (alike < std::min(text.size(), wanted.size()) && same(text[alike], wanted[alike])) {
    ++alike;
  }
  const auto rest = text.substr(alike);
  const auto other = wanted.substr(alike);
  if (rest.empty() || other.empty()) {
    return true;
  }
  return std::ranges::equal(rest.substr(rest.size() >= other.size() ? 1 : 0),
                            other.substr(other.size() >= rest.size() ? 1 : 0), same);
}

std::string pci_address_in(std::string_view text) {
  text = text::trim(text);
  auto first = take_hex(text, 8);
  if (!first || !take(text, ':')) {
    return {};
  }
  auto second = take_hex(text, 2);
  std::uint32_t domain = 0;
  if (second && take(text, ':')) {
    domain = *first;
    first = second;
    second = take_hex(text, 2);
  }
  if (!second || !take(text, '.')) {
    return {};
  }
  const auto function = take_hex(text, 1);
  if (!function || !text.empty() || *first > 0xff || *second > 0x1f || *function > 7) {
    return {};
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, *first, *second, *function);
}

std::optional<std::uint32_t> generation_of(std::string_view speed) noexcept {
  const auto digits =
      speed.substr(0, std::min(speed.find_first_not_of("0123456789."), speed.size()));
  return machine::pcie_generation_of(digits);
}

}  // namespace berth::topology::paste
