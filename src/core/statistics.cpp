// SPDX-License-Identifier: Apache-2.0
#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace berth::statistics {
namespace {

double percentile_of_sorted(std::span<const double> sorted, double percent) {
  const double rank =
      std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

std::optional<double> percentile(std::span<const double> samples, double percent) {
  if (samples.empty()) {
    return std::nullopt;
  }
  return percentile_of_sorted(sorted_copy(samples), percent);
}

std::optional<double> median(std::span<const double> samples) {
  return percentile(samples, 50);
}

std::optional<summary> summarise(std::span<const double> samples) {
  if (samples.empty()) {
    return std::nullopt;
  }
  const auto sorted = sorted_copy(samples);
  const double middle = percentile_of_sorted(sorted, 50);
  std::vector<double> distances(sorted.size());
  std::transform(sorted.begin(), sorted.end(), distances.begin(),
                 [middle](double sample) { return std::abs(sample - middle); });
  std::sort(distances.begin(), distances.end());
  return summary{.count = sorted.size(),
                 .minimum = sorted.front(),
                 .maximum = sorted.back(),
                 .mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) /
                         static_cast<double>(sorted.size()),
                 .median = middle,
                 .p5 = percentile_of_sorted(sorted, 5),
                 .p95 = percentile_of_sorted(sorted, 95),
                 .deviation = percentile_of_sorted(distances, 50)};
}

}  // namespace berth::statistics
