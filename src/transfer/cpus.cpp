// SPDX-License-Identifier: Apache-2.0
#include "transfer/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "core/text.hpp"
#include "memory/cgroup.hpp"

namespace berth::transfer {
namespace {

std::optional<std::int64_t> parse_number(std::string_view text) {
  const auto value = text::whole_number<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

std::vector<int> affinity() {
  std::vector<int> cpus;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

std::vector<int> cpus_of_node(int node) {
  const auto line = first_line(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
  const auto cpus = line ? text::parse_number_list(*line) : std::nullopt;
  return cpus ? std::vector<int>(cpus->begin(), cpus->end()) : std::vector<int>{};
}

// The tightest quota of this process's cgroup and those around it.
std::optional<unsigned> quota() {
  auto path = memory::cgroup_folder();
  std::optional<unsigned> tightest;
  while (true) {
    if (const auto limit = first_line("/sys/fs/cgroup" + path + "/cpu.max")) {
      if (const auto cpus = parse_cpu_quota(*limit)) {
        tightest = std::min(tightest.value_or(*cpus), *cpus);
      }
    }
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) {
      return tightest;
    }
    path.resize(slash);
  }
}

}  // namespace

std::optional<unsigned> parse_cpu_quota(std::string_view cpu_max) {
  cpu_max = text::trim(cpu_max);
  const auto blank = cpu_max.find(' ');
  if (blank == std::string_view::npos) {
    return std::nullopt;
  }
  const auto quota = parse_number(cpu_max.substr(0, blank));
  const auto period = parse_number(cpu_max.substr(blank + 1));
  if (!quota || !period || *period == 0) {
    return std::nullopt;
  }
  const auto whole = *quota / *period + (*quota % *period > 0 ? 1 : 0);
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(whole, 1, std::numeric_limits<unsigned>::max()));
}

usable_cpus find_usable_cpus(std::optional<int> numa_node) {
  usable_cpus found{.cpus = affinity(), .at_once = 1};
  if (numa_node && *numa_node >= 0) {
    const auto near = cpus_of_node(*numa_node);
    std::vector<int> both;
    std::set_intersection(found.cpus.begin(), found.cpus.end(), near.begin(), near.end(),
                          std::back_inserter(both));
    if (!both.empty()) {
      found.cpus = std::move(both);
    }
  }
  const auto count = found.cpus.empty() ? std::max(1U, std::thread::hardware_concurrency())
                                        : static_cast<unsigned>(found.cpus.size());
  found.at_once = std::min(count, quota().value_or(count));
  return found;
}

}  // namespace berth::transfer
