// SPDX-License-Identifier: Apache-2.0
#include "trace/import/decimal.hpp"

#include <charconv>
#include <cmath>

#include "core/text.hpp"

namespace berth::trace {
namespace {

// Leaves room for a duration to be added.
constexpr std::int64_t largest = 9'000'000'000'000'000'000;

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// For the rare number with an exponent: a double is exact enough there.
std::optional<std::int64_t> by_floating_point(std::string_view text) noexcept {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  const double scaled = value * 1e3;
  if (failure != std::errc{} || rest != end || !(std::abs(scaled) <= largest)) {
    return std::nullopt;
  }
  return std::llround(scaled);
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of_microseconds(std::string_view text) noexcept {
  const bool negative = text.starts_with('-');
  const auto digits = text.substr(negative ? 1 : 0);
  std::int64_t value = 0;
  std::size_t at = 0;
  for (; at < digits.size() && is_digit(digits[at]); ++at) {
    if (value > largest / 10 / 1000) {
      return std::nullopt;
    }
    value = value * 10 + (digits[at] - '0');
  }
  if (at == 0) {
    return std::nullopt;
  }
  value *= 1000;
  if (at < digits.size() && digits[at] == '.') {
    const std::size_t first = ++at;
    for (std::int64_t weight = 100; at < digits.size() && is_digit(digits[at]); ++at) {
      value += weight * (digits[at] - '0');
      if (weight == 0 && at == first + 3 && digits[at] >= '5') {
        ++value;
      }
      weight /= 10;
    }
    if (at == first) {
      return std::nullopt;
    }
  }
  if (at < digits.size()) {
    return by_floating_point(text);
  }
  return negative ? -value : value;
}

std::optional<std::uint64_t> unsigned_of(std::string_view text) noexcept {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return text::whole_number<std::uint64_t>(text.substr(2), 16);
  }
  return text::whole_number<std::uint64_t>(text);
}

std::optional<std::int64_t> signed_of(std::string_view text) noexcept {
  return text::whole_number<std::int64_t>(text);
}

}  // namespace berth::trace
