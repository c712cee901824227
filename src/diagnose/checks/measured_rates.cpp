// SPDX-License-Identifier: Apache-2.0
// Rates that came with the input, against each other (host memory of one NUMA node and of another),
// against what the GPU's model gives, and against what somebody was promised.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"
#include "machine/catalogue.hpp"

namespace berth::diagnose {
namespace {

using machine::host_distance;
using machine::measured_rate;
using machine::traffic;

// Below this, two rates are the same: tools differ by as much from run to run.
constexpr double same_ratio = 1.1;
// Peak rates count each bit on the wire: check sums, headers and tokens are never less than this.
constexpr double usual_share = 0.65;
// A copy that reaches less than this of its link is not held back by the link.
constexpr double low_share = 0.5;
constexpr double full_share_of_link = 0.8;

std::string way_text(const measured_rate& one) {
  const auto* const both = one.ways == traffic::both_ways ? ", both ways at once" : "";
  switch (one.way) {
    case direction::host_to_device:
      return fmt::format("host to GPU{}", both);
    case direction::device_to_host:
      return fmt::format("GPU to host{}", both);
    case direction::peer_to_peer:
      return fmt::format("GPU to GPU{}", both);
    case direction::unknown:
      return fmt::format("between host and GPU{}", both);
    default:
      return fmt::format("{}{}", to_string(one.way), both);
  }
}

std::string place_text(const measured_rate& one) {
  return one.gpu ? fmt::format("GPU {}: ", *one.gpu) : std::string();
}

check_evidence evidence_of_rate(const measured_rate& one) {
  return {fmt::format("{}{}{}", place_text(one), way_text(one),
                      one.node ? fmt::format(", memory of node {}", *one.node)
                      : one.host_is == host_distance::far ? ", memory of another node"
                                                          : ""),
          fmt::format("{:.1f} GB/s", one.gb_per_s), one.source};
}

bool has_host(const measured_rate& one) {
  return one.way == direction::host_to_device || one.way == direction::device_to_host;
}

// Rates of one GPU, direction and kind of memory, of which only the node differs.
using alike = std::tuple<std::optional<std::uint32_t>, direction, traffic, memory_kind>;

struct node_pair {
  measured_rate best;
  measured_rate worst;
  [[nodiscard]] double ratio() const { return best.gb_per_s / worst.gb_per_s; }
};

std::vector<node_pair> pairs_by_node(const machine::survey& seen) {
  std::map<alike, std::map<std::uint32_t, measured_rate>> groups;
  for (const auto& one : seen.rates) {
    if (has_host(one) && one.node && one.gb_per_s > 0) {
      auto& best =
          groups[{one.gpu, one.way, one.ways, one.host}].try_emplace(*one.node, one).first->second;
      best = one.gb_per_s > best.gb_per_s ? one : best;
    }
  }
  std::vector<node_pair> pairs;
  for (const auto& [key, by_node] : groups) {
    if (by_node.size() < 2) {
      continue;
    }
    const auto less = [](const auto& a, const auto& b) {
      return a.second.gb_per_s < b.second.gb_per_s;
    };
    pairs.push_back({std::ranges::max_element(by_node, less)->second,
                     std::ranges::min_element(by_node, less)->second});
  }
  return pairs;
}

std::string pinned_text(memory_kind kind) {
  return kind == memory_kind::pinned ? "pinned memory" : "host memory";
}

check_result remote_is_slow(const std::vector<node_pair>& pairs) {
  const auto worst = std::ranges::max_element(
      pairs, [](const node_pair& a, const node_pair& b) { return a.ratio() < b.ratio(); });
  check_result result{.verdict = verdict::limit};
  result.headline = fmt::format(
      "{}{} of node {} reaches {:.1f} GB/s and that of node {} {:.1f} ({}), {:.1f} times less: "
      "the way to the remote node is what limits, also for pinned memory",
      place_text(worst->best), pinned_text(worst->best.host), *worst->best.node,
      worst->best.gb_per_s, *worst->worst.node, worst->worst.gb_per_s, way_text(worst->best),
      worst->ratio());
  for (const auto& one : pairs) {
    result.evidence.push_back(evidence_of_rate(one.best));
    result.evidence.push_back(evidence_of_rate(one.worst));
    if (one.best.gpu && std::ranges::find(result.gpus, *one.best.gpu) == result.gpus.end()) {
      result.gpus.push_back(*one.best.gpu);
    }
  }
  result.confirm = fmt::format("numactl --cpunodebind={0} --membind={0} BENCHMARK, and with {1}",
                               *worst->best.node, *worst->worst.node);
  result.fix = {
      fmt::format("Start programs that use this GPU with numactl --cpunodebind={0} "
                  "--membind={0}.",
                  *worst->best.node)};
  return result;
}

// From the weights that came with the rates.
bool distances_differ(const machine::survey& seen) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_gpu;
  for (const auto& link : seen.machine.links) {
    const bool to_gpu = link.from.kind == machine::place_kind::numa_node &&
                        link.to.kind == machine::place_kind::gpu;
    if (to_gpu && link.weight) {
      by_gpu[link.to.id].push_back(*link.weight);
    }
  }
  return std::ranges::any_of(by_gpu, [](const auto& one) {
    return *std::ranges::max_element(one.second) != *std::ranges::min_element(one.second);
  });
}

check_result remote_costs_nothing(const machine::survey& seen,
                                  const std::vector<node_pair>& pairs) {
  check_result result;
  result.headline = fmt::format(
      "each NUMA node reaches the GPUs at the same rate{}: the link to the GPU limits, so a remote "
      "node costs large single copies nothing here. Near memory still matters for small copies, "
      "for many copies at once, and for the CPUs that fill the buffers",
      distances_differ(seen) ? ", though their distances differ" : "");
  for (const auto& one : pairs) {
    result.evidence.push_back(evidence_of_rate(one.best));
    result.evidence.push_back(evidence_of_rate(one.worst));
  }
  return result;
}

void compare_nodes(const machine::survey& seen, std::vector<check_result>& results) {
  const auto pairs = pairs_by_node(seen);
  std::vector<node_pair> uneven;
  std::ranges::copy_if(pairs, std::back_inserter(uneven),
                       [](const node_pair& one) { return one.ratio() > same_ratio; });
  if (!uneven.empty()) {
    results.push_back(remote_is_slow(uneven));
  } else if (!pairs.empty()) {
    results.push_back(remote_costs_nothing(seen, pairs));
  }
}

// Where only "the other node" is told: against the same way without that word.
void compare_told_remote(const machine::survey& seen, std::vector<check_result>& results) {
  for (const auto& far : seen.rates) {
    if (far.host_is != host_distance::far || far.gb_per_s <= 0) {
      continue;
    }
    const auto near = std::ranges::find_if(seen.rates, [&](const measured_rate& one) {
      return one.host_is != host_distance::far && one.way == far.way && one.ways == far.ways &&
             one.host == far.host && one.gb_per_s > far.gb_per_s * same_ratio;
    });
    if (near != seen.rates.end()) {
      results.push_back(
          {.verdict = verdict::limit,
           .headline = fmt::format("host memory of another NUMA node reaches {:.1f} GB/s, {:.0f} % "
                                   "of the {:.1f} of the "
                                   "near one ({}): such copies cross the link between the sockets",
                                   far.gb_per_s, 100 * far.gb_per_s / near->gb_per_s,
                                   near->gb_per_s, way_text(far)),
           .evidence = {evidence_of_rate(*near), evidence_of_rate(far)},
           .confirm = "numactl --cpunodebind=N --membind=N BENCHMARK, for each node N",
           .fix = {"Bind each process to its GPU's node: berth doctor --affinity prints the "
                   "lines."}});
    }
  }
}

void compare_promises(const machine::survey& seen, std::vector<check_result>& results) {
  check_result usual;
  for (const auto& one : seen.rates) {
    if (!one.promised_gb_per_s || *one.promised_gb_per_s <= 0) {
      continue;
    }
    const auto share = one.gb_per_s / *one.promised_gb_per_s;
    const auto text = fmt::format("{:.0f} of {:.0f} GB/s {} ({:.0f} %)", one.gb_per_s,
                                  *one.promised_gb_per_s, way_text(one), 100 * share);
    if (share >= usual_share) {
      usual.headline += (usual.headline.empty() ? "" : ", ") + text;
      usual.evidence.push_back(evidence_of_rate(one));
    } else {
      results.push_back({.verdict = verdict::unknown,
                         .headline = text +
                                     ": less than check sums and protocol explain; something "
                                     "else limits",
                         .evidence = {evidence_of_rate(one)},
                         .confirm = "sudo lspci -vv | grep -E 'LnkCap|LnkSta'"});
    }
  }
  if (!usual.headline.empty()) {
    usual.headline +=
        ": normal. Peak rates count each bit of a link; check sums, headers and tokens take their "
        "part, and no copy reaches them";
    results.push_back(std::move(usual));
  }
}

// What pinned copies of that model reach, as published.
std::optional<double> rate_of_model(const machine::gpu& gpu, direction way) {
  const auto* const model = gpu.model.empty() ? nullptr : machine::find_by_name(gpu.model);
  if (model == nullptr) {
    return std::nullopt;
  }
  const auto match =
      machine::nominal_profile(*model).lookup({.way = way, .host = memory_kind::pinned});
  return match ? std::optional(match->device_time.large_gb_per_s()) : std::nullopt;
}

// The best of each GPU and direction: others may be remote, which is told elsewhere.
void compare_models(const machine::survey& seen, std::vector<check_result>& results) {
  std::map<std::pair<std::uint32_t, direction>, measured_rate> best;
  for (const auto& one : seen.rates) {
    if (has_host(one) && one.gpu && one.ways == traffic::one_way &&
        one.host == memory_kind::pinned) {
      auto& kept = best.try_emplace({*one.gpu, one.way}, one).first->second;
      kept = one.gb_per_s > kept.gb_per_s ? one : kept;
    }
  }
  std::vector<std::uint32_t> full;
  for (const auto& [key, one] : best) {
    const auto gpu = std::ranges::find(seen.machine.gpus, key.first, &machine::gpu::index);
    const auto wanted =
        gpu == seen.machine.gpus.end() ? std::nullopt : rate_of_model(*gpu, key.second);
    if (wanted && one.gb_per_s < low_share * *wanted) {
      results.push_back(
          {.verdict = verdict::limit,
           .headline = fmt::format("GPU {}: {:.1f} GB/s {} is {:.0f} % of what an {} reaches in a "
                                   "full slot ({:.1f} GB/s, nominal)",
                                   key.first, one.gb_per_s, way_text(one),
                                   100 * one.gb_per_s / *wanted, model_of(*gpu), *wanted),
           .evidence = {evidence_of_rate(one)},
           .confirm = "sudo lspci -vv | grep -E 'LnkCap|LnkSta'",
           .fix = {"Look at the link's width and speed, at the NUMA node of the memory, and at "
                   "HSA_ENABLE_SDMA."},
           .gpus = {key.first}});
    } else if (wanted && one.gb_per_s >= full_share_of_link * *wanted) {
      if (std::ranges::find(full, key.first) == full.end()) {
        full.push_back(key.first);
      }
    }
  }
  if (!full.empty()) {
    results.push_back({.headline = fmt::format("{} {} in a full slot", gpu_names(full),
                                               full.size() == 1 ? "reaches what its model gives"
                                                                : "reach what their model gives")});
  }
}

}  // namespace

void check_measured_rates(const machine::survey& seen, std::vector<check_result>& results) {
  compare_nodes(seen, results);
  compare_told_remote(seen, results);
  compare_promises(seen, results);
  compare_models(seen, results);
}

}  // namespace berth::diagnose
