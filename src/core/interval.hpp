// SPDX-License-Identifier: Apache-2.0
// Interval algebra over time: how long something was busy, how much of it ran beside something
// else. An interval is half open, [begin, end), in integer nanoseconds of one clock. An
// interval_set is sorted, disjoint and without empty or touching members, so that its length is a
// plain sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth {

struct interval {
  std::int64_t begin;
  std::int64_t end;

  [[nodiscard]] constexpr std::int64_t length() const noexcept { return end - begin; }
  friend constexpr bool operator==(const interval&, const interval&) = default;
};

class interval_set {
public:
  interval_set() = default;
  // Of any intervals, in any order, overlapping or not; empty ones (end <= begin) are dropped.
  explicit interval_set(std::vector<interval> parts);

  [[nodiscard]] std::span<const interval> parts() const noexcept { return parts_; }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  // Busy time: the sum of all lengths.
  [[nodiscard]] std::int64_t length() const noexcept;
  // How much of `window` is covered. O(log n + parts inside).
  [[nodiscard]] std::int64_t covered(interval window) const noexcept;

  friend interval_set united(const interval_set& a, const interval_set& b);
  friend interval_set intersected(const interval_set& a, const interval_set& b);
  // What of `a` is not in `b`.
  friend interval_set without(const interval_set& a, const interval_set& b);

private:
  std::vector<interval> parts_;
};

}  // namespace berth
