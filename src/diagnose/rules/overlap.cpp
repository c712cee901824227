// SPDX-License-Identifier: Apache-2.0
// Copies of pinned memory: do they run beside kernels, and do they run at the link's rate?
//
// Copies of unknown memory that reach the link's rate count as pinned: pageable memory cannot.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// A copy engine works beside kernels from two copies on: the next one's data during this one's
// work.
constexpr std::size_t fewest_copies = 2;
constexpr bytes_t smallest_judged = 4 * mib;

bool acts_pinned(const workload& work, const copy& which) {
  if (which.host_kind() != memory_kind::unknown || !which.details->bytes) {
    return is_page_locked(which.host_kind());
  }
  const auto expected =
      work.expected().time_ns(which.details->direction, host_end::pinned, *which.details->bytes);
  return expected && *expected >= link_rate_ratio * static_cast<double>(which.working_ns());
}

selection pinned_copies(const workload& work) {
  return select(work,
                [&](const copy& which) { return !is_tiny(which) && acts_pinned(work, which); });
}

// Copies that had kernels before or behind them to run beside: not what is loaded before all work,
// nor what is saved after it.
selection within_the_work(const workload& work, selection chosen) {
  const auto initial = initial_uploads(
      work, [](memory_kind kind) { return is_page_locked(kind) || kind == memory_kind::unknown; });
  std::erase_if(chosen, [&](std::uint32_t index) {
    const auto& which = work.copies()[index];
    const auto kernels = work.kernels_of(which.device).parts();
    const bool saved_at_the_end = which.details->direction == direction::device_to_host &&
                                  (kernels.empty() || which.begin >= kernels.back().end);
    return saved_at_the_end || std::binary_search(initial.begin(), initial.end(), index);
  });
  return chosen;
}

constexpr wording overlap{
    .pytorch =
        "Copy the next batch in a side stream while this one computes: with "
        "torch.cuda.stream(s): x.to(device, non_blocking=True), and wait_stream(s) before "
        "its use.",
    .hip =
        "Copy the next piece with hipMemcpyAsync in a stream of its own while this one computes, "
        "and let the compute stream wait for its event (hipStreamWaitEvent).",
    .cuda =
        "Copy the next piece with cudaMemcpyAsync in a stream of its own while this one "
        "computes, and let the compute stream wait for its event (cudaStreamWaitEvent)."};

// How copies of all devices stand against kernels; side by side counts once.
struct exposure {
  std::int64_t exposed_ns = 0;  // no kernel runs
  std::int64_t beside_ns = 0;
  // What can hide: a copy needs a kernel that does not hide another one already.
  std::int64_t hideable_ns = 0;
};

exposure exposure_of(const workload& work, const selection& chosen) {
  std::map<std::uint32_t, std::vector<interval>> by_device;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    by_device[which.device].push_back({which.begin, which.end});
  }
  exposure found;
  for (auto& [device, parts] : by_device) {
    const interval_set copying(std::move(parts));
    const auto& kernels = work.kernels_of(device);
    const auto beside = intersected(copying, kernels).length();
    const auto exposed = copying.length() - beside;
    found.beside_ns += beside;
    found.exposed_ns += exposed;
    found.hideable_ns += std::min(exposed, kernels.length() - beside);
  }
  return found;
}

// What hides, by copy, as wall time: devices that copy side by side share it.
std::vector<gain> hidden(const workload& work, const selection& chosen, const sums& total,
                         const exposure& found) {
  std::vector<gain> each;
  double sum = 0;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    const auto beside = work.kernels_of(which.device).covered({which.begin, which.end});
    each.push_back({index, which.duration() - beside});
    sum += static_cast<double>(each.back().time_ns);
  }
  const double wall = total.busy_ns > 0
                          ? static_cast<double>(total.wall_ns) / static_cast<double>(total.busy_ns)
                          : 0.0;
  const double factor = sum > 0 ? static_cast<double>(found.hideable_ns) / sum * wall : 0.0;
  for (auto& one : each) {
    if (factor < 1.0) {
      one.time_ns = static_cast<std::int64_t>(static_cast<double>(one.time_ns) * factor);
    }
  }
  return each;
}

std::string headline_of(const workload& work, const selection& chosen, const sums& total,
                        const exposure& found) {
  const bool all_pinned = std::all_of(chosen.begin(), chosen.end(), [&](std::uint32_t index) {
    return is_page_locked(work.copies()[index].host_kind());
  });
  const auto rate = total.working_rate();
  std::string text = all_pinned ? "Copies are pinned" : "Copies run";
  if (rate && at_link_rate(work, chosen)) {
    text += fmt::format("{} at the link's rate ({})", all_pinned ? " and" : "", format_rate(*rate));
  } else if (!all_pinned) {
    text += " at a rate of pinned memory";
  }
  return text + fmt::format(" but {}overlapped: {} of their {} pass while no kernel runs.",
                            all_pinned ? "not " : "are not ", milliseconds(found.exposed_ns),
                            milliseconds(found.exposed_ns + found.beside_ns));
}

}  // namespace

void find_no_overlap(const workload& work, std::vector<finding>& findings) {
  const auto chosen = within_the_work(work, pinned_copies(work));
  if (chosen.size() < fewest_copies) {
    return;
  }
  const auto total = sum_of(work, chosen);
  const auto found = exposure_of(work, chosen);
  auto each = hidden(work, chosen, total, found);
  std::int64_t gained = 0;
  for (const auto& one : each) {
    gained += one.time_ns;
  }
  if (work.share_of_span(gained) < material_share) {
    return;
  }
  auto evidence = evidence_of(total);
  evidence.push_back(
      {"time beside kernels", static_cast<double>(found.beside_ns), unit::nanoseconds});
  findings.push_back(
      {.rule = "no-overlap",
       .severity = severity::advice,
       .headline = headline_of(work, chosen, total, found),
       .evidence = std::move(evidence),
       .places = places_of(work, chosen),
       .lost_ns = gained,
       .saving = saving{gained, bound::at_most, provenance::modelled,
                        "if every copy hides behind kernels that do not need its data"},
       .fix = {in_terms_of(work, overlap)},
       .gains = std::move(each)});
}

void find_slow_pinned_copies(const workload& work, std::vector<finding>& findings) {
  // Those from another NUMA node are known to be slow for that; how long a call blocked says how
  // long it waited, too, and nothing of the path.
  auto slow = select(work, [&](const copy& which) {
    return is_page_locked(which.host_kind()) && !is_tiny(which) && !is_remote(work, which) &&
           which.details->time == trace::timing::device;
  });
  std::erase_if(slow, [&](std::uint32_t index) {
    const auto& which = work.copies()[index];
    const auto bytes = which.details->bytes.value_or(0);
    const auto expected =
        work.expected().time_ns(which.details->direction, host_end::pinned, bytes);
    return bytes < smallest_judged || !expected ||
           *expected >= slow_ratio * static_cast<double>(which.working_ns());
  });
  auto found = gains_against(work, slow, host_end::pinned);
  if (slow.empty() || work.share_of_span(found.total_ns) < material_share) {
    return;
  }
  const auto total = sum_of(work, slow);
  const auto way = main_direction(work, slow);
  const auto rate = work.expected().rate(way, host_end::pinned).value_or(0);
  auto evidence = evidence_of(total);
  evidence.push_back(
      {"expected rate", rate, unit::gb_per_s, work.expected().known(way, host_end::pinned)});
  findings.push_back(
      {.rule = "slow-pinned-copies",
       .severity = severity::advice,
       .headline = fmt::format(
           "{} {} {} where about {} is expected: the memory is right, the path may not be.",
           copies_of(total.count, "pinned"), total.count == 1 ? "reaches" : "reach",
           format_rate(total.working_rate().value_or(0)), format_rate(rate)),
       .evidence = std::move(evidence),
       .places = places_of(work, slow),
       .lost_ns = found.total_ns,
       .saving = saving{found.total_ns, bound::at_most, provenance::modelled,
                        basis_of(work, way, host_end::pinned)},
       .fix = {"Look at the path: link width and speed (lspci -vv, LnkSta of the port above the "
               "GPU), the NUMA node of the buffer, other traffic on the link."},
       .gains = std::move(found.each)});
}

}  // namespace berth::diagnose
