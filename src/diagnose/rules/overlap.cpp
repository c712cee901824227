// SPDX-License-Identifier: Apache-2.0
// Copies of pinned memory: do they run beside kernels, and do they run at the link's rate?
#include <algorithm>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// A copy engine works beside kernels from two copies on: the next one's data during this one's
// work.
constexpr std::size_t fewest_copies = 2;
// Below this share of the expected rate something else than the memory kind limits.
constexpr double slow_ratio = 0.6;
constexpr bytes_t rate_bound_bytes = 4 * mib;

selection page_locked_copies(const workload& work) {
  return select(
      work, [](const copy& which) { return is_page_locked(which.host_kind()) && !is_tiny(which); });
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

std::string headline_of(const workload& work, const selection& chosen, const sums& total,
                        std::int64_t exposed) {
  const auto expected = gains_against(work, chosen, host_end::pinned);
  const bool at_link_rate =
      expected.known == total.count && static_cast<double>(expected.expected_ns) >=
                                           link_rate_ratio * static_cast<double>(total.working_ns);
  return fmt::format(
      "Copies are pinned{} but not overlapped: {} of {} copies ({}) run while no "
      "kernel does.",
      at_link_rate ? fmt::format(" and at the link's rate ({})", format_rate(total.working_rate()))
                   : "",
      milliseconds(exposed), total.count, milliseconds(total.duration_ns));
}

}  // namespace

void find_no_overlap(const workload& work, std::vector<finding>& findings) {
  const auto chosen = page_locked_copies(work);
  if (chosen.size() < fewest_copies) {
    return;
  }
  std::int64_t exposed = 0;
  std::int64_t beside = 0;
  std::vector<gain> each;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    const auto covered = work.kernels_of(which.device).covered({which.begin, which.end});
    beside += covered;
    exposed += which.duration() - covered;
    each.push_back({index, which.duration() - covered});
  }
  // A copy hides behind a kernel only while one runs that does not already hide another.
  const auto room = std::max<std::int64_t>(0, work.totals().kernel_busy_ns - beside);
  const auto gained = std::min(exposed, room);
  if (work.share_of_span(gained) < material_share) {
    return;
  }
  const auto total = sum_of(work, chosen);
  findings.push_back(
      {.rule = "no-overlap",
       .severity = severity::advice,
       .headline = headline_of(work, chosen, total, exposed),
       .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                    {"time", static_cast<double>(total.duration_ns), unit::nanoseconds},
                    {"time beside kernels", static_cast<double>(beside), unit::nanoseconds},
                    {"rate reached", total.working_rate(), unit::gb_per_s}},
       .places = places_of(work, chosen),
       .lost_ns = gained,
       .saving = saving{gained, bound::at_most, provenance::modelled,
                        "if every copy hides behind kernels that do not need its data"},
       .fix = {in_terms_of(work, overlap)},
       .gains = std::move(each)});
}

void find_slow_pinned_copies(const workload& work, std::vector<finding>& findings) {
  auto slow = page_locked_copies(work);
  std::erase_if(slow, [&](std::uint32_t index) {
    const auto& which = work.copies()[index];
    const auto bytes = which.details->bytes.value_or(0);
    const auto expected =
        work.expected().time_ns(which.details->direction, host_end::pinned, bytes);
    return bytes < rate_bound_bytes || !expected ||
           *expected >= slow_ratio * static_cast<double>(which.working_ns());
  });
  auto found = gains_against(work, slow, host_end::pinned);
  if (slow.empty() || work.share_of_span(found.total_ns) < material_share) {
    return;
  }
  const auto total = sum_of(work, slow);
  const auto way = main_direction(work, slow);
  findings.push_back(
      {.rule = "slow-pinned-copies",
       .severity = severity::advice,
       .headline =
           fmt::format("{} pinned copies reach {} where this GPU's link gives about {}: "
                       "the memory is right, the path is not.",
                       total.count, format_rate(total.working_rate()),
                       format_rate(work.expected().rate(way, host_end::pinned).value_or(0))),
       .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                    {"bytes", static_cast<double>(total.bytes), unit::bytes},
                    {"rate reached", total.working_rate(), unit::gb_per_s},
                    {"link's rate", work.expected().rate(way, host_end::pinned).value_or(0),
                     unit::gb_per_s, work.expected().known(way, host_end::pinned)}},
       .places = places_of(work, slow),
       .lost_ns = found.total_ns,
       .saving = saving{found.total_ns, bound::at_most, provenance::modelled,
                        basis_of(work, way, host_end::pinned)},
       .fix = {"Look at the path: link width and speed (lspci -vv, LnkSta of the port above the "
               "GPU), the NUMA node of the buffer, other traffic on the link."},
       .gains = std::move(found.each)});
}

}  // namespace berth::diagnose
