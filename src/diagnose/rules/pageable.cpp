// SPDX-License-Identifier: Apache-2.0
// Symptom 1: the host side of copies is pageable, so that they detour through a staging buffer.
// With it, what looks like it: uploads that happen once and are worth little, and results that land
// in pages which the system has yet to provide.
#include <algorithm>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// Far below the pageable rate: fresh pages run at a tenth of it, other causes rarely below half.
constexpr double fresh_ratio = 0.4;
constexpr bytes_t fresh_bytes = mib;

using trace::host_pages;

constexpr wording keep_destination{
    .pytorch =
        "x.cpu() allocates a new tensor each time: keep one destination and copy_() into "
        "it, best a pinned one.",
    .hip = "Keep one destination buffer and copy into it again, best one from hipHostMalloc.",
    .cuda = "Keep one destination buffer and copy into it again, best one from cudaMallocHost.",
    .cupy =
        "cupy.asnumpy and get() allocate a new array each time: keep one, best from "
        "cupyx.empty_pinned, and use gpu_array.get(out=host)."};

std::string cost_sentence(const workload& work, const sums& total, const gains& found) {
  auto text = fmt::format("Pageable copies take {}, {}", milliseconds(total.wall_ns),
                          compared_with_kernels(work, total));
  if (found.known > 0) {
    text += fmt::format("; pinned they would take about {}",
                        milliseconds(total.wall_ns - found.total_ns));
  }
  return text + ".";
}

void add_saving(const workload& work, const selection& chosen, const sums& total, gains found,
                finding& result) {
  const auto way = main_direction(work, chosen);
  result.evidence.push_back({"time if pinned", static_cast<double>(total.wall_ns - found.total_ns),
                             unit::nanoseconds, provenance::modelled});
  if (const auto rate = work.expected().rate(way, host_end::pinned)) {
    result.evidence.push_back(
        {"rate if pinned", *rate, unit::gb_per_s, work.expected().known(way, host_end::pinned)});
  }
  result.saving = saving{found.total_ns, bound::about, provenance::modelled,
                         basis_of(work, way, host_end::pinned)};
  result.lost_ns = found.total_ns;
  result.gains = std::move(found.each);
}

// Downloads into pages that are known to be fresh, or, where the trace does not say what they were,
// into pages that must be from the rate alone.
selection fresh_downloads(const workload& work, host_pages known_as) {
  return select(work, [&](const copy& which) {
    const auto& details = *which.details;
    if (which.host_kind() != memory_kind::pageable || is_fixed(which) ||
        details.pages != known_as || details.direction != direction::device_to_host ||
        details.bytes.value_or(0) < fresh_bytes) {
      return false;
    }
    const auto expected =
        work.expected().time_ns(details.direction, host_end::pageable, *details.bytes);
    return known_as == host_pages::fresh ||
           (expected && *expected < fresh_ratio * static_cast<double>(which.working_ns()));
  });
}

std::string fresh_sentence(const workload& work, const sums& total, host_pages known_as) {
  const auto rate = work.expected().rate(direction::device_to_host, host_end::pageable);
  const auto reached = total.working_rate();
  const auto about = rate ? fmt::format(" where pageable memory gives about {}", format_rate(*rate))
                          : std::string();
  return fmt::format(
      "{} {} {} {}{}: the destination's pages {}.", total.count,
      total.count == 1 ? "download" : "downloads", total.count == 1 ? "reaches" : "reach",
      format_rate(reached.value_or(0)), about,
      known_as == host_pages::fresh ? "were never touched before, as the recorder saw"
                                    : "are probably fresh (never touched before)");
}

void find_fresh_by(const workload& work, host_pages known_as, std::vector<finding>& findings) {
  const auto way = direction::device_to_host;
  const auto slow = fresh_downloads(work, known_as);
  const auto total = sum_of(work, slow);
  auto found = gains_against(work, slow, host_end::pageable);
  const bool enough = found.known > 0 ? work.share_of_span(found.total_ns) >= small_share
                                      : work.share_of_span(total.wall_ns) >= material_share;
  if (slow.empty() || !enough) {
    return;
  }
  finding result{.rule = "fresh-pages",
                 .severity = severity::advice,
                 .headline = fresh_sentence(work, total, known_as),
                 .evidence = evidence_of(total),
                 .places = places_of(work, slow),
                 .lost_ns = found.total_ns,
                 .saving = std::nullopt,
                 .fix = {in_terms_of(work, keep_destination)},
                 .gains = {}};
  if (found.known > 0) {
    const auto rate = work.expected().rate(way, host_end::pageable).value_or(0);
    result.evidence.push_back(
        {"pageable rate", rate, unit::gb_per_s, work.expected().known(way, host_end::pageable)});
    const auto* const doubt =
        known_as == host_pages::fresh ? "" : "a suspicion, from the rate alone; ";
    result.saving = saving{found.total_ns, bound::about, provenance::modelled,
                           doubt + basis_of(work, way, host_end::pageable)};
    result.gains = std::move(found.each);
  }
  findings.push_back(std::move(result));
}

}  // namespace

void find_pageable_copies(const workload& work, std::vector<finding>& findings) {
  auto chosen = lasting_copies(work, is_pageable);
  // These have a rule of their own: pinning is not their fix.
  std::erase_if(chosen, [&](std::uint32_t index) { return is_of_file(work.copies()[index]); });
  const auto total = sum_of(work, chosen);
  auto found = gains_against(work, chosen, host_end::pinned);
  // Without an expectation the time itself has to do.
  const auto share = work.share_of_span(found.known > 0 ? found.total_ns : total.wall_ns);
  if (chosen.empty() || share < small_share) {
    return;
  }
  const bool is_fault = is_symptom(work, total) && share >= material_share;
  finding result{.rule = "pageable-copies",
                 .severity = is_fault ? severity::fault : severity::advice,
                 .headline = cost_sentence(work, total, found),
                 .evidence = evidence_of(total),
                 .places = places_of(work, chosen),
                 .lost_ns = 0,
                 .saving = std::nullopt,
                 .fix = how_to_pin(work, chosen),
                 .gains = {}};
  if (found.known > 0) {
    add_saving(work, chosen, total, std::move(found), result);
  }
  if (work.totals().kernels > 0 && initial_uploads(work, is_pageable).size() == chosen.size()) {
    result.fix.emplace_back(
        "These copies happen once: do not pin as much memory for them, which costs more than it "
        "saves; copy piece by piece through one small pinned buffer.");
  }
  findings.push_back(std::move(result));
}

void find_fresh_pages(const workload& work, std::vector<finding>& findings) {
  find_fresh_by(work, host_pages::fresh, findings);
  find_fresh_by(work, host_pages::unknown, findings);
}

void find_one_off_copies(const workload& work, std::vector<finding>& findings) {
  const auto once = initial_uploads(work, is_pageable);
  auto found = gains_against(work, once, host_end::pinned);
  const auto total = sum_of(work, once);
  if (once.empty() || work.totals().kernels == 0 ||
      work.share_of_span(found.known > 0 ? found.total_ns : total.wall_ns) >= material_share) {
    return;
  }
  const auto amount = total.without_bytes < total.count ? format_bytes(total.bytes) + ", " : "";
  auto headline = fmt::format(
      "{} ({}{}) before the work starts, and not again",
      total.count == 1 ? "1 pageable upload" : fmt::format("{} pageable uploads", total.count),
      amount, milliseconds(total.wall_ns));
  headline += found.known > 0
                  ? fmt::format(": pinning would save at most {} of {}, worth little.",
                                milliseconds(found.total_ns), milliseconds(work.totals().span_ns))
                  : std::string(": worth little.");
  auto evidence = evidence_of(total);
  evidence.push_back({"share of the span", work.share_of_span(total.wall_ns), unit::share});
  finding result{.rule = "one-off-copies",
                 .severity = severity::note,
                 .headline = std::move(headline),
                 .evidence = std::move(evidence),
                 .places = places_of(work, once),
                 .lost_ns = found.total_ns,
                 .saving = std::nullopt,
                 .fix = {"Nothing to do unless the program starts often."},
                 .gains = {}};
  if (found.known > 0) {
    // At most: what pinning itself costs is not known.
    result.saving = saving{found.total_ns, bound::at_most, provenance::modelled,
                           basis_of(work, direction::host_to_device, host_end::pinned)};
    result.gains = std::move(found.each);
  }
  findings.push_back(std::move(result));
}

}  // namespace berth::diagnose
