// SPDX-License-Identifier: Apache-2.0
// Staging by the program itself: pinned copies through a buffer that is used again and again, and a
// link that idles between them because one CPU thread fills (or empties) the buffer meanwhile. The
// copies look perfect, pinned and at the link's rate; what limits is the filling.
//
// A gap between two copies counts as filling if its length fits the bytes of the copy that waited
// for it: as much as a CPU moves in that time, no more and no less. Time in which the GPU works is
// no loss, and time in which the program is in a call of the GPU runtime (it allocates, it waits)
// is no filling. What else the host does for as long cannot be told from filling, so the finding
// says that it is inferred.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr bytes_t smallest_piece = 256 * kib;
constexpr std::size_t fewest_uses = 4;
constexpr std::size_t fewest_fills = 4;
// A gap in which the device works for longer than this is no idle gap.
constexpr double idle_part = 0.5;
// Four threads fill 3.4 times as fast as one (docs/performance.md: 34 of 10 GB/s).
constexpr double with_four_threads = 3.4;

std::optional<std::uint64_t> staging_address(const copy& which) {
  return which.details->direction == direction::host_to_device ? which.details->source_address
                                                               : which.details->destination_address;
}

// Copies through buffers that are used again and again, by device and direction.
using staged_copies = std::map<std::pair<std::uint32_t, direction>, selection>;

staged_copies staged_of(const workload& work) {
  auto pinned = select(work, [](const copy& which) {
    return is_page_locked(which.host_kind()) &&
           which.details->bytes.value_or(0) >= smallest_piece && staging_address(which);
  });
  std::map<std::tuple<std::uint32_t, direction, std::uint64_t>, std::size_t> uses;
  const auto key_of_use = [&](std::uint32_t index) {
    const auto& which = work.copies()[index];
    return std::tuple(which.device, which.details->direction, *staging_address(which));
  };
  // Data that goes to and fro is no staging: the host works on it, and has a rule of its own.
  const auto to_and_fro = round_trips_by_address(work);
  std::erase_if(pinned, [&](std::uint32_t index) {
    return std::binary_search(to_and_fro.begin(), to_and_fro.end(), index);
  });
  for (const auto index : pinned) {
    ++uses[key_of_use(index)];
  }
  staged_copies staged;
  for (const auto index : pinned) {
    if (uses[key_of_use(index)] >= fewest_uses) {
      const auto& which = work.copies()[index];
      staged[{which.device, which.details->direction}].push_back(index);
    }
  }
  return staged;
}

struct filling {
  std::uint32_t copy;  // that waited, or was waited for
  interval gap;
  std::int64_t idle_ns;   // of it, in which the device does nothing
  std::int64_t saved_ns;  // with four threads and two buffers in turns; never above the idle time
};

bool is_unchanged(const copy& before, const copy& after) {
  return before.details->content && after.details->content &&
         *before.details->content == *after.details->content;
}

// When the program was in calls of the GPU runtime that are no copies.
interval_set other_calls_of(const workload& work) {
  const auto& events = work.events();
  std::vector<interval> calls;
  for (trace::row index = 0; index < events.size(); ++index) {
    switch (events.kind(index)) {
      case trace::event_kind::allocation:
      case trace::event_kind::free:
      case trace::event_kind::synchronisation:
      case trace::event_kind::launch_call:
      case trace::event_kind::other_call:
        calls.push_back({events.begin(index), events.end(index)});
        break;
      default:
        break;
    }
  }
  return interval_set(std::move(calls));
}

std::vector<filling> fillings_of(const workload& work, const kernel_order& kernels,
                                 const interval_set& calls, const selection& staged) {
  const auto device = work.copies()[staged.front()].device;
  const auto busy = work_of_device(work, device);
  std::vector<filling> found;
  for (std::size_t at = 1; at < staged.size(); ++at) {
    const auto& before = work.copies()[staged[at - 1]];
    const auto& after = work.copies()[staged[at]];
    const bool is_upload = after.details->direction == direction::host_to_device;
    const auto filled = is_upload ? staged[at] : staged[at - 1];
    const auto& copied = work.copies()[filled];
    const interval gap{before.end, after.begin};
    if (gap.length() <= 0 || (kernels.without_times() && kernels.any_between(device, gap)) ||
        (is_upload && is_unchanged(before, after))) {
      continue;
    }
    const auto idle = gap.length() - busy.covered(gap);
    const interval own{gap.begin, gap.end - calls.covered(gap)};
    if (!is_pace_of_cpu(*copied.details->bytes, own) ||
        static_cast<double>(idle) < idle_part * static_cast<double>(gap.length())) {
      continue;
    }
    const auto faster =
        static_cast<std::int64_t>(static_cast<double>(gap.length()) / with_four_threads);
    const auto cycle = gap.length() + copied.duration() - std::max(faster, copied.duration());
    found.push_back({filled, gap, idle, std::min(idle, cycle)});
  }
  return found;
}

// Of one device and direction; empty unless most of the copies wait so.
std::vector<filling> settled_fillings(const workload& work, const kernel_order& kernels,
                                      const interval_set& calls, const selection& staged) {
  auto found = fillings_of(work, kernels, calls, staged);
  if (found.size() < fewest_fills || found.size() * 2 < staged.size() - 1) {
    found.clear();
  }
  return found;
}

constexpr wording fill_faster{
    .pytorch =
        "Fill the pinned memory where the data comes from (DataLoader workers with "
        "pin_memory=True, or read into a pinned tensor that is kept) instead of pin_memory() in "
        "each step, which copies with one thread.",
    .hip =
        "Produce the data in the pinned buffer (read the file into it) instead of copying it "
        "there; else fill with several threads, and use two buffers in turns, so that one is "
        "filled while the other is copied.",
    .cuda =
        "Produce the data in the pinned buffer (read the file into it) instead of copying it "
        "there; else fill with several threads, and use two buffers in turns, so that one is "
        "filled while the other is copied."};

std::string advice_on_filling(const workload& work) {
  const auto& framework = work.events().about.framework;
  if (framework == "CuPy") {
    return "cupy.asarray and asnumpy copy through CuPy's pinned buffer with one thread: keep the "
           "host array in pinned memory (cupyx.empty_pinned), fill it in place, and use "
           "gpu_array.set(host) and gpu_array.get(out=host).";
  }
  if (framework == "JAX") {
    return "XLA stages transfers with one thread: keep data on the GPU between calls, and keep "
           "host arrays in pinned memory (a sharding with memory_kind='pinned_host').";
  }
  return in_terms_of(work, fill_faster);
}

// Whose staging it is.
std::string owner_of(const workload& work) {
  const auto& framework = work.events().about.framework;
  return framework.empty() ? "the program" : framework;
}

double rate_of(bytes_t bytes, std::int64_t time_ns) {
  return time_ns > 0 ? gb_per_s(bytes, std::chrono::nanoseconds(time_ns)) : 0.0;
}

struct filling_sums {
  selection copies;
  std::vector<gain> each;
  std::int64_t gap_ns = 0;
  std::int64_t idle_ns = 0;   // wall time: links that idle side by side share it
  std::int64_t saved_ns = 0;  // the same
};

filling_sums sums_of_fillings(const workload& work) {
  filling_sums all;
  std::vector<interval> gaps;
  const kernel_order kernels(work);
  const auto calls = other_calls_of(work);
  for (const auto& [link, staged] : staged_of(work)) {
    for (const auto& one : settled_fillings(work, kernels, calls, staged)) {
      all.copies.push_back(one.copy);
      all.each.push_back({one.copy, one.saved_ns});
      gaps.push_back(one.gap);
      all.gap_ns += one.gap.length();
      all.idle_ns += one.idle_ns;
    }
  }
  const auto wall = interval_set(std::move(gaps)).length();
  const double shared =
      all.gap_ns > 0 ? static_cast<double>(wall) / static_cast<double>(all.gap_ns) : 1.0;
  if (shared < 1.0) {
    all.idle_ns = static_cast<std::int64_t>(static_cast<double>(all.idle_ns) * shared);
  }
  for (auto& one : all.each) {
    if (shared < 1.0) {
      one.time_ns = static_cast<std::int64_t>(static_cast<double>(one.time_ns) * shared);
    }
    all.saved_ns += one.time_ns;
  }
  return all;
}

}  // namespace

void find_fill_bound_staging(const workload& work, std::vector<finding>& findings) {
  auto all = sums_of_fillings(work);
  if (all.copies.empty() || work.share_of_span(all.saved_ns) < material_share) {
    return;
  }
  const auto total = sum_of(work, all.copies);
  const auto way = main_direction(work, all.copies);
  auto evidence = evidence_of(total);
  evidence.push_back({"link idle", static_cast<double>(all.idle_ns), unit::nanoseconds});
  evidence.push_back({way == direction::host_to_device ? "filled at" : "emptied at",
                      rate_of(total.bytes, all.gap_ns), unit::gb_per_s});
  evidence.push_back(
      {"rate in all", rate_of(total.bytes, all.gap_ns + total.duration_ns), unit::gb_per_s});
  if (const auto rate = work.expected().rate(way, host_end::pinned)) {
    evidence.push_back(
        {"link's rate", *rate, unit::gb_per_s, work.expected().known(way, host_end::pinned)});
  }
  findings.push_back(
      {.rule = "fill-bound-staging",
       .severity = severity::advice,
       .headline = fmt::format(
           "Bound by filling, not by the link: {} {} {} through pinned buffers at {} in all; the "
           "copies run at {}, and between them the link idles {}, as long as a CPU takes that {} "
           "at {}.",
           owner_of(work), way == direction::host_to_device ? "sends" : "fetches",
           format_bytes(total.bytes),
           format_rate(rate_of(total.bytes, all.gap_ns + total.duration_ns)),
           format_rate(total.working_rate().value_or(0)), milliseconds(all.idle_ns),
           way == direction::host_to_device ? "fills the buffer" : "empties the buffer",
           format_rate(rate_of(total.bytes, all.gap_ns))),
       .evidence = std::move(evidence),
       .places = places_of(work, all.copies),
       .lost_ns = all.idle_ns,
       .saving = saving{all.saved_ns, bound::at_most, provenance::modelled,
                        "four threads that fill one buffer while the other is copied, 3.4 times "
                        "as fast as one thread"},
       .fix = {advice_on_filling(work)},
       .gains = std::move(all.each)});
}

}  // namespace berth::diagnose
