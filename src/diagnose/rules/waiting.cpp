// SPDX-License-Identifier: Apache-2.0
// Waiting mistaken for copying: a small copy whose time is the queue in front of it. Profilers book
// it as copy time, and advice to pin its memory would save nothing.
//
// On the device: a copy whose interval lies over kernels of its own stream was queued then, because
// a stream works in order (old ROCm stamps a copy when it is submitted). On the host: the call, or
// the synchronisation right behind it, blocks while kernels that were queued before run.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// A copy that waits less than this many times its own length is just a copy behind a kernel.
constexpr std::int64_t waiting_factor = 10;

// Host time blocked for this copy before it began.
interval host_wait(const workload& work, const copy& which) {
  if (which.call == trace::no_row) {
    return {0, 0};
  }
  const auto& events = work.events();
  auto end = events.end(which.call);
  if (which.wait != trace::no_row) {
    end = std::max(end, events.end(which.wait));
  }
  return {events.begin(which.call), std::min(end, which.begin)};
}

// Time in which kernels ran before this copy did.
std::int64_t waiting(const workload& work, const copy& which) {
  return std::max(which.queued_ns, work.kernels_of(which.device).covered(host_wait(work, which)));
}

// Of all of them, on the clock: several copies may wait for the same kernels.
std::int64_t wall_of_waiting(const workload& work, const selection& chosen) {
  std::map<std::uint32_t, std::vector<interval>> by_device;
  std::int64_t sum = 0;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    auto& parts = by_device[which.device];
    parts.push_back(host_wait(work, which));
    if (which.queued_ns > 0) {
      parts.push_back({which.begin, which.end});
    }
    sum += waiting(work, which);
  }
  std::int64_t wall = 0;
  for (auto& [device, parts] : by_device) {
    const interval_set together(std::move(parts));
    for (const auto& part : together.parts()) {
      wall += work.kernels_of(device).covered(part);
    }
  }
  return std::min(wall, sum);
}

constexpr wording fewer{
    .pytorch =
        "Pinning would save nothing here. Ask for results less often (.item(), .cpu(), print "
        "of a tensor each wait for all queued kernels), or read them a step later.",
    .hip =
        "Pinning would save nothing here. Queue the copy with hipMemcpyAsync into pinned memory "
        "and read the result later, after an event, instead of blocking behind the kernels.",
    .cuda =
        "Pinning would save nothing here. Queue the copy with cudaMemcpyAsync into pinned "
        "memory and read the result later, after an event, instead of blocking behind the "
        "kernels."};

}  // namespace

void find_waiting(const workload& work, std::vector<finding>& findings) {
  const auto chosen = select(work, [&](const copy& which) {
    return is_tiny(which) &&
           waiting(work, which) >= waiting_factor * std::max<std::int64_t>(1, which.working_ns());
  });
  const auto waited = wall_of_waiting(work, chosen);
  if (chosen.empty() || work.share_of_span(waited) < material_share) {
    return;
  }
  const auto total = sum_of(work, chosen);
  const auto per_copy = waited / static_cast<std::int64_t>(total.count);
  findings.push_back(
      {.rule = "waiting-not-copying",
       .severity = severity::advice,
       .headline =
           fmt::format("{} ({}) {} slow but {} for kernels queued before: {} of waiting, "
                       "{} of copying.",
                       copies_of(total.count, "small"), format_bytes(total.bytes),
                       total.count == 1 ? "seems" : "seem", total.count == 1 ? "waits" : "wait",
                       milliseconds(waited), milliseconds(total.wall_ns)),
       .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                    {"bytes", static_cast<double>(total.bytes), unit::bytes},
                    {"waiting", static_cast<double>(waited), unit::nanoseconds},
                    {"waiting per copy", static_cast<double>(per_copy), unit::nanoseconds},
                    {"copying", static_cast<double>(total.wall_ns), unit::nanoseconds}},
       .places = places_of(work, chosen),
       .lost_ns = 0,
       .saving = saving{0, bound::about, provenance::modelled,
                        "the kernels must run anyway; only the host could do other work meanwhile"},
       .fix = {in_terms_of(work, fewer)},
       .gains = {}});
}

}  // namespace berth::diagnose
