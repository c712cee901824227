// SPDX-License-Identifier: Apache-2.0
// Waiting mistaken for copying: a small copy whose time is the queue in front of it. Profilers book
// it as copy time, and advice to pin its memory would save nothing.
//
// On the device: a copy whose interval lies over kernels of its own stream was queued then, because
// a stream works in order (old ROCm stamps a copy when it is submitted). On the host: the call, or
// the synchronisation right behind it, blocks while kernels that were queued before run.
#include <algorithm>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// A copy that waits less than this many times its own length is just a copy behind a kernel.
constexpr std::int64_t waiting_factor = 10;

// Host time blocked for this copy in which kernels ran before it did.
std::int64_t host_wait(const workload& work, const copy& which) {
  if (which.call == trace::no_row) {
    return 0;
  }
  const auto& events = work.events();
  const auto begin = events.begin(which.call);
  auto end = events.end(which.call);
  if (which.wait != trace::no_row) {
    end = std::max(end, events.end(which.wait));
  }
  return work.kernels_of(which.device).covered({begin, std::min(end, which.begin)});
}

std::int64_t waiting(const workload& work, const copy& which) {
  return std::max(which.queued_ns, host_wait(work, which));
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
  std::int64_t waited = 0;
  const auto chosen = select(work, [&](const copy& which) {
    if (!is_tiny(which)) {
      return false;
    }
    const auto time = waiting(work, which);
    if (time < waiting_factor * std::max<std::int64_t>(1, which.working_ns())) {
      return false;
    }
    waited += time;
    return true;
  });
  const auto share = work.share_of_span(waited);
  if (chosen.empty() || share < material_share) {
    return;
  }
  const auto total = sum_of(work, chosen);
  const auto per_copy = waited / static_cast<std::int64_t>(total.count);
  findings.push_back(
      {.rule = "waiting-not-copying",
       .severity = severity::advice,
       .headline = fmt::format("{} small copies ({}) seem slow but wait for kernels queued before "
                               "them: {} of waiting, {} of copying.",
                               total.count, format_bytes(total.bytes), milliseconds(waited),
                               milliseconds(total.working_ns)),
       .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                    {"bytes", static_cast<double>(total.bytes), unit::bytes},
                    {"waiting", static_cast<double>(waited), unit::nanoseconds},
                    {"waiting per copy", static_cast<double>(per_copy), unit::nanoseconds},
                    {"copying", static_cast<double>(total.working_ns), unit::nanoseconds}},
       .places = places_of(work, chosen),
       .lost_ns = 0,
       .saving = saving{0, bound::about, provenance::modelled,
                        "the kernels must run anyway; only the host could do other work meanwhile"},
       .fix = {in_terms_of(work, fewer)},
       .gains = {}});
}

}  // namespace berth::diagnose
