// SPDX-License-Identifier: Apache-2.0
// NUMA: where GPUs are attached, where the process may run, and in which order both count.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

// GPUs by node; those without a known node are left out.
std::map<std::uint32_t, std::vector<std::uint32_t>> gpus_by_node(const machine::survey& seen) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_node;
  for (const auto& gpu : seen.machine.gpus) {
    if (gpu.numa_node) {
      by_node[*gpu.numa_node].push_back(gpu.index);
    }
  }
  return by_node;
}

std::string placement_text(const machine::survey& seen) {
  std::string text;
  for (const auto& [node, gpus] : gpus_by_node(seen)) {
    text += fmt::format("{}{} on node {}", text.empty() ? "" : ", ", gpu_names(gpus), node);
  }
  return text;
}

void cite_nodes(const machine::survey& seen, check_result& result) {
  const auto& gpus = seen.machine.gpus;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    if (gpus[position].numa_node) {
      result.evidence.push_back(evidence_of(seen, gpu_field(position, "numa_node"),
                                            fmt::format("{}", *gpus[position].numa_node)));
    }
  }
}

// A paste may show one node of several: there, all GPUs must be known to be on it.
bool has_one_node(const machine::survey& seen) {
  if (seen.machine.numa_nodes.size() != 1) {
    return false;
  }
  const auto id = seen.machine.numa_nodes.front().id;
  return seen.kind != machine::survey_kind::pasted || seen.machine.gpus.size() == 1 ||
         std::ranges::all_of(seen.machine.gpus,
                             [&](const machine::gpu& gpu) { return gpu.numa_node == id; });
}

// Nodes of GPUs, in the order of the GPUs' numbers.
std::vector<std::uint32_t> nodes_in_gpu_order(const machine::survey& seen) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_index;
  for (const auto& gpu : seen.machine.gpus) {
    if (gpu.numa_node) {
      by_index.emplace_back(gpu.index, *gpu.numa_node);
    }
  }
  std::ranges::sort(by_index);
  std::vector<std::uint32_t> nodes;
  for (const auto& [index, node] : by_index) {
    nodes.push_back(node);
  }
  return nodes;
}

bool shares_a_cpu(const machine::numa_node& node, const std::vector<std::uint32_t>& allowed) {
  return std::ranges::any_of(node.cpus, [&](std::uint32_t cpu) {
    return std::ranges::find(allowed, cpu) != allowed.end();
  });
}

// Where the process that looked may run.
std::vector<std::uint32_t> allowed_nodes(const machine::survey& seen) {
  std::vector<std::uint32_t> nodes;
  for (const auto& node : seen.machine.numa_nodes) {
    if (shares_a_cpu(node, seen.machine.set.allowed_cpus)) {
      nodes.push_back(node.id);
    }
  }
  return nodes;
}

struct nearness {
  std::vector<std::uint32_t> near;  // GPUs by index
  std::vector<std::uint32_t> far;
  std::optional<std::uint32_t> far_node;  // of the first that is far
};

nearness nearness_of(const machine::survey& seen, const std::vector<std::uint32_t>& allowed) {
  nearness sorted;
  for (const auto& gpu : seen.machine.gpus) {
    if (!gpu.numa_node) {
      continue;
    }
    if (std::ranges::find(allowed, *gpu.numa_node) != allowed.end()) {
      sorted.near.push_back(gpu.index);
    } else {
      sorted.far.push_back(gpu.index);
      sorted.far_node = sorted.far_node ? sorted.far_node : gpu.numa_node;
    }
  }
  return sorted;
}

std::string distance_text(const machine::survey& seen, std::uint32_t from, std::uint32_t to) {
  const auto* const node = find_node(seen, from);
  if (node == nullptr) {
    return {};
  }
  const auto found = std::ranges::find(node->distances, to, &machine::numa_distance::to);
  return found == node->distances.end() ? std::string()
                                        : fmt::format(" (distance {}; 10 is local)", found->value);
}

std::string nodes_text(const std::vector<std::uint32_t>& nodes) {
  return fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", number_list(nodes));
}

check_result judge_placement(const machine::survey& seen,
                             const std::vector<std::uint32_t>& allowed) {
  const auto sorted = nearness_of(seen, allowed);
  check_result result;
  result.evidence.push_back(
      evidence_of(seen, "settings.allowed_cpus", number_list(seen.machine.set.allowed_cpus)));
  cite_nodes(seen, result);
  if (sorted.far.empty()) {
    result.headline = fmt::format("the process may run near each GPU ({})", nodes_text(allowed));
    return result;
  }
  const auto distance = distance_text(seen, allowed.front(), *sorted.far_node);
  result.gpus = sorted.far;
  result.confirm = "grep Cpus_allowed_list /proc/self/status; numactl --show";
  result.fix = {
      fmt::format("numactl --cpunodebind={0} --membind={0} PROGRAM for a process of {1}; "
                  "berth doctor --affinity prints the lines of all GPUs.",
                  *sorted.far_node, gpu_names({&sorted.far.front(), 1}))};
  if (sorted.near.empty()) {
    result.verdict = verdict::fault;
    result.headline = fmt::format(
        "the process is bound to NUMA {}, and no GPU is there: {}{}; host memory and "
        "copies cross between nodes",
        nodes_text(allowed), placement_text(seen), distance);
  } else {
    result.headline = fmt::format(
        "the process is bound to NUMA {}, near {}; {} {} on another "
        "node{}: right for a process that uses the near ones",
        nodes_text(allowed), gpu_names(sorted.near), gpu_names(sorted.far),
        sorted.far.size() == 1 ? "is" : "are", distance);
  }
  return result;
}

}  // namespace

void check_process_numa(const machine::survey& seen, std::vector<check_result>& results) {
  if (seen.machine.gpus.empty()) {
    return;
  }
  if (has_one_node(seen)) {
    results.push_back({.headline = "one NUMA node: no process is far from a GPU"});
    return;
  }
  const auto allowed = allowed_nodes(seen);
  if (allowed.empty() || gpus_by_node(seen).empty()) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = gpus_by_node(seen).empty()
                                       ? "the NUMA nodes of the GPUs are not in the input"
                                       : "where the process may run is not in the input",
                       .confirm = "cat /sys/bus/pci/devices/*/numa_node; grep Cpus_allowed_list "
                                  "/proc/self/status"});
    return;
  }
  results.push_back(judge_placement(seen, allowed));
}

void check_gpu_order(const machine::survey& seen, std::vector<check_result>& results) {
  const auto& gpus = seen.machine.gpus;
  if (gpus.size() < 2) {
    return;
  }
  const auto nodes = nodes_in_gpu_order(seen);
  check_result result{.confirm = "rocm-smi --showtoponuma, or nvidia-smi topo -m"};
  cite_nodes(seen, result);
  if (nodes.empty()) {
    result.verdict = has_one_node(seen) ? verdict::normal : verdict::unknown;
    result.headline = has_one_node(seen) ? "one NUMA node: the order of GPUs does not matter"
                                         : "the NUMA nodes of the GPUs are not in the input";
  } else if (std::ranges::is_sorted(nodes) && nodes.size() < gpus.size()) {
    result.verdict = verdict::unknown;
    result.headline = fmt::format("the NUMA nodes of {} of {} GPUs are in the input: {}",
                                  nodes.size(), gpus.size(), placement_text(seen));
    result.evidence.clear();
  } else if (std::ranges::is_sorted(nodes)) {
    result.headline = fmt::format("GPUs count like NUMA nodes: {}", placement_text(seen));
    result.confirm.clear();
  } else {
    const bool reversed = std::ranges::is_sorted(nodes, std::ranges::greater{});
    result.verdict = verdict::limit;
    result.headline = fmt::format(
        "the order of GPUs is {} NUMA order: {}; a program that binds rank n to node n "
        "and GPU n is far from its GPU",
        reversed ? "the reverse of" : "not", placement_text(seen));
    result.fix = {
        "Bind each rank by its GPU's node, not by its number: berth doctor --affinity "
        "prints the lines."};
  }
  results.push_back(std::move(result));
}

}  // namespace berth::diagnose
