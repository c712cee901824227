// SPDX-License-Identifier: Apache-2.0
// NUMA nodes. From sysfs itself and not through hwloc: hwloc's captured roots need the files of
// every CPU and cache as well, and it can't say which file a value came from, as each of ours must.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/live_reader.hpp"

namespace berth::topology {
namespace {

constexpr std::string_view numa_folder = "/sys/devices/system/node";
constexpr std::uint32_t most_nodes = 1024;  // MAX_NUMNODES of any kernel

std::string node_field(std::uint32_t id, std::string_view name) {
  return fmt::format("numa_nodes[{}].{}", id, name);
}

void read_cpus(reading& in, const std::string& folder, machine::numa_node& node) {
  const auto text = in.text(folder + "/cpulist");
  if (!text) {
    return;
  }
  if (const auto cpus = text::parse_number_list(*text)) {
    in.say.says(node_field(node.id, "cpus"), node.cpus, *cpus, text::number_list(*cpus));
  } else {
    in.say.problem(fmt::format("\"{}\" is no list of CPUs; left out", *text));
  }
}

// "Node 0 MemTotal:       263862240 kB"
void read_memory(reading& in, const std::string& folder, machine::numa_node& node) {
  const auto text = in.text(folder + "/meminfo");
  if (!text) {
    return;
  }
  for (const auto line : lines_of(*text)) {
    const auto words = text::words(line);
    if (words.size() < 4 || words[2] != "MemTotal:") {
      continue;
    }
    const auto kilobytes = parse_number(words[3]);
    if (kilobytes && *kilobytes < (1ULL << 43U)) {
      const auto bytes = *kilobytes * kib;
      in.say.says(node_field(node.id, "memory"), node.memory, bytes,
                  fmt::format("{} bytes", bytes));
    } else {
      in.say.problem("MemTotal is no size that a node can have; left out");
    }
  }
}

void read_distances(reading& in, const std::string& folder, machine::numa_node& node,
                    const std::vector<std::uint32_t>& nodes) {
  const auto text = in.text(folder + "/distance");
  if (!text) {
    return;
  }
  const auto words = text::words(*text);
  if (words.size() != nodes.size()) {
    in.say.problem(fmt::format("{} distances for {} nodes; left out", words.size(), nodes.size()));
    return;
  }
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const auto value = parse_number(words[index]);
    if (!value || *value < 10 || *value > 255) {
      in.say.problem(fmt::format("\"{}\" is no distance of nodes; left out", words[index]));
      continue;
    }
    node.distances.push_back({nodes[index], static_cast<std::uint32_t>(*value)});
  }
}

}  // namespace

void read_numa(reading& in) {
  const std::string folder(numa_folder);
  auto ids = in.numbered(folder, "node");
  std::erase_if(ids, [&](std::uint32_t id) {
    if (id >= most_nodes) {
      in.say.reading(fmt::format("{}/node{}", folder, id));
      in.say.problem("no kernel has a NUMA node of that number; left out");
    }
    return id >= most_nodes;
  });
  for (const auto id : ids) {
    const auto of_node = fmt::format("{}/node{}", folder, id);
    auto& node = in.seen.machine.numa_nodes.emplace_back();
    node.id = id;
    read_cpus(in, of_node, node);
    read_memory(in, of_node, node);
    read_distances(in, of_node, node, ids);
  }
  if (!ids.empty()) {
    in.seen.sources.push_back(folder);
  }
}

}  // namespace berth::topology
