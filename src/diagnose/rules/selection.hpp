// SPDX-License-Identifier: Apache-2.0
// What several rules share: which copies count as what, their sums, and the words of a fix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/interval.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/workload.hpp"

namespace berth::diagnose {

// Below this a copy's time is the fixed cost of a call, whatever the link: 64 KiB take about as
// long as 4 KiB (docs/rules/tiny-copies.md has the measurements).
inline constexpr bytes_t tiny_bytes = 64 * kib;

// Shares of the GPU span. What is below the first is not worth a finding.
inline constexpr double small_share = 0.02;
inline constexpr double material_share = 0.05;
inline constexpr double fault_share = 0.10;
// Copies that reach this share of the expected rate are at the link's rate.
inline constexpr double link_rate_ratio = 0.9;
// Below this share of the pinned rate a copy's memory, or its path, is not what it should be.
inline constexpr double slow_ratio = 0.6;
// Copies above half of the kernel time are the first symptom of memory in the wrong place.
inline constexpr double symptom_ratio = 0.5;

// Indices of copies in a workload.
using selection = std::vector<std::uint32_t>;

[[nodiscard]] bool is_tiny(const copy& which) noexcept;
// Between host and device, whether its time is known or not.
[[nodiscard]] bool is_host_copy(const copy& which) noexcept;
// Whether its duration says something: an asynchronous copy that nobody has timed has none.
[[nodiscard]] bool is_timed(const copy& which) noexcept;
// Known to have pages of a mapped file at its host end.
[[nodiscard]] bool is_of_file(const copy& which) noexcept;
// Made by berth's copy engine in the runtime's place: what made it slow is repaired.
[[nodiscard]] bool is_fixed(const copy& which) noexcept;
// A copy whose call failed has moved nothing.
[[nodiscard]] bool has_failed(const workload& work, const copy& which) noexcept;

// Copies between host and device that satisfy `wanted`, in order of time; also those whose time is
// unknown, for rules that go by counts, bytes or addresses.
template <typename Predicate>
[[nodiscard]] selection select_with_untimed(const workload& work, Predicate wanted) {
  selection chosen;
  const auto copies = work.copies();
  for (std::uint32_t index = 0; index < copies.size(); ++index) {
    if (is_host_copy(copies[index]) && !has_failed(work, copies[index]) && wanted(copies[index])) {
      chosen.push_back(index);
    }
  }
  return chosen;
}

// The same without them, for rules that go by time.
template <typename Predicate>
[[nodiscard]] selection select(const workload& work, Predicate wanted) {
  return select_with_untimed(work,
                             [&](const copy& which) { return is_timed(which) && wanted(which); });
}

// When a copy did its own work: without the queueing in front.
[[nodiscard]] inline interval working_interval(const copy& which) noexcept {
  return {which.end - which.working_ns(), which.end};
}

struct sums {
  std::uint64_t count = 0;
  bytes_t bytes = 0;  // of those that know theirs
  std::uint64_t without_bytes = 0;
  std::uint64_t untimed = 0;          // whose time is unknown
  std::uint64_t timed_by_device = 0;  // and not by the call
  std::int64_t duration_ns = 0;
  std::int64_t working_ns = 0;
  // Of those that know their bytes and their time: what a rate is made of.
  bytes_t rated_bytes = 0;
  std::int64_t rated_working_ns = 0;
  // Lengths of unions of the working time: side by side counts once, on one device (added over
  // devices) or anywhere.
  std::int64_t busy_ns = 0;
  std::int64_t wall_ns = 0;

  // Of the copies that know both; nothing if none does.
  [[nodiscard]] std::optional<double> working_rate() const noexcept;
};
[[nodiscard]] sums sum_of(const workload& work, const selection& chosen);

// "copies", "bytes", "time", "rate reached"; what is not known is left out.
[[nodiscard]] std::vector<measure> evidence_of(const sums& total);

// Time against that of all kernels; nothing without kernels.
[[nodiscard]] std::optional<double> ratio_to_kernels(const workload& work,
                                                     const sums& total) noexcept;

// Above half of the kernel time. Where that is unknown: even if kernels fill the rest of the span.
[[nodiscard]] bool is_symptom(const workload& work, const sums& total);

// At most `most` places with the most time, largest first.
[[nodiscard]] std::vector<place> places_of(const workload& work, const selection& chosen,
                                           std::size_t most = 3);

// What copies take beyond what they should, as wall time: where copies run side by side, on one
// link or on several devices, what they gain together is less than the sum of what each would.
struct gains {
  std::vector<gain> each;
  std::int64_t total_ns = 0;  // of `each`
  double expected_ns = 0;     // of the copies that have an expectation
  std::uint64_t known = 0;    // copies that have one
};
// Against the expected time; copies without an expectation gain nothing. `reached`: the share of
// the expected rate that is to be had.
[[nodiscard]] gains gains_against(const workload& work, const selection& chosen, host_end end,
                                  double reached = 1.0);
// Against what `remaining` says is left of each copy, in ns; nothing where it is not known.
[[nodiscard]] gains gains_to(const workload& work, const selection& chosen,
                             const std::function<std::optional<double>(const copy&)>& remaining);
// As if the copies were not there at all.
[[nodiscard]] gains gains_without(const workload& work, const selection& chosen);

// Known expectations for all of them, and met.
[[nodiscard]] bool at_link_rate(const workload& work, const selection& chosen);

// Whether kernels of the program may have run at some time. Where kernels have times, these tell;
// in a trace that has none, the calls that asked for them do.
class kernel_order {
public:
  explicit kernel_order(const workload& work);
  [[nodiscard]] bool any_between(std::uint32_t device, interval window) const;
  // Neither: how long kernels ran is unknown.
  [[nodiscard]] bool without_times() const noexcept { return !launches_.empty(); }

private:
  const workload* work_;
  std::vector<std::int64_t> launches_;  // sorted; empty where kernels have times
};

// All that a device does, copies too, so that what is left is idle.
[[nodiscard]] interval_set work_of_device(const workload& work, std::uint32_t device);
// Whether one CPU thread can have gone over so many bytes in that time, and hardly have done more.
[[nodiscard]] bool is_pace_of_cpu(bytes_t bytes, interval time) noexcept;
// The downloads, and the uploads that bring the same data back, of buffers whose host address is
// known and that make round trips again and again. Ascending.
[[nodiscard]] selection round_trips_by_address(const workload& work);

// When the real work of a device begins: the moment by which a fiftieth of its kernel time has
// passed. What was copied before is initialisation.
[[nodiscard]] std::int64_t start_of_work(const workload& work, std::uint32_t device);
// Uploads from host memory of such kinds, if all that matter happen before the work starts; empty
// otherwise.
[[nodiscard]] selection initial_uploads(const workload& work, bool (*wanted)(memory_kind));
// Copies of such kinds that are worth a look: not tiny, and no initial uploads that would gain
// little.
[[nodiscard]] selection lasting_copies(const workload& work, bool (*wanted)(memory_kind));

// Ways to say the same in the program's terms.
struct wording {
  std::string_view pytorch;
  std::string_view hip;
  std::string_view cuda;
  std::string_view cupy = {};  // empty: as for the runtime
  std::string_view jax = {};
};
[[nodiscard]] std::string in_terms_of(const workload& work, const wording& ways);
// How to pin the host side of such copies: a line for uploads, one for downloads.
[[nodiscard]] std::vector<std::string> how_to_pin(const workload& work, const selection& chosen);

// "at 55.4 GB/s (nominal: figures of ...)": for Saving::basis.
[[nodiscard]] std::string basis_of(const workload& work, direction way, host_end end);
// The direction that most of the time of a selection goes.
[[nodiscard]] direction main_direction(const workload& work, const selection& chosen);

// "91 %"
[[nodiscard]] std::string percent(double share);
// "91 % of kernel time", "5.3 times the kernel time", "without any kernel"; "12 % of the span (when
// kernels ran is not known)" where the trace has only their launches.
[[nodiscard]] std::string compared_with_kernels(const workload& work, const sums& total);
// "2 copies", "1 copy"
[[nodiscard]] std::string copies_of(std::uint64_t count, std::string_view adjective = {});
[[nodiscard]] std::string milliseconds(std::int64_t time_ns);

}  // namespace berth::diagnose
