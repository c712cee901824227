// SPDX-License-Identifier: Apache-2.0
// Many tiny copies: the time is the fixed cost of each call, so that neither a faster link nor
// pinned memory helps. One copy of all the data does.
//
// Only copies in a burst count: some of the same direction, one after the other, with no kernel
// between them that could depend on one. Such a burst could be one copy. Its cost is host time in
// which no kernel runs: what passes beside kernels, nobody waits for.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr std::size_t smallest_burst = 8;
// One CPU thread packs at about this rate (docs/performance.md: host memcpy, one thread).
constexpr double packing_gb_per_s = 10.0;

// Operators of PyTorch that do nothing but copy. Others around a copy do more than that.
constexpr std::array<std::string_view, 6> copying_operators{
    "aten::to",        "aten::_to_copy", "aten::copy_", "aten::item", "aten::_local_scalar_dense",
    "aten::is_nonzero"};

std::vector<selection> bursts_of(const workload& work, const kernel_order& kernels) {
  std::vector<selection> bursts;
  selection current;
  const auto close = [&] {
    if (current.size() >= smallest_burst) {
      bursts.push_back(current);
    }
    current.clear();
  };
  const auto tiny = select_with_untimed(work, [](const copy& which) { return is_tiny(which); });
  for (const auto index : tiny) {
    const auto& next = work.copies()[index];
    if (!current.empty()) {
      const auto& last = work.copies()[current.back()];
      const bool same = last.device == next.device && last.stream == next.stream &&
                        last.details->direction == next.details->direction &&
                        last.host_kind() == next.host_kind();
      if (!same || kernels.any_between(next.device, {last.end, next.begin})) {
        close();
      }
    }
    current.push_back(index);
  }
  close();
  return bursts;
}

// The operator around the copy at `at` of a burst, if that copy is all that it does.
trace::row own_operator(const workload& work, const selection& copies, std::size_t at) {
  const auto operator_of = [&](std::size_t position) {
    return work.copies()[copies[position]].framework_operator;
  };
  const auto found = operator_of(at);
  if (found == trace::no_row || (at > 0 && operator_of(at - 1) == found) ||
      (at + 1 < copies.size() && operator_of(at + 1) == found)) {
    return trace::no_row;
  }
  const auto name = work.events().name_text(found);
  return std::find(copying_operators.begin(), copying_operators.end(), name) !=
                 copying_operators.end()
             ? found
             : trace::no_row;
}

// When the host, or without calls the device, is busy with one copy: the framework's operator
// around it, else the call and the wait behind it.
std::vector<interval> cost_of(const workload& work, const selection& copies, std::size_t at) {
  const auto& which = work.copies()[copies[at]];
  const auto& events = work.events();
  const auto range = [&](trace::row index) {
    return index == trace::no_row ? interval{0, 0}
                                  : interval{events.begin(index), events.end(index)};
  };
  if (const auto around = own_operator(work, copies, at); around != trace::no_row) {
    return {range(around)};
  }
  if (which.call != trace::no_row) {
    return {range(which.call), range(which.wait)};
  }
  return {{which.begin, which.end}};
}

// Length of the union of the parts in which the device runs no kernel.
std::int64_t exposed(const workload& work, std::uint32_t device, std::vector<interval> parts) {
  std::int64_t time = 0;
  const auto& kernels = work.kernels_of(device);
  const interval_set together(std::move(parts));
  for (const auto& part : together.parts()) {
    time += part.length() - kernels.covered(part);
  }
  return time;
}

struct costs {
  std::int64_t now_ns = 0;
  std::int64_t batched_ns = 0;  // never more than now
};

// Batched: one such call, the bytes packed by one CPU thread and copied as they are now.
costs costs_of(const workload& work, const kernel_order& kernels, const selection& copies) {
  std::vector<interval> all;
  std::vector<std::int64_t> each;
  bytes_t bytes = 0;
  const auto device = work.copies()[copies.front()].device;
  for (std::size_t at = 0; at < copies.size(); ++at) {
    auto own = cost_of(work, copies, at);
    all.insert(all.end(), own.begin(), own.end());
    each.push_back(exposed(work, device, std::move(own)));
    bytes += *work.copies()[copies[at]].details->bytes;
  }
  // Where kernels have no times, the first call may have waited for those before it.
  const auto first = each.front();
  const auto middle = each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2);
  std::nth_element(each.begin(), middle, each.end());
  const auto packing = static_cast<double>(bytes) / packing_gb_per_s;
  const auto way = work.copies()[copies.front()].details->direction;
  const auto copying = work.expected().time_ns(way, host_end::pageable, bytes).value_or(packing);
  const auto waiting =
      kernels.without_times() ? std::max<std::int64_t>(0, first - *middle) : std::int64_t{0};
  const auto now = std::max<std::int64_t>(0, exposed(work, device, std::move(all)) - waiting);
  return {now, std::min(now, *middle + static_cast<std::int64_t>(packing + copying))};
}

constexpr wording batch{
    .pytorch =
        "Build one tensor on the host (torch.stack or cat of the pieces) and copy that: one "
        ".to(device) instead of one each; split it on the GPU by views.",
    .hip =
        "Pack the pieces into one staging buffer and copy it with one hipMemcpyAsync; hand the "
        "kernels offsets into it.",
    .cuda =
        "Pack the pieces into one staging buffer and copy it with one cudaMemcpyAsync; hand the "
        "kernels offsets into it."};

}  // namespace

void find_tiny_copies(const workload& work, std::vector<finding>& findings) {
  const kernel_order kernels(work);
  const auto bursts = bursts_of(work, kernels);
  selection all;
  costs sum;
  std::vector<gain> each;
  for (const auto& copies : bursts) {
    const auto cost = costs_of(work, kernels, copies);
    sum.now_ns += cost.now_ns;
    sum.batched_ns += cost.batched_ns;
    all.insert(all.end(), copies.begin(), copies.end());
    const auto saved = cost.now_ns - cost.batched_ns;
    for (const auto index : copies) {
      each.push_back({index, saved / static_cast<std::int64_t>(copies.size())});
    }
  }
  const auto saved = sum.now_ns - sum.batched_ns;
  const auto share = work.share_of_span(saved);
  if (all.empty() || share < small_share) {
    return;
  }
  const auto total = sum_of(work, all);
  const auto average = total.bytes / total.count;
  std::vector<measure> evidence{{"copies", static_cast<double>(total.count), unit::count},
                                {"bytes", static_cast<double>(total.bytes), unit::bytes},
                                {"host time", static_cast<double>(sum.now_ns), unit::nanoseconds}};
  if (total.timed_by_device == total.count) {
    evidence.push_back(
        {"time on the device", static_cast<double>(total.duration_ns), unit::nanoseconds});
  }
  evidence.push_back({"host time if batched", static_cast<double>(sum.batched_ns),
                      unit::nanoseconds, provenance::modelled});
  findings.push_back(
      {.rule = "tiny-copies",
       .severity = share >= fault_share ? severity::fault : severity::advice,
       .headline = fmt::format(
           "{} copies of {} on average cost {} of host time, {} each; as {} batched {} they would "
           "cost about {}.",
           total.count, format_bytes(average), milliseconds(sum.now_ns),
           milliseconds(sum.now_ns / static_cast<std::int64_t>(total.count)), bursts.size(),
           bursts.size() == 1 ? "copy" : "copies", milliseconds(sum.batched_ns)),
       .evidence = std::move(evidence),
       .places = places_of(work, all),
       .lost_ns = saved,
       .saving = saving{saved, bound::about, provenance::modelled,
                        "one call for each burst, packed by one CPU thread at 10 GB/s"},
       .fix = {in_terms_of(work, batch),
               fmt::format("Pinning is not the cure: at {} a copy's time is the cost of the call, "
                           "not of the memory.",
                           format_bytes(average))},
       .gains = std::move(each)});
}

}  // namespace berth::diagnose
