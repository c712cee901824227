// SPDX-License-Identifier: Apache-2.0
// Looking up a path: the exact record, then what comes closest, in the order that profile.hpp
// promises.
#include "machine/profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "machine/enum_names.hpp"

namespace berth::machine {
namespace {

using namespace std::string_view_literals;

constexpr std::array operation_names{
    "host_register"sv,
    "host_unregister"sv,
    "pinned_alloc"sv,
    "pinned_free"sv,
    "device_alloc"sv,
    "device_free"sv,
    "stream_ordered_alloc_free"sv,
    "host_populate"sv,
    "managed_touch_by_device"sv,
    "managed_touch_by_host"sv,
    "managed_prefetch_to_device"sv,
    "managed_prefetch_to_host"sv,
    "managed_resident_copy"sv,
    "managed_remote_read"sv,
    "managed_remote_write"sv,
    "zero_copy_read"sv,
    "zero_copy_write"sv,
};

constexpr std::array quantity_names{
    "memory_gb_per_s"sv,
    "kernel_memory_gb_per_s"sv,
    "host_link_gb_per_s"sv,
    "host_bidirectional_gb_per_s"sv,
    "peer_bidirectional_gb_per_s"sv,
    "copy_engines_per_direction"sv,
    "kernel_slowdown_beside_dma"sv,
    "kernel_slowdown_beside_kernel_copy"sv,
    "host_access_latency_ns"sv,
    "small_copy_call_ns"sv,
    "submit_ns"sv,
    "launch_ns"sv,
};

// The engines that the runtime would take, likeliest first.
std::vector<engine> engines_for(const path& wanted) {
  if (wanted.by != engine::unknown) {
    return {wanted.by};
  }
  if (wanted.way == direction::host_to_host) {
    return {engine::cpu};
  }
  return {engine::dma, engine::kernel};
}

// The kinds that cost the same. Between host ends pinning changes nothing.
std::vector<memory_kind> kinds_for(const path& wanted) {
  if (wanted.way == direction::host_to_host) {
    return {wanted.host, memory_kind::pageable};
  }
  switch (wanted.host) {
    case memory_kind::pinned:
      return {memory_kind::pinned, memory_kind::registered};
    case memory_kind::registered:
      return {memory_kind::registered, memory_kind::pinned};
    default:
      return {wanted.host};
  }
}

bool same_but_count(const path& a, const path& b) {
  return a.way == b.way && a.host == b.host && a.by == b.by && a.traits == b.traits;
}

path_match exact_match(const path_cost& row) {
  return {.answered = row.where,
          .device_time = row.device_time,
          .known = row.known,
          .source = row.source,
          .call_overhead_ns = row.call_overhead_ns,
          .dropped = {}};
}

path_match modelled_match(const path_cost& row, cost time, std::string_view how) {
  auto match = exact_match(row);
  match.device_time = std::move(time);
  match.known = provenance::modelled;
  match.source = fmt::format("{}; {}", row.source, how);
  return match;
}

struct counted_row {
  std::uint32_t count;
  const path_cost* row;
};

// The rows of one path, by ascending count; a row without a count stands for what the runtime
// takes.
struct counted_rows {
  const path_cost* any = nullptr;
  std::vector<counted_row> by_count;
};

counted_rows rows_of(std::span<const path_cost> paths, const path& wanted) {
  counted_rows rows;
  for (const auto& row : paths) {
    if (!same_but_count(row.where, wanted)) {
      continue;
    }
    if (row.where.parallelism) {
      rows.by_count.push_back({.count = *row.where.parallelism, .row = &row});
    } else {
      rows.any = &row;
    }
  }
  std::sort(rows.by_count.begin(), rows.by_count.end(),
            [](const counted_row& a, const counted_row& b) { return a.count < b.count; });
  return rows;
}

// The cost of `count` units, from the rows of known counts.
path_match scaled_to_count(const std::vector<counted_row>& rows, std::uint32_t count) {
  const auto high = std::find_if(rows.begin(), rows.end(),
                                 [count](const counted_row& row) { return row.count >= count; });
  if (high == rows.end()) {
    const auto& largest = rows.back();
    return modelled_match(*largest.row, largest.row->device_time,
                          fmt::format("as with {}", largest.count));
  }
  if (high->count == count) {
    return exact_match(*high->row);
  }
  const double high_rate = high->row->device_time.large_gb_per_s();
  const bool has_low = high != rows.begin();
  const auto low_count = has_low ? std::prev(high)->count : 0U;
  const double low_rate = has_low ? std::prev(high)->row->device_time.large_gb_per_s() : 0.0;
  const double rate = std::lerp(low_rate, high_rate,
                                static_cast<double>(count - low_count) / (high->count - low_count));
  return modelled_match(*high->row, high->row->device_time.with_rate_divided_by(high_rate / rate),
                        fmt::format("between {} and {} of them", low_count, high->count));
}

std::optional<path_match> find_counted(std::span<const path_cost> paths, const path& wanted) {
  const auto rows = rows_of(paths, wanted);
  if (!wanted.parallelism) {
    if (rows.any != nullptr) {
      return exact_match(*rows.any);
    }
    // The largest known count stands for what the runtime would take.
    return rows.by_count.empty() ? std::nullopt
                                 : std::optional(exact_match(*rows.by_count.back().row));
  }
  if (*wanted.parallelism > 0 && !rows.by_count.empty()) {
    return scaled_to_count(rows.by_count, *wanted.parallelism);
  }
  return rows.any == nullptr ? std::nullopt
                             : std::optional(modelled_match(*rows.any, rows.any->device_time,
                                                            "as with the runtime's own choice"));
}

direction opposite_of(direction way) noexcept {
  switch (way) {
    case direction::host_to_device:
      return direction::device_to_host;
    case direction::device_to_host:
      return direction::host_to_device;
    default:
      return way;
  }
}

std::optional<quantity> limit_of_both(direction way) noexcept {
  switch (way) {
    case direction::host_to_device:
    case direction::device_to_host:
      return quantity::host_bidirectional_gb_per_s;
    case direction::peer_to_peer:
      return quantity::peer_bidirectional_gb_per_s;
    default:
      return std::nullopt;
  }
}

// One direction's cost while both are busy, from the limit of the two together.
std::optional<path_match> find_shared(const machine_profile& profile, const path& wanted) {
  const auto limit_name = limit_of_both(wanted.way);
  const auto limit = limit_name ? profile.find(*limit_name) : std::nullopt;
  if (!limit) {
    return std::nullopt;
  }
  path alone = wanted;
  alone.traits = wanted.traits.without(trait::bidirectional);
  auto match = find_counted(profile.paths(), alone);
  path other = alone;
  other.way = opposite_of(alone.way);
  const auto back = find_counted(profile.paths(), other);
  if (!match || !back) {
    return std::nullopt;
  }
  const double sum = match->device_time.large_gb_per_s() + back->device_time.large_gb_per_s();
  match->device_time = match->device_time.with_rate_divided_by(std::max(1.0, sum / limit->value));
  match->answered.traits = wanted.traits;
  match->known = provenance::modelled;
  match->source += fmt::format("; both directions share {}", format_rate(limit->value));
  return match;
}

// All the substitutes of kind and engine, for one set of traits.
std::optional<path_match> find_with_traits(const machine_profile& profile, const path& wanted) {
  for (const auto kind : kinds_for(wanted)) {
    for (const auto by : engines_for(wanted)) {
      path candidate = wanted;
      candidate.host = kind;
      candidate.by = by;
      if (auto match = find_counted(profile.paths(), candidate)) {
        return match;
      }
      if (candidate.traits.has(trait::bidirectional)) {
        if (auto match = find_shared(profile, candidate)) {
          return match;
        }
      }
    }
  }
  return std::nullopt;
}

// Calls `attempt` with each subset of `all`, from the one that keeps the strongest traits to none,
// until it answers.
template <typename Attempt>
auto first_subset(trait_set all, const Attempt& attempt) -> decltype(attempt(all)) {
  const unsigned bits = all.bits();
  unsigned kept = bits;
  while (true) {
    if (auto answer = attempt(trait_set::from_bits(static_cast<std::uint8_t>(kept)))) {
      return answer;
    }
    if (kept == 0) {
      return std::nullopt;
    }
    kept = (kept - 1U) & bits;
  }
}

// Copies without a host end have one kind only, however they are asked for.
path normalised(path wanted) {
  if (wanted.way == direction::device_to_device || wanted.way == direction::peer_to_peer) {
    wanted.host = memory_kind::device;
  }
  return wanted;
}

std::chrono::nanoseconds rounded(double ns) {
  // Sizes are 64-bit and rates can be tiny: stay inside what nanoseconds hold.
  return std::chrono::nanoseconds(std::llround(std::min(ns, 9.2e18)));
}

provenance weaker(provenance a, provenance b) noexcept {
  const auto strength = [](provenance value) {
    constexpr std::array order{provenance::unknown, provenance::modelled, provenance::nominal,
                               provenance::measured};
    return std::find(order.begin(), order.end(), value) - order.begin();
  };
  return strength(a) <= strength(b) ? a : b;
}

}  // namespace

std::string_view to_string(operation value) noexcept {
  return name_of(operation_names, value);
}
std::string_view to_string(quantity value) noexcept {
  return name_of(quantity_names, value);
}
std::optional<operation> parse_operation(std::string_view text) noexcept {
  return value_of<operation>(operation_names, text);
}
std::optional<quantity> parse_quantity(std::string_view text) noexcept {
  return value_of<quantity>(quantity_names, text);
}

machine_profile::machine_profile(std::string name, std::vector<path_cost> paths,
                                 std::vector<operation_cost> operations,
                                 std::vector<named_quantity> quantities)
    : name_(std::move(name)),
      paths_(std::move(paths)),
      operations_(std::move(operations)),
      quantities_(std::move(quantities)) {}

std::optional<path_match> machine_profile::lookup(const path& wanted) const {
  const path asked = normalised(wanted);
  if (asked.way == direction::unknown || asked.host == memory_kind::unknown) {
    return std::nullopt;
  }
  return first_subset(asked.traits, [&](trait_set kept) {
    path candidate = asked;
    candidate.traits = kept;
    auto match = find_with_traits(*this, candidate);
    if (match && kept != asked.traits) {
      match->dropped = asked.traits.without(kept);
      match->known = provenance::modelled;
      match->source += fmt::format("; without {}", to_string(match->dropped));
    }
    return match;
  });
}

std::optional<estimate> machine_profile::expected_time(const path& wanted, bytes_t bytes) const {
  const auto match = lookup(wanted);
  if (!match) {
    return std::nullopt;
  }
  return estimate{.time = rounded(match->device_time.nanoseconds(bytes)),
                  .known = match->known,
                  .source = match->source,
                  .dropped = match->dropped};
}

std::optional<estimate> machine_profile::expected_call_time(const path& wanted,
                                                            bytes_t bytes) const {
  const auto match = lookup(wanted);
  if (!match || !match->call_overhead_ns) {
    return std::nullopt;
  }
  const auto& overhead = *match->call_overhead_ns;
  return estimate{.time = rounded(match->device_time.nanoseconds(bytes) + overhead.value),
                  .known = weaker(match->known, overhead.known),
                  .source = match->source == overhead.source
                                ? match->source
                                : fmt::format("{}; call: {}", match->source, overhead.source),
                  .dropped = match->dropped};
}

std::optional<rate_estimate> machine_profile::expected_rate(const path& wanted,
                                                            bytes_t bytes) const {
  const auto match = lookup(wanted);
  if (!match) {
    return std::nullopt;
  }
  return rate_estimate{.gb_per_s = match->device_time.gb_per_s(bytes),
                       .known = match->known,
                       .source = match->source,
                       .dropped = match->dropped};
}

std::optional<estimate> machine_profile::expected_time(operation what, bytes_t bytes,
                                                       trait_set traits) const {
  return first_subset(traits, [&](trait_set kept) -> std::optional<estimate> {
    const auto found = std::find_if(
        operations_.begin(), operations_.end(),
        [&](const operation_cost& row) { return row.what == what && row.traits == kept; });
    if (found == operations_.end()) {
      return std::nullopt;
    }
    const auto dropped = traits.without(kept);
    return estimate{.time = rounded(found->time.nanoseconds(bytes)),
                    .known = dropped.empty() ? found->known : provenance::modelled,
                    .source = dropped.empty() ? found->source
                                              : fmt::format("{}; without {}", found->source,
                                                            to_string(dropped)),
                    .dropped = dropped};
  });
}

std::optional<figure> machine_profile::find(quantity what) const {
  const auto found = std::find_if(quantities_.begin(), quantities_.end(),
                                  [what](const named_quantity& row) { return row.what == what; });
  return found == quantities_.end() ? std::nullopt : std::optional(found->number);
}

}  // namespace berth::machine
