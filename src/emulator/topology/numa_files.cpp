// SPDX-License-Identifier: Apache-2.0
// NUMA nodes that the real system has not. Their CPUs are real ones, shared out among them.
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulator/topology/overlay.hpp"

namespace berth::emulator {
namespace {

constexpr std::string_view nodes_folder = "/sys/devices/system/node";

std::string mask_of(const std::vector<std::uint32_t>& cpus) {
  std::vector<std::uint32_t> words(1, 0);
  for (const auto cpu : cpus) {
    constexpr std::uint32_t bits = 32;
    if (cpu / bits >= words.size()) {
      words.resize(cpu / bits + 1, 0);
    }
    words[cpu / bits] |= 1U << (cpu % bits);
  }
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    text += text.empty() ? fmt::format("{:08x}", *word) : fmt::format(",{:08x}", *word);
  }
  return text;
}

}  // namespace

void write_numa_files(const file_writer& files, const machine_plan& plan) {
  for (const auto& node : plan.nodes) {
    const auto folder = fmt::format("{}/node{}", nodes_folder, node.index);
    files.write(folder + "/cpumap", mask_of(node.cpus) + "\n");
    files.write(folder + "/cpulist", fmt::format("{}\n", fmt::join(node.cpus, ",")));
    files.write(folder + "/distance", fmt::format("{}\n", fmt::join(node.distances, " ")));
    files.write(folder + "/meminfo",
                fmt::format("Node {0} MemTotal:       {1} kB\nNode {0} MemFree:        {2} kB\n",
                            node.index, node.memory / kib, node.memory / kib / 2));
    for (const auto cpu : node.cpus) {
      files.link_real(fmt::format("{}/cpu{}", folder, cpu),
                      fmt::format("/sys/devices/system/cpu/cpu{}", cpu));
    }
  }
  const auto range =
      plan.nodes.size() == 1 ? std::string("0") : fmt::format("0-{}", plan.nodes.size() - 1);
  for (const auto* const name :
       {"online", "possible", "has_cpu", "has_memory", "has_normal_memory"}) {
    files.write(fmt::format("{}/{}", nodes_folder, name), range + "\n");
  }
}

}  // namespace berth::emulator
