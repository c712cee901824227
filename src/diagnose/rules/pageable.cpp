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

// Copies above half of the kernel time are the note's first symptom.
constexpr double symptom_ratio = 0.5;
// Far below the pageable rate: fresh pages run at a tenth of it, other causes rarely below half.
constexpr double fresh_ratio = 0.4;
constexpr bytes_t fresh_bytes = mib;

selection pageable_copies(const workload& work) {
  auto chosen = select(work, [](const copy& which) {
    return which.host_kind() == memory_kind::pageable && which.details->bytes && !is_tiny(which);
  });
  const auto once = initial_uploads(work);
  const auto once_gain = gains_against(work, once, host_end::pinned).total_ns;
  if (work.share_of_span(once_gain) < material_share) {
    std::erase_if(chosen, [&](std::uint32_t index) {
      return std::binary_search(once.begin(), once.end(), index);
    });
  }
  return chosen;
}

double ratio_to_kernels(const workload& work, std::int64_t time_ns) {
  const auto kernels = work.totals().kernel_busy_ns;
  return kernels > 0 ? static_cast<double>(time_ns) / static_cast<double>(kernels) : 1e9;
}

constexpr wording pin_upload{
    .pytorch =
        "Pin the host tensors: DataLoader(pin_memory=True) or t.pin_memory() once, then "
        "t.to(device, non_blocking=True); the copy can then run beside kernels too.",
    .hip =
        "Allocate the host buffer with hipHostMalloc (hipHostFree frees it), or hipHostRegister "
        "one that lives long, and copy with hipMemcpyAsync.",
    .cuda =
        "Allocate the host buffer with cudaMallocHost (cudaFreeHost frees it), or "
        "cudaHostRegister one that lives long, and copy with cudaMemcpyAsync."};
constexpr wording pin_download{
    .pytorch =
        "Copy results into a pinned tensor that is kept: out = torch.empty_like(g, "
        "device='cpu', pin_memory=True) once, then out.copy_(g, non_blocking=True).",
    .hip = "Copy results into a buffer from hipHostMalloc that is kept (hipHostFree frees it).",
    .cuda = "Copy results into a buffer from cudaMallocHost that is kept (cudaFreeHost frees it)."};
constexpr wording keep_destination{
    .pytorch =
        "x.cpu() allocates a new tensor each time: keep one destination and copy_() into "
        "it, best a pinned one.",
    .hip = "Keep one destination buffer and copy into it again, best one from hipHostMalloc.",
    .cuda = "Keep one destination buffer and copy into it again, best one from cudaMallocHost."};

std::string cost_sentence(const workload& work, const sums& total, const gains& found) {
  const auto ratio = ratio_to_kernels(work, total.working_ns);
  const auto compared = work.totals().kernel_busy_ns > 0
                            ? fmt::format("{} of kernel time", percent(ratio))
                            : std::string("without any kernel");
  auto text = fmt::format("Pageable copies take {}, {}", milliseconds(total.working_ns), compared);
  if (found.known > 0) {
    text += fmt::format("; pinned they would take about {}",
                        milliseconds(total.working_ns - found.total_ns));
  }
  return text + ".";
}

}  // namespace

void find_pageable_copies(const workload& work, std::vector<finding>& findings) {
  const auto chosen = pageable_copies(work);
  const auto total = sum_of(work, chosen);
  auto found = gains_against(work, chosen, host_end::pinned);
  const auto ratio = ratio_to_kernels(work, total.working_ns);
  // Without an expectation the time itself has to do.
  const auto share = work.share_of_span(found.known > 0 ? found.total_ns : total.working_ns);
  if (chosen.empty() || share < small_share) {
    return;
  }
  const auto way = main_direction(work, chosen);
  finding result{.rule = "pageable-copies",
                 .severity = ratio > symptom_ratio && share >= material_share ? severity::fault
                                                                              : severity::advice,
                 .headline = cost_sentence(work, total, found),
                 .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                              {"bytes", static_cast<double>(total.bytes), unit::bytes},
                              {"time", static_cast<double>(total.working_ns), unit::nanoseconds},
                              {"rate reached", total.working_rate(), unit::gb_per_s}},
                 .places = places_of(work, chosen),
                 .lost_ns = found.total_ns,
                 .saving = std::nullopt,
                 .fix = {},
                 .gains = {}};
  if (found.known > 0) {
    const auto known = work.expected().known(way, host_end::pinned);
    result.evidence.push_back({"time if pinned",
                               static_cast<double>(total.working_ns - found.total_ns),
                               unit::nanoseconds, provenance::modelled});
    result.evidence.push_back({"rate if pinned",
                               work.expected().rate(way, host_end::pinned).value_or(0),
                               unit::gb_per_s, known});
    result.saving = saving{found.total_ns, bound::about, provenance::modelled,
                           basis_of(work, way, host_end::pinned)};
    result.gains = std::move(found.each);
  }
  const auto has_direction = [&](direction wanted) {
    return std::any_of(chosen.begin(), chosen.end(), [&](std::uint32_t index) {
      return work.copies()[index].details->direction == wanted;
    });
  };
  if (has_direction(direction::host_to_device)) {
    result.fix.push_back(in_terms_of(work, pin_upload));
  }
  if (has_direction(direction::device_to_host)) {
    result.fix.push_back(in_terms_of(work, pin_download));
  }
  findings.push_back(std::move(result));
}

void find_fresh_pages(const workload& work, std::vector<finding>& findings) {
  const auto way = direction::device_to_host;
  const auto slow = select(work, [&](const copy& which) {
    if (which.host_kind() != memory_kind::pageable || which.details->direction != way ||
        which.details->bytes.value_or(0) < fresh_bytes) {
      return false;
    }
    const auto expected = work.expected().time_ns(way, host_end::pageable, *which.details->bytes);
    return expected && *expected < fresh_ratio * static_cast<double>(which.working_ns());
  });
  auto found = gains_against(work, slow, host_end::pageable);
  if (slow.empty() || work.share_of_span(found.total_ns) < small_share) {
    return;
  }
  const auto total = sum_of(work, slow);
  const auto rate = work.expected().rate(way, host_end::pageable).value_or(0);
  findings.push_back(
      {.rule = "fresh-pages",
       .severity = severity::advice,
       .headline = fmt::format("{} downloads reach {} where pageable memory gives about {}: the "
                               "destination's pages are probably fresh (never touched before).",
                               total.count, format_rate(total.working_rate()), format_rate(rate)),
       .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                    {"bytes", static_cast<double>(total.bytes), unit::bytes},
                    {"rate reached", total.working_rate(), unit::gb_per_s},
                    {"pageable rate", rate, unit::gb_per_s,
                     work.expected().known(way, host_end::pageable)}},
       .places = places_of(work, slow),
       .lost_ns = found.total_ns,
       .saving = saving{found.total_ns, bound::about, provenance::modelled,
                        fmt::format("a suspicion, from the rate alone; {}",
                                    basis_of(work, way, host_end::pageable))},
       .fix = {in_terms_of(work, keep_destination)},
       .gains = std::move(found.each)});
}

void find_one_off_copies(const workload& work, std::vector<finding>& findings) {
  const auto once = initial_uploads(work);
  auto found = gains_against(work, once, host_end::pinned);
  const auto total = sum_of(work, once);
  if (once.empty() || work.totals().kernels == 0 ||
      work.share_of_span(found.known > 0 ? found.total_ns : total.working_ns) >= material_share) {
    return;
  }
  auto headline =
      fmt::format("{} pageable uploads ({}, {}) happen once, before the work starts", total.count,
                  format_bytes(total.bytes), milliseconds(total.working_ns));
  headline += found.known > 0
                  ? fmt::format(": pinning them would save {} of {}, worth little.",
                                milliseconds(found.total_ns), milliseconds(work.totals().span_ns))
                  : std::string(": worth little.");
  findings.push_back(
      {.rule = "one-off-copies",
       .severity = severity::note,
       .headline = std::move(headline),
       .evidence = {{"copies", static_cast<double>(total.count), unit::count},
                    {"bytes", static_cast<double>(total.bytes), unit::bytes},
                    {"time", static_cast<double>(total.working_ns), unit::nanoseconds},
                    {"share of the span", work.share_of_span(total.working_ns), unit::share}},
       .places = places_of(work, once),
       .lost_ns = found.total_ns,
       .saving = found.known > 0 ? std::optional(saving{
                                       found.total_ns, bound::about, provenance::modelled,
                                       basis_of(work, direction::host_to_device, host_end::pinned)})
                                 : std::nullopt,
       .fix = {"Nothing to do unless the program starts often."},
       .gains = std::move(found.each)});
}

}  // namespace berth::diagnose
