// SPDX-License-Identifier: Apache-2.0
// What several rules share: which copies count as what, their sums, and the words of a fix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "diagnose/workload.hpp"

namespace berth::diagnose {

// Below this a copy's time is the fixed cost of a call, whatever the link: 64 KiB take about as
// long as 4 KiB (docs/rules/tiny-copies.md has the measurements).
inline constexpr bytes_t tiny_bytes = 64 * kib;

// Shares of the GPU span. What is below the first is not worth a finding.
inline constexpr double small_share = 0.02;
inline constexpr double material_share = 0.05;
// Copies that reach this share of the expected rate are at the link's rate.
inline constexpr double link_rate_ratio = 0.9;

// Indices of copies in a workload.
using selection = std::vector<std::uint32_t>;

[[nodiscard]] bool is_tiny(const copy& which) noexcept;

// Copies between host and device that satisfy `wanted`, in order of time.
template <typename Predicate>
[[nodiscard]] selection select(const workload& work, Predicate wanted) {
  selection chosen;
  const auto copies = work.copies();
  for (std::uint32_t index = 0; index < copies.size(); ++index) {
    if (copies[index].between_host_and_device() && wanted(copies[index])) {
      chosen.push_back(index);
    }
  }
  return chosen;
}

struct sums {
  std::uint64_t count = 0;
  bytes_t bytes = 0;  // of those that know theirs
  std::int64_t duration_ns = 0;
  std::int64_t working_ns = 0;

  [[nodiscard]] double working_rate() const noexcept;
};
[[nodiscard]] sums sum_of(const workload& work, const selection& chosen);

// At most `most` places with the most time, largest first.
[[nodiscard]] std::vector<place> places_of(const workload& work, const selection& chosen,
                                           std::size_t most = 3);

// Per copy, what it takes beyond the expected time; copies without an expectation gain nothing.
struct gains {
  std::vector<gain> each;
  std::int64_t total_ns = 0;
  std::int64_t expected_ns = 0;  // of the copies that have an expectation
  std::uint64_t known = 0;       // copies that have one
};
[[nodiscard]] gains gains_against(const workload& work, const selection& chosen, host_end end);

// When the real work of a device begins: the moment by which a fiftieth of its kernel time has
// passed. What was copied before is initialisation.
[[nodiscard]] std::int64_t start_of_work(const workload& work, std::uint32_t device);
// Pageable uploads, if all that matter happen before the work starts; empty otherwise.
[[nodiscard]] selection initial_uploads(const workload& work);

// Ways to say the same in the program's terms.
struct wording {
  std::string_view pytorch;
  std::string_view hip;
  std::string_view cuda;
};
[[nodiscard]] std::string in_terms_of(const workload& work, const wording& ways);

// "at 55.4 GB/s (nominal: figures of ...)": for Saving::basis.
[[nodiscard]] std::string basis_of(const workload& work, direction way, host_end end);
// The direction that most of the time of a selection goes.
[[nodiscard]] direction main_direction(const workload& work, const selection& chosen);

// "91 %"
[[nodiscard]] std::string percent(double share);
[[nodiscard]] std::string milliseconds(std::int64_t time_ns);

}  // namespace berth::diagnose
