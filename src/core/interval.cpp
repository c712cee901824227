// SPDX-License-Identifier: Apache-2.0
#include "core/interval.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace berth {

interval_set::interval_set(std::vector<interval> parts) : parts_(std::move(parts)) {
  std::erase_if(parts_, [](const interval& part) { return part.end <= part.begin; });
  const auto by_begin = [](const interval& a, const interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(parts_.begin(), parts_.end(), by_begin)) {
    std::sort(parts_.begin(), parts_.end(), by_begin);
  }
  std::size_t last = 0;
  for (std::size_t index = 1; index < parts_.size(); ++index) {
    if (parts_[index].begin <= parts_[last].end) {
      parts_[last].end = std::max(parts_[last].end, parts_[index].end);
    } else {
      parts_[++last] = parts_[index];
    }
  }
  if (!parts_.empty()) {
    parts_.resize(last + 1);
  }
}

std::int64_t interval_set::length() const noexcept {
  return std::accumulate(
      parts_.begin(), parts_.end(), std::int64_t{0},
      [](std::int64_t sum, const interval& part) { return sum + part.length(); });
}

std::int64_t interval_set::covered(interval window) const noexcept {
  if (window.end <= window.begin) {
    return 0;
  }
  auto part = std::upper_bound(
      parts_.begin(), parts_.end(), window.begin,
      [](std::int64_t time, const interval& candidate) { return time < candidate.end; });
  std::int64_t sum = 0;
  for (; part != parts_.end() && part->begin < window.end; ++part) {
    sum += std::min(part->end, window.end) - std::max(part->begin, window.begin);
  }
  return sum;
}

interval_set united(const interval_set& a, const interval_set& b) {
  std::vector<interval> all(a.parts_);
  all.insert(all.end(), b.parts_.begin(), b.parts_.end());
  return interval_set(std::move(all));
}

interval_set intersected(const interval_set& a, const interval_set& b) {
  interval_set common;
  auto left = a.parts_.begin();
  auto right = b.parts_.begin();
  while (left != a.parts_.end() && right != b.parts_.end()) {
    const interval part{std::max(left->begin, right->begin), std::min(left->end, right->end)};
    if (part.begin < part.end) {
      common.parts_.push_back(part);
    }
    (left->end < right->end ? left : right)++;
  }
  return common;
}

interval_set without(const interval_set& a, const interval_set& b) {
  interval_set rest;
  auto hole = b.parts_.begin();
  for (const auto& part : a.parts_) {
    std::int64_t begin = part.begin;
    while (hole != b.parts_.end() && hole->end <= begin) {
      ++hole;
    }
    for (auto next = hole; next != b.parts_.end() && next->begin < part.end; ++next) {
      if (begin < next->begin) {
        rest.parts_.push_back({begin, next->begin});
      }
      begin = std::max(begin, next->end);
    }
    if (begin < part.end) {
      rest.parts_.push_back({begin, part.end});
    }
  }
  return rest;
}

}  // namespace berth
