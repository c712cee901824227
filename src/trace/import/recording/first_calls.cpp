// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/first_calls.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace berth::trace::recording {
namespace {

// So many times what the others give reason for, and no less than this, is no copy's time.
constexpr double far_longer = 10.0;
constexpr std::int64_t least_start_ns = 5'000'000;
constexpr std::size_t fewest_others = 3;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What a copy of those bytes takes by the others: a fixed part, and one that goes with the bytes.
double expected_ns(const trace& events, const std::vector<row>& others, bytes_t bytes) {
  std::vector<double> fixed;
  std::vector<double> per_byte;
  for (const row one : others) {
    const auto took = static_cast<double>(events.duration(one));
    fixed.push_back(took);
    per_byte.push_back(took /
                       static_cast<double>(std::max<bytes_t>(*events.details(one)->bytes, 1)));
  }
  return std::max(median(std::move(fixed)),
                  median(std::move(per_byte)) * static_cast<double>(bytes));
}

}  // namespace

void leave_out_first_calls(trace& events) {
  std::map<direction, std::vector<row>> timed;
  for (row index = 0; index < events.size(); ++index) {
    const auto* const details = std::as_const(events).details(index);
    if (events.kind(index) == event_kind::copy && details != nullptr && details->bytes &&
        details->time == timing::call) {
      timed[details->direction].push_back(index);
    }
  }
  std::int64_t left_out = 0;
  for (auto& [way, rows] : timed) {
    const auto first = std::min_element(
        rows.begin(), rows.end(), [&](row a, row b) { return events.begin(a) < events.begin(b); });
    const row start = *first;
    rows.erase(first);
    if (rows.size() < fewest_others || events.duration(start) < least_start_ns ||
        static_cast<double>(events.duration(start)) <
            far_longer * expected_ns(events, rows, *events.details(start)->bytes)) {
      continue;
    }
    events.details(start)->time = timing::unknown;
    left_out += events.duration(start);
  }
  if (left_out > 0) {
    events.about.notes.push_back(fmt::format(
        "First copies took {:.0f} ms together: the runtime starts in them. Their time is left out.",
        static_cast<double>(left_out) / 1e6));
  }
}

}  // namespace berth::trace::recording
