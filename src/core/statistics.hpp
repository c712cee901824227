// SPDX-License-Identifier: Apache-2.0
// Statistics of samples: what berth prints of repeated measurements. Order statistics rather than
// means, because timings are skewed and outliers are the rule.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace berth::statistics {

struct summary {
  std::size_t count;
  double minimum;
  double maximum;
  double mean;
  double median;
  double p5;
  double p95;
  // Median absolute deviation from the median: the spread that one outlier does not move.
  double deviation;
};

// The `percent`-th percentile (0..100) by linear interpolation between closest ranks (Hyndman and
// Fan, type 7). Nothing for no samples. Samples need no order and must be finite.
[[nodiscard]] std::optional<double> percentile(std::span<const double> samples, double percent);

[[nodiscard]] std::optional<double> median(std::span<const double> samples);

// Nothing for no samples.
[[nodiscard]] std::optional<summary> summarise(std::span<const double> samples);

}  // namespace berth::statistics
