// SPDX-License-Identifier: Apache-2.0
// Printing and reading of sizes, times and rates.
#include "berth/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth {
namespace {

struct unit {
  std::string_view name;  // lower case
  double factor;
};

constexpr double ki = 1024.0;
constexpr double mi = 1024.0 * ki;
constexpr double gi = 1024.0 * mi;
constexpr double ti = 1024.0 * gi;
constexpr std::array byte_units{
    unit{"", 1.0},   unit{"b", 1.0},  unit{"k", ki},   unit{"kib", ki},  unit{"m", mi},
    unit{"mib", mi}, unit{"g", gi},   unit{"gib", gi}, unit{"t", ti},    unit{"tib", ti},
    unit{"kb", 1e3}, unit{"mb", 1e6}, unit{"gb", 1e9}, unit{"tb", 1e12},
};
constexpr std::array time_units{
    unit{"ns", 1.0}, unit{"us", 1e3}, unit{"\xc2\xb5s", 1e3},
    unit{"ms", 1e6}, unit{"s", 1e9},  unit{"min", 60e9},
};
constexpr std::array rate_units{
    unit{"b/s", 1e-9}, unit{"kb/s", 1e-6},       unit{"mb/s", 1e-3},       unit{"gb/s", 1.0},
    unit{"tb/s", 1e3}, unit{"kib/s", ki * 1e-9}, unit{"mib/s", mi * 1e-9}, unit{"gib/s", gi * 1e-9},
};

struct quantity {
  double value;
  std::optional<std::uint64_t> exact;  // of whole numbers: a double is inexact above 2^53
};

std::optional<std::uint64_t> whole(std::string_view digits, double factor) {
  std::uint64_t number = 0;
  const auto* end = digits.data() + digits.size();
  const auto [rest, failure] = std::from_chars(digits.data(), end, number);
  if (failure != std::errc{} || rest != end || factor < 1) {
    return std::nullopt;
  }
  const auto times = static_cast<std::uint64_t>(factor);
  return number <= std::numeric_limits<std::uint64_t>::max() / times ? std::optional(number * times)
                                                                     : std::nullopt;
}

// A number and a unit, both required to be understood; the unit is found in `units`.
std::optional<quantity> scaled(std::string_view text, std::span<const unit> units) {
  text = text::trim(text);
  double number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || !std::isfinite(number) || std::signbit(number)) {
    return std::nullopt;
  }
  const auto digits = text.substr(0, static_cast<std::size_t>(rest - text.data()));
  const auto name = text::to_lower(text::trim(text.substr(digits.size())));
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const unit& candidate) { return candidate.name == name; });
  if (found == units.end()) {
    return std::nullopt;
  }
  return quantity{number * found->factor, whole(digits, found->factor)};
}

error no_such(std::string_view what, std::string_view text, std::string_view example) {
  return error(errc::usage, fmt::format("'{}' is no {}", text, what), {},
               fmt::format("write it like {}", example));
}

// Three significant digits and no more: 1.50, 15.0, 150, 1500.
std::string three_digits(double value) {
  if (value >= 99.95) {
    return fmt::format("{:.0f}", value);
  }
  return value >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

double gb_per_s(bytes_t bytes, std::chrono::nanoseconds time) noexcept {
  return time.count() > 0 ? static_cast<double>(bytes) / static_cast<double>(time.count()) : 0.0;
}

std::string format_bytes(bytes_t bytes) {
  constexpr std::array<std::string_view, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  // From here on the next unit, because three digits would round to 1024 of this one.
  constexpr double rounds_up = 1023.5;
  const auto in = [bytes](bytes_t one) {
    return static_cast<double>(bytes) / static_cast<double>(one);
  };
  std::size_t index = 0;
  bytes_t one = 1;
  while (index + 1 < names.size() && in(one) >= rounds_up) {
    one *= 1024;
    ++index;
  }
  return bytes % one == 0 ? fmt::format("{} {}", bytes / one, names[index])
                          : fmt::format("{} {}", three_digits(in(one)), names[index]);
}

std::string format_duration(std::chrono::nanoseconds time) {
  const auto ns = static_cast<double>(time.count());
  const double magnitude = std::abs(ns);
  if (magnitude < 1e3) {
    return fmt::format("{} ns", time.count());
  }
  const auto print = [&](double one, std::string_view name) {
    const double scaled_value = magnitude / one;
    const auto digits = scaled_value >= 9.995 ? fmt::format("{:.1f}", scaled_value)
                                              : fmt::format("{:.2f}", scaled_value);
    return fmt::format("{}{} {}", ns < 0 ? "-" : "", digits, name);
  };
  if (magnitude < 999.95e3) {
    return print(1e3, "us");
  }
  return magnitude < 999.95e6 ? print(1e6, "ms") : print(1e9, "s");
}

std::string format_rate(double gb_per_second) {
  // Tiny copies are slow, not standing still: "0.00" would be untrue.
  if (gb_per_second > 0 && gb_per_second < 0.0995) {
    return gb_per_second < 0.0005 ? "<0.001 GB/s" : fmt::format("{:.3f} GB/s", gb_per_second);
  }
  return fmt::format("{} GB/s", three_digits(gb_per_second));
}

result<bytes_t> try_parse_bytes(std::string_view text) {
  constexpr double first_too_large = 18446744073709551616.0;  // 2^64
  const auto size = scaled(text, byte_units);
  if (size && size->exact) {
    return *size->exact;
  }
  if (!size || size->value >= first_too_large) {
    return no_such("size", text, "4096, 64KiB, 1.5GiB or 2GB");
  }
  return static_cast<bytes_t>(std::round(size->value));
}

bytes_t parse_bytes(std::string_view text) {
  return try_parse_bytes(text).value();
}

result<std::chrono::nanoseconds> try_parse_duration(std::string_view text) {
  constexpr double first_too_large = 9223372036854775808.0;  // 2^63
  constexpr auto longest = std::numeric_limits<std::int64_t>::max();
  const auto time = scaled(text, time_units);
  if (time && time->exact && std::cmp_less_equal(*time->exact, longest)) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(*time->exact));
  }
  if (!time || time->value >= first_too_large) {
    return no_such("duration", text, "250ms, 1.5s or 10us");
  }
  return std::chrono::nanoseconds(std::llround(time->value));
}

std::chrono::nanoseconds parse_duration(std::string_view text) {
  return try_parse_duration(text).value();
}

result<double> try_parse_rate(std::string_view text) {
  const auto rate = scaled(text, rate_units);
  if (!rate) {
    return no_such("rate", text, "55.4GB/s or 32GiB/s");
  }
  return rate->value;
}

double parse_rate(std::string_view text) {
  return try_parse_rate(text).value();
}

}  // namespace berth
