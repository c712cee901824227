// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace berth::diagnose {
namespace {

// Copies with the same key are of the same place, without building its text for each.
using place_key = std::tuple<trace::name_id, trace::name_id>;

place_key key_of(const workload& work, const copy& which) {
  const auto& events = work.events();
  const auto source =
      which.framework_operator != trace::no_row ? which.framework_operator : which.call;
  return {source != trace::no_row ? events.name(source) : 0, which.function};
}

}  // namespace

bool is_tiny(const copy& which) noexcept {
  return which.details->bytes && *which.details->bytes <= tiny_bytes;
}

double sums::working_rate() const noexcept {
  return gb_per_s(bytes, std::chrono::nanoseconds(working_ns));
}

sums sum_of(const workload& work, const selection& chosen) {
  sums total;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    ++total.count;
    total.bytes += which.details->bytes.value_or(0);
    total.duration_ns += which.duration();
    total.working_ns += which.working_ns();
  }
  return total;
}

std::vector<place> places_of(const workload& work, const selection& chosen, std::size_t most) {
  struct entry {
    place sum;
    std::uint32_t example;
  };
  std::map<place_key, entry> by_key;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    auto& [sum, example] =
        by_key.try_emplace(key_of(work, which), entry{{{}, 0, bytes_t{0}, 0}, index}).first->second;
    ++sum.copies;
    sum.time_ns += which.duration();
    if (sum.bytes && which.details->bytes) {
      *sum.bytes += *which.details->bytes;
    } else {
      sum.bytes.reset();
    }
  }
  std::vector<entry> entries;
  for (auto& [key, value] : by_key) {
    entries.push_back(std::move(value));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const entry& a, const entry& b) { return a.sum.time_ns > b.sum.time_ns; });
  entries.resize(std::min(entries.size(), most));
  std::vector<place> places;
  for (auto& [sum, example] : entries) {
    sum.where = work.describe_place(work.copies()[example]);
    places.push_back(std::move(sum));
  }
  return places;
}

gains gains_against(const workload& work, const selection& chosen, host_end end) {
  gains found;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    if (!which.details->bytes) {
      continue;
    }
    const auto expected =
        work.expected().time_ns(which.details->direction, end, *which.details->bytes);
    if (!expected) {
      continue;
    }
    ++found.known;
    found.expected_ns += std::llround(*expected);
    const auto time = std::max<std::int64_t>(0, which.working_ns() - std::llround(*expected));
    found.total_ns += time;
    if (time > 0) {
      found.each.push_back({index, time});
    }
  }
  return found;
}

std::int64_t start_of_work(const workload& work, std::uint32_t device) {
  constexpr std::int64_t parts = 50;
  const auto& kernels = work.kernels_of(device);
  std::int64_t left = kernels.length() / parts;
  for (const auto& busy : kernels.parts()) {
    if (busy.length() >= left) {
      return busy.begin + left;
    }
    left -= busy.length();
  }
  return std::numeric_limits<std::int64_t>::max();
}

selection initial_uploads(const workload& work) {
  constexpr double nearly_all = 0.9;
  std::map<std::uint32_t, std::int64_t> starts;
  const auto uploads = select(work, [](const copy& which) {
    return which.host_kind() == memory_kind::pageable &&
           which.details->direction == direction::host_to_device && !is_tiny(which);
  });
  selection early;
  for (const auto index : uploads) {
    const auto& which = work.copies()[index];
    const auto [start, is_new] = starts.try_emplace(which.device, 0);
    if (is_new) {
      start->second = start_of_work(work, which.device);
    }
    if (which.begin <= start->second) {
      early.push_back(index);
    }
  }
  const auto all_time = static_cast<double>(sum_of(work, uploads).duration_ns);
  const auto early_time = static_cast<double>(sum_of(work, early).duration_ns);
  return early_time >= nearly_all * all_time ? early : selection{};
}

std::string in_terms_of(const workload& work, const wording& ways) {
  const auto& about = work.events().about;
  if (about.framework == "PyTorch") {
    return std::string(ways.pytorch);
  }
  return std::string(about.api == trace::gpu_api::hip ? ways.hip : ways.cuda);
}

std::string basis_of(const workload& work, direction way, host_end end) {
  const auto rate = work.expected().rate(way, end);
  if (!rate) {
    return work.expected().basis();
  }
  return fmt::format("{} {} at {} ({}: {})", end == host_end::pinned ? "pinned" : "pageable",
                     way == direction::device_to_host ? "D2H" : "H2D", format_rate(*rate),
                     to_string(work.expected().known(way, end)), work.expected().basis());
}

direction main_direction(const workload& work, const selection& chosen) {
  std::int64_t balance = 0;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    balance += which.details->direction == direction::device_to_host ? -which.duration()
                                                                     : which.duration();
  }
  return balance >= 0 ? direction::host_to_device : direction::device_to_host;
}

std::string percent(double share) {
  const double value = share * 100;
  return value > 0 && value < 9.95 ? fmt::format("{:.1f} %", value)
                                   : fmt::format("{:.0f} %", value);
}

std::string milliseconds(std::int64_t time_ns) {
  return format_duration(std::chrono::nanoseconds(time_ns));
}

}  // namespace berth::diagnose
