// SPDX-License-Identifier: Apache-2.0
// Copies between host and GPU that a kernel carries while kernels of the program run: they take
// compute units from them, which a DMA engine does not.
//
// What that costs the kernels is not in a trace. It is computed from the time side by side and the
// slow-down that was measured for a kernel beside such a copy.
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

// Measured on an H200: 15.99 ms alone, 23.0 ms beside a copy by a kernel of 32 blocks.
constexpr double usual_slowdown = 1.44;

struct slowdown {
  double factor;
  provenance known;
};

slowdown slowdown_of(const workload& work) {
  const auto* const profile = work.expected().profile();
  const auto own = profile != nullptr
                       ? profile->find(machine::quantity::kernel_slowdown_beside_kernel_copy)
                       : std::nullopt;
  return own && own->value >= 1.0 ? slowdown{own->value, own->known}
                                  : slowdown{usual_slowdown, provenance::nominal};
}

bool is_without_dma(const workload& work) {
  return work.events().about.api == trace::gpu_api::hip &&
         fact(work, "environment.HSA_ENABLE_SDMA") == "0";
}

// Known to be, or on AMD told to be: then kernels carry all copies of page-locked memory.
selection carried_by_kernels(const workload& work) {
  const bool by_setting = is_without_dma(work);
  return select(work, [&](const copy& which) {
    return which.details->engine == engine::kernel ||
           (by_setting && which.details->engine == engine::unknown &&
            is_page_locked(which.host_kind()));
  });
}

constexpr wording use_dma{
    .pytorch =
        "Let the DMA engines copy: plain copies of pinned tensors (x.to(device, "
        "non_blocking=True)) use them; on AMD leave HSA_ENABLE_SDMA unset.",
    .hip =
        "Let the DMA engines copy: leave HSA_ENABLE_SDMA and GPU_FORCE_BLIT_COPY_SIZE unset, and "
        "copy pinned memory with hipMemcpyAsync in pieces above 64 KiB.",
    .cuda =
        "Let the copy engines copy: cudaMemcpyAsync of pinned memory uses them; do not copy by a "
        "kernel of your own while others compute."};

// How long kernels ran beside the copies, on all devices together and by copy.
std::int64_t time_beside(const workload& work, const selection& chosen, std::vector<gain>& each) {
  std::map<std::uint32_t, std::vector<interval>> by_device;
  std::int64_t sum = 0;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    by_device[which.device].push_back({which.begin, which.end});
    each.push_back({index, work.kernels_of(which.device).covered({which.begin, which.end})});
    sum += each.back().time_ns;
  }
  std::vector<interval> everywhere;
  for (auto& [device, parts] : by_device) {
    const auto beside = intersected(interval_set(std::move(parts)), work.kernels_of(device));
    everywhere.insert(everywhere.end(), beside.parts().begin(), beside.parts().end());
  }
  const auto wall = interval_set(std::move(everywhere)).length();
  for (auto& one : each) {
    one.time_ns = static_cast<std::int64_t>(static_cast<double>(one.time_ns) *
                                            share_of(wall, std::max(sum, wall)));
  }
  return wall;
}

}  // namespace

void find_kernel_copies(const workload& work, std::vector<finding>& findings) {
  const auto chosen = carried_by_kernels(work);
  std::vector<gain> each;
  const auto beside = time_beside(work, chosen, each);
  const auto cost = slowdown_of(work);
  const double lost_part = 1.0 - 1.0 / cost.factor;
  std::int64_t lost = 0;
  for (auto& one : each) {
    one.time_ns = static_cast<std::int64_t>(static_cast<double>(one.time_ns) * lost_part);
    lost += one.time_ns;
  }
  if (chosen.empty() || work.share_of_span(lost) < small_share) {
    return;
  }
  const auto total = sum_of(work, chosen);
  auto evidence = evidence_of(total);
  evidence.push_back({"time beside kernels", static_cast<double>(beside), unit::nanoseconds});
  evidence.push_back({"kernels slower beside them", cost.factor - 1.0, unit::share, cost.known});
  const bool is_switched_off = is_without_dma(work);
  findings.push_back(
      {.rule = "kernel-copies",
       .severity = severity::advice,
       .headline =
           fmt::format("{} {} carried by kernels{} and {} beside the program's for {}: "
                       "they take compute units, which cost those kernels about {}.",
                       copies_of(total.count), total.count == 1 ? "is" : "are",
                       is_switched_off ? " (HSA_ENABLE_SDMA=0)" : "",
                       total.count == 1 ? "runs" : "run", milliseconds(beside), milliseconds(lost)),
       .evidence = std::move(evidence),
       .places = places_of(work, chosen),
       .lost_ns = lost,
       .saving = saving{lost, bound::at_most, provenance::modelled,
                        fmt::format("kernels take {} longer beside a copy by a kernel ({}), and "
                                    "hardly any beside DMA",
                                    percent(cost.factor - 1.0), to_string(cost.known))},
       .fix = {in_terms_of(work, use_dma)},
       .gains = std::move(each)});
}

}  // namespace berth::diagnose
