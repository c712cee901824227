// SPDX-License-Identifier: Apache-2.0
// Copies of which the trace does not say whether their host memory is pageable or pinned. Traces of
// ROCm never do. Where it is known what pinned memory gives, the rate tells: far below it, the
// memory is probably pageable. Where it is not known, all that can be said is what the copies cost.
#include <algorithm>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr bool is_unknown(memory_kind kind) noexcept {
  return kind == memory_kind::unknown;
}

constexpr wording check{
    .pytorch =
        "See whether the host tensors are pinned (t.is_pinned()), and whether the copies are "
        "issued with non_blocking=True.",
    .hip =
        "See where the host buffers come from: malloc, new and std::vector are pageable, "
        "hipHostMalloc is pinned (hipPointerGetAttributes tells).",
    .cuda =
        "See where the host buffers come from: malloc, new and std::vector are pageable, "
        "cudaMallocHost is pinned (cudaPointerGetAttributes tells)."};

bool is_slow(const workload& work, const copy& which) {
  if (!which.details->bytes) {
    return false;
  }
  const auto expected =
      work.expected().time_ns(which.details->direction, host_end::pinned, *which.details->bytes);
  return expected && *expected < slow_ratio * static_cast<double>(which.working_ns());
}

// The machine's rates are known: copies far below them.
void find_slow(const workload& work, selection chosen, std::vector<finding>& findings) {
  std::erase_if(chosen, [&](std::uint32_t index) { return !is_slow(work, work.copies()[index]); });
  auto found = gains_against(work, chosen, host_end::pinned);
  const auto share = work.share_of_span(found.total_ns);
  if (chosen.empty() || share < small_share) {
    return;
  }
  const auto total = sum_of(work, chosen);
  const auto way = main_direction(work, chosen);
  const auto rate = work.expected().rate(way, host_end::pinned).value_or(0);
  auto evidence = evidence_of(total);
  evidence.push_back(
      {"rate if pinned", rate, unit::gb_per_s, work.expected().known(way, host_end::pinned)});
  std::vector<std::string> fix{in_terms_of(work, check)};
  for (auto& line : how_to_pin(work, chosen)) {
    fix.push_back("If pageable: " + std::move(line));
  }
  const bool is_fault = is_symptom(work, total) && share >= material_share;
  findings.push_back(
      {.rule = "unknown-memory-kind",
       .severity = is_fault ? severity::fault : severity::advice,
       .headline = fmt::format(
           "{} take {}, {}, and reach {} where pinned memory gives about {}: their host memory is "
           "probably pageable (the trace does not say).",
           copies_of(total.count), milliseconds(total.wall_ns), compared_with_kernels(work, total),
           format_rate(total.working_rate().value_or(0)), format_rate(rate)),
       .evidence = std::move(evidence),
       .places = places_of(work, chosen),
       .lost_ns = found.total_ns,
       .saving = saving{found.total_ns, bound::about, provenance::modelled,
                        fmt::format("a suspicion, from the rate alone; {}",
                                    basis_of(work, way, host_end::pinned))},
       .fix = std::move(fix),
       .gains = std::move(found.each)});
}

// Neither the kind nor what to expect is known, for want of bytes or of a rate: only what the
// copies cost.
void find_costly(const workload& work, const selection& chosen, std::vector<finding>& findings) {
  const auto total = sum_of(work, chosen);
  if (chosen.empty() || !is_symptom(work, total) ||
      work.share_of_span(total.wall_ns) < material_share) {
    return;
  }
  const auto rate = total.working_rate();
  const bool has_rate =
      work.expected().rate(main_direction(work, chosen), host_end::pinned).has_value();
  findings.push_back(
      {.rule = "unknown-memory-kind",
       .severity = severity::advice,
       .headline = fmt::format(
           "{} take {}, {}{}; it is not known whether their host memory is pinned, nor {}.",
           copies_of(total.count), milliseconds(total.wall_ns), compared_with_kernels(work, total),
           rate ? fmt::format(", at {}", format_rate(*rate)) : "",
           has_rate ? "how many bytes they move" : "what this machine's link gives"),
       .evidence = evidence_of(total),
       .places = places_of(work, chosen),
       .lost_ns = 0,
       .saving = std::nullopt,
       .fix = {in_terms_of(work, check)},
       .gains = {}});
}

}  // namespace

void find_unknown_memory_kind(const workload& work, std::vector<finding>& findings) {
  auto chosen = lasting_copies(work, is_unknown);
  if (gains_against(work, chosen, host_end::pinned).known > 0) {
    find_slow(work, std::move(chosen), findings);
  } else {
    find_costly(work, chosen, findings);
  }
}

}  // namespace berth::diagnose
