// SPDX-License-Identifier: Apache-2.0
#include "transfer/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "memory/cgroup.hpp"

namespace berth::transfer {
namespace {

constexpr int most_cpus = 4096;

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
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
  return line ? parse_cpu_list(*line).value_or(std::vector<int>{}) : std::vector<int>{};
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

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  text = trimmed(text);
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto dash = std::min(part.find('-'), part.size());
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == part.size() ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= most_cpus) {
      return std::nullopt;
    }
    for (auto cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<unsigned> parse_cpu_quota(std::string_view cpu_max) {
  cpu_max = trimmed(cpu_max);
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
