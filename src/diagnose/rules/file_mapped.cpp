// SPDX-License-Identifier: Apache-2.0
// Copies whose host end is a mapping of a file. They are pageable copies with a cost of their own:
// the pages are faulted in one after the other while the copy runs, and a runtime that pins pages
// in place does so with pages of a file, which is slow. Pinning is not the fix, for file pages can
// hardly be pinned; reading the file into pinned memory is.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// What reading by several threads into pinned slots reaches of the pinned rate (H200: 25 of
// 55 GB/s for files in the page cache, docs/rules/file-mapped-copies.md).
constexpr double read_ahead_ratio = 0.45;

constexpr wording read_instead{
    .pytorch =
        "Read the file instead of mapping it: safetensors.torch.load_file(path, device='cuda') "
        "stages for itself; else read into a pinned tensor that is kept and copy from that with "
        "non_blocking=True.",
    .hip =
        "Read the file (pread, several threads) piece by piece into two buffers from "
        "hipHostMalloc, and copy one with hipMemcpyAsync while the other is filled. Do not "
        "hipHostRegister the mapping.",
    .cuda =
        "Read the file (pread, several threads) piece by piece into two buffers from "
        "cudaMallocHost, and copy one with cudaMemcpyAsync while the other is filled. Do not "
        "cudaHostRegister the mapping."};

constexpr wording write_instead{
    .pytorch = "Copy results into a pinned tensor that is kept, and write that to the file.",
    .hip = "Copy results into a buffer from hipHostMalloc, and write() that to the file.",
    .cuda = "Copy results into a buffer from cudaMallocHost, and write() that to the file."};

std::vector<std::string> how_to_read(const workload& work, const selection& chosen) {
  std::vector<std::string> lines;
  for (const auto& [way, words] : {std::pair(direction::host_to_device, read_instead),
                                   std::pair(direction::device_to_host, write_instead)}) {
    if (std::any_of(chosen.begin(), chosen.end(), [&, way = way](std::uint32_t index) {
          return work.copies()[index].details->direction == way;
        })) {
      lines.push_back(in_terms_of(work, words));
    }
  }
  return lines;
}

}  // namespace

void find_file_mapped_copies(const workload& work, std::vector<finding>& findings) {
  auto chosen = lasting_copies(work, is_pageable);
  std::erase_if(chosen, [&](std::uint32_t index) { return !is_of_file(work.copies()[index]); });
  const auto total = sum_of(work, chosen);
  auto found = gains_against(work, chosen, host_end::pinned, read_ahead_ratio);
  const auto share = work.share_of_span(found.known > 0 ? found.total_ns : total.wall_ns);
  if (chosen.empty() || share < small_share) {
    return;
  }
  const auto way = main_direction(work, chosen);
  const bool is_fault = is_symptom(work, total) && share >= material_share;
  finding result{
      .rule = "file-mapped-copies",
      .severity = is_fault ? severity::fault : severity::advice,
      .headline = fmt::format(
          "{} straight {} a mapped file {} {}, {}{}.", copies_of(total.count),
          way == direction::host_to_device ? "from" : "into", total.count == 1 ? "takes" : "take",
          milliseconds(total.wall_ns), compared_with_kernels(work, total),
          found.known > 0 ? fmt::format("; read ahead into pinned memory they "
                                        "would take about {}",
                                        milliseconds(total.wall_ns - found.total_ns))
                          : ""),
      .evidence = evidence_of(total),
      .places = places_of(work, chosen),
      .lost_ns = found.total_ns,
      .saving = std::nullopt,
      .fix = how_to_read(work, chosen),
      .gains = {}};
  if (found.known > 0) {
    result.evidence.push_back({"time if read ahead",
                               static_cast<double>(total.wall_ns - found.total_ns),
                               unit::nanoseconds, provenance::modelled});
    result.saving =
        saving{found.total_ns, bound::at_most, provenance::modelled,
               fmt::format("{} of the pinned rate, as measured for files in the page cache; {}",
                           percent(read_ahead_ratio), basis_of(work, way, host_end::pinned))};
    result.gains = std::move(found.each);
  }
  findings.push_back(std::move(result));
}

}  // namespace berth::diagnose
