// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/judge.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace berth::bandwidth {
namespace {

using machine::bandwidth_figure;
using machine::bandwidth_verdict;

// How far a figure may be from what is expected. Page-locked copies repeat within a percent, and
// published figures of the same hardware differ by a few; pageable ones go with the CPU, its memory
// and the kernel's pages, which the data of a GPU do not hold. Below a megabyte fixed costs decide,
// which differ more from host to host.
struct tolerance {
  double lowest;  // of the expected rate
  double highest;
};
constexpr tolerance for_page_locked{0.85, 1.12};
constexpr tolerance for_pageable{0.5, 2.5};
constexpr tolerance for_small{0.4, 3.0};
constexpr bytes_t small = mib;

tolerance tolerance_of(const bandwidth_figure& one) {
  return one.bytes < small                         ? for_small
         : one.where.host == memory_kind::pageable ? for_pageable
                                                   : for_page_locked;
}

// Both directions together are this much of the slower one alone where they do not overlap.
constexpr double least_overlap = 0.5;

constexpr std::string_view link_cause =
    "the link is trained below what both ends can do: berth doctor, link-below-capability";
constexpr std::string_view remote_cause =
    "host memory is on another NUMA node than the GPU: berth doctor --affinity, then numactl as it "
    "says";
constexpr std::string_view iommu_cause =
    "an IOMMU translates, or ACS sends the way round by the root: berth doctor, iommu and "
    "acs-redirect";
constexpr std::string_view engine_cause =
    "copies are made by compute units (HSA_ENABLE_SDMA=0), not by a copy engine: berth doctor, "
    "copy-engines";
constexpr std::string_view clock_cause =
    "power or clocks are limited, or other work shares the GPU: rocm-smi, nvidia-smi -q -d "
    "PERFORMANCE";
constexpr std::string_view pages_cause =
    "the pages are far or small: numactl --cpunodebind and --membind of the GPU's node, huge pages "
    "(berth doctor, numa and huge-pages)";
constexpr std::string_view cpu_cause =
    "the thread that copies shares its CPU, or that is slow: compare with the pinned rate, which "
    "no CPU "
    "touches";
constexpr std::string_view overlap_cause =
    "the two directions take turns: one copy engine for both (berth doctor, copy-engines), or "
    "copies "
    "of one stream";

void add(std::vector<std::string>& causes, std::string_view one) {
  causes.emplace_back(one);
}

std::vector<std::string> causes_of(const bandwidth_figure& one) {
  std::vector<std::string> causes;
  if (one.overlap && *one.overlap < least_overlap) {
    add(causes, overlap_cause);
  }
  if (one.where.way == direction::device_to_device) {
    add(causes, clock_cause);
  } else if (one.where.host == memory_kind::pageable) {
    add(causes, pages_cause);
    add(causes, cpu_cause);
    add(causes, link_cause);
  } else {
    add(causes, link_cause);
    add(causes, remote_cause);
    if (one.where.by == engine::dma) {
      add(causes, engine_cause);
    }
    add(causes, iommu_cause);
    add(causes, clock_cause);
  }
  return causes;
}

// What the profile gives for the clock that the figure was taken by.
std::optional<machine::figure> expected_rate(const machine::machine_profile& of,
                                             const bandwidth_figure& one) {
  const bool by_host = one.clock == machine::timed_by::host_clock;
  const auto time = by_host ? of.expected_call_time(one.where, one.bytes)
                            : of.expected_time(one.where, one.bytes);
  // A dropped trait may be worth a factor of ten: then nothing is known.
  const bool is_known = time && time->time.count() > 0 && time->dropped.empty();
  if (!is_known) {
    return std::nullopt;
  }
  return machine::figure{
      .value = static_cast<double>(one.bytes) / static_cast<double>(time->time.count()),
      .known = time->known,
      .source = time->source};
}

void judge_one(bandwidth_figure& one, const machine::machine_profile& expected) {
  one.expected_gb_per_s = one.ns ? expected_rate(expected, one) : std::nullopt;
  if (!one.expected_gb_per_s) {
    return;
  }
  const double share = one.gb_per_s() / one.expected_gb_per_s->value;
  const auto within = tolerance_of(one);
  one.verdict = share < within.lowest    ? bandwidth_verdict::low
                : share > within.highest ? bandwidth_verdict::above_nominal
                                         : bandwidth_verdict::as_expected;
  if (one.verdict == bandwidth_verdict::low) {
    one.causes = causes_of(one);
  }
}

}  // namespace

void judge(std::vector<bandwidth_figure>& figures, int device,
           const machine::machine_profile* expected) {
  for (auto& one : figures) {
    if (one.device == device && expected != nullptr) {
      judge_one(one, *expected);
    }
  }
}

}  // namespace berth::bandwidth
