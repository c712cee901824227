// SPDX-License-Identifier: Apache-2.0
// Pinned copies whose host memory is on another NUMA node than the GPU: they cross the link between
// the sockets, whose rate they share with all other traffic. The nodes are the recorder's: that of
// the pages, and that of the device.
//
// Where it is known what the machine's link gives, only the loss against that counts: between some
// sockets there is none. Pageable copies have a larger fault, and a rule of their own.
#include <utility>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr double most_of_the_bytes = 0.5;

bool is_large_pinned(const copy& which) {
  return is_page_locked(which.host_kind()) && !is_tiny(which) && which.details->bytes;
}

constexpr wording place_near{
    .pytorch =
        "Start each process on its GPU's node: numactl --cpunodebind=N --membind=N python ...; "
        "PyTorch's pinned memory comes from the node of the thread that asks for it.",
    .hip =
        "Call hipSetDevice before hipHostMalloc, which takes memory near the current GPU (unless "
        "hipHostMallocNumaUser is given), or start the process on the GPU's node: numactl "
        "--cpunodebind=N --membind=N.",
    .cuda =
        "Allocate from a thread on the GPU's node (cudaMallocHost takes memory where the calling "
        "thread runs), or start the process there: numactl --cpunodebind=N --membind=N."};

// "node 1 to the GPU on node 0", of most of the copies.
std::string nodes_of(const workload& work, const selection& chosen) {
  const auto& first = work.copies()[chosen.front()];
  return fmt::format("node {}, the GPU to node {}", *first.details->host_node,
                     *node_of_device(work, first.device));
}

void add_finding(const workload& work, const selection& remote, gains found,
                 std::vector<finding>& findings) {
  const auto total = sum_of(work, remote);
  const auto way = main_direction(work, remote);
  const bool is_known = found.known > 0;
  auto evidence = evidence_of(total);
  if (const auto rate = work.expected().rate(way, host_end::pinned); rate && is_known) {
    evidence.push_back(
        {"expected rate", *rate, unit::gb_per_s, work.expected().known(way, host_end::pinned)});
  }
  const auto rate = total.working_rate();
  finding result{
      .rule = "remote-numa",
      .severity = severity::advice,
      .headline = fmt::format("{} cross between NUMA nodes: their host memory belongs to {}{}.",
                              copies_of(total.count, "pinned"), nodes_of(work, remote),
                              rate ? fmt::format(" ({} reached)", format_rate(*rate)) : ""),
      .evidence = std::move(evidence),
      .places = places_of(work, remote),
      .lost_ns = found.total_ns,
      .saving = std::nullopt,
      .fix = {in_terms_of(work, place_near)},
      .gains = {}};
  if (is_known) {
    result.saving = saving{found.total_ns, bound::at_most, provenance::modelled,
                           basis_of(work, way, host_end::pinned)};
    result.gains = std::move(found.each);
  }
  findings.push_back(std::move(result));
}

}  // namespace

void find_remote_numa(const workload& work, std::vector<finding>& findings) {
  const auto pinned = select_with_untimed(work, is_large_pinned);
  auto remote = pinned;
  std::erase_if(remote,
                [&](std::uint32_t index) { return !is_remote(work, work.copies()[index]); });
  if (remote.empty()) {
    return;
  }
  // The trace's own pinned copies are no measure of what they lose themselves.
  const auto total = sum_of(work, remote);
  if (work.expected().profile() != nullptr && total.untimed * 2 <= total.count) {
    auto found = gains_against(work, remote, host_end::pinned);
    if (work.share_of_span(found.total_ns) >= small_share) {
      add_finding(work, remote, std::move(found), findings);
    }
    return;
  }
  const auto all = static_cast<double>(sum_of(work, pinned).bytes);
  if (static_cast<double>(total.bytes) >= most_of_the_bytes * all &&
      (total.untimed * 2 > total.count || work.share_of_span(total.wall_ns) >= material_share)) {
    add_finding(work, remote, {}, findings);
  }
}

}  // namespace berth::diagnose
