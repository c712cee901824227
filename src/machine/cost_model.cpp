// SPDX-License-Identifier: Apache-2.0
#include "machine/cost_model.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

namespace berth::machine {
namespace {

using namespace std::string_view_literals;

struct trait_name {
  trait value;
  std::string_view name;
};

// Strongest first, which is also the order of printing.
constexpr std::array trait_names{
    trait_name{trait::fresh_pages, "fresh_pages"},
    trait_name{trait::file_mapped, "file_mapped"},
    trait_name{trait::numa_remote, "numa_remote"},
    trait_name{trait::best_engine, "best_engine"},
    trait_name{trait::huge_pages, "huge_pages"},
    trait_name{trait::write_combined, "write_combined"},
    trait_name{trait::bidirectional, "bidirectional"},
};

constexpr double infinite_rate = std::numeric_limits<double>::infinity();

double rate_of(double ns_per_byte) noexcept {
  return ns_per_byte > 0 ? 1.0 / ns_per_byte : infinite_rate;
}

double slope_between(const cost::knot& low, const cost::knot& high) noexcept {
  return (high.ns - low.ns) / static_cast<double>(high.bytes - low.bytes);
}

// What the line of the first two observations gives for no bytes.
double time_at_zero(const std::vector<cost::knot>& observed) noexcept {
  if (observed.size() < 2) {
    return 0;
  }
  const double slope = slope_between(observed[0], observed[1]);
  return std::max(0.0, observed[0].ns - slope * static_cast<double>(observed[0].bytes));
}

}  // namespace

std::string_view to_string(trait value) noexcept {
  const auto* const found =
      std::find_if(trait_names.begin(), trait_names.end(),
                   [value](const trait_name& row) { return row.value == value; });
  return found != trait_names.end() ? found->name : "unknown"sv;
}

std::optional<trait> parse_trait(std::string_view text) noexcept {
  for (const auto& row : trait_names) {
    if (row.name == text) {
      return row.value;
    }
  }
  return std::nullopt;
}

std::string to_string(trait_set value) {
  std::string all;
  for (const auto& row : trait_names) {
    if (value.has(row.value)) {
      all += fmt::format("{}{}", all.empty() ? "" : ", ", row.name);
    }
  }
  return all;
}

std::string to_string(const path& value) {
  auto text = fmt::format("{} {} {}", berth::to_string(value.way), berth::to_string(value.host),
                          berth::to_string(value.by));
  if (value.parallelism) {
    text += fmt::format(" x{}", *value.parallelism);
  }
  return value.traits.empty() ? text : fmt::format("{} ({})", text, to_string(value.traits));
}

bool cost::valid_knots(const std::vector<knot>& observed) noexcept {
  if (observed.empty() || (observed.size() == 1 && observed[0].bytes == 0)) {
    return false;  // no slope can be told
  }
  if (!std::isfinite(observed[0].ns) || observed[0].ns < 0) {
    return false;
  }
  for (std::size_t index = 1; index < observed.size(); ++index) {
    const auto& before = observed[index - 1];
    const auto& here = observed[index];
    if (!std::isfinite(here.ns) || here.bytes <= before.bytes || here.ns < before.ns) {
      return false;
    }
  }
  return true;
}

cost cost::linear(double a_ns, double b_gb_per_s) {
  assert(a_ns >= 0 && b_gb_per_s > 0);
  return {{{.bytes = 0, .ns = a_ns}}, 1.0 / b_gb_per_s};
}

cost cost::constant(double ns) {
  assert(ns >= 0);
  return {{{.bytes = 0, .ns = ns}}, 0.0};
}

cost cost::through(std::vector<knot> observed) {
  assert(valid_knots(observed));
  if (observed.front().bytes != 0) {
    observed.insert(observed.begin(), knot{.bytes = 0, .ns = time_at_zero(observed)});
  }
  const double tail = observed.back().ns / static_cast<double>(observed.back().bytes);
  return {std::move(observed), tail};
}

double cost::nanoseconds(bytes_t bytes) const noexcept {
  const auto after =
      std::upper_bound(knots_.begin(), knots_.end(), bytes,
                       [](bytes_t size, const knot& point) { return size < point.bytes; });
  const auto before = std::prev(after);
  const double slope = after == knots_.end() ? tail_ns_per_byte_ : slope_between(*before, *after);
  return before->ns + slope * static_cast<double>(bytes - before->bytes);
}

double cost::gb_per_s(bytes_t bytes) const noexcept {
  const double ns = nanoseconds(bytes);
  return ns > 0 ? static_cast<double>(bytes) / ns : 0.0;
}

cost::segment cost::segment_at(bytes_t bytes) const noexcept {
  const auto after =
      std::upper_bound(knots_.begin(), knots_.end(), bytes,
                       [](bytes_t size, const knot& point) { return size < point.bytes; });
  const auto before = std::prev(after);
  const double slope = after == knots_.end() ? tail_ns_per_byte_ : slope_between(*before, *after);
  return {.a_ns = before->ns - slope * static_cast<double>(before->bytes),
          .b_gb_per_s = rate_of(slope)};
}

double cost::large_gb_per_s() const noexcept {
  return rate_of(tail_ns_per_byte_);
}

cost cost::with_rate_divided_by(double factor) const {
  assert(factor > 0);
  auto slowed = knots_;
  const double at_zero = knots_.front().ns;
  for (auto& point : slowed) {
    point.ns = at_zero + (point.ns - at_zero) * factor;
  }
  return {std::move(slowed), tail_ns_per_byte_ * factor};
}

cost cost::shifted(double ns) const {
  auto moved = knots_;
  for (auto& point : moved) {
    point.ns = std::max(0.0, point.ns + ns);
  }
  return {std::move(moved), tail_ns_per_byte_};
}

}  // namespace berth::machine
