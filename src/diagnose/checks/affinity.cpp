// SPDX-License-Identifier: Apache-2.0
#include "diagnose/checks/affinity.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

// A machine with one node has no other that a GPU could be near.
std::optional<std::uint32_t> node_of(const machine::survey& seen, const machine::gpu& gpu) {
  // A paste may show one node of many.
  if (gpu.numa_node || seen.machine.numa_nodes.size() != 1 ||
      seen.kind == machine::survey_kind::pasted) {
    return gpu.numa_node;
  }
  return seen.machine.numa_nodes.front().id;
}

std::vector<std::uint32_t> allowed_of(const machine::survey& seen,
                                      const std::vector<std::uint32_t>& near) {
  const auto& allowed = seen.machine.set.allowed_cpus;
  if (allowed.empty()) {
    return near;
  }
  std::vector<std::uint32_t> cpus;
  std::ranges::copy_if(near, std::back_inserter(cpus), [&](std::uint32_t cpu) {
    return std::ranges::find(allowed, cpu) != allowed.end();
  });
  return cpus.empty() ? near : cpus;
}

// Those that a tool calls the closest, which may be a part of the node: the cores of one cache.
std::vector<std::uint32_t> cpus_near(const machine::survey& seen, const machine::gpu& gpu,
                                     std::optional<std::uint32_t> node_id) {
  const auto* const node = node_id ? find_node(seen, *node_id) : nullptr;
  return allowed_of(seen, !gpu.near_cpus.empty() ? gpu.near_cpus
                          : node != nullptr      ? node->cpus
                                                 : std::vector<std::uint32_t>());
}

// Runtimes count the GPUs of their vendor, from 0. Empty where the number is that of the paste's
// lines only.
std::string hidden_prefix(const machine::survey& seen, const machine::gpu& gpu) {
  if (gpu.numbered == machine::setting_state::off) {
    return {};
  }
  const auto ordinal = std::ranges::count_if(seen.machine.gpus, [&](const machine::gpu& other) {
    return other.made_by == gpu.made_by && other.index < gpu.index;
  });
  const bool is_amd = gpu.made_by == machine::vendor::amd;
  return fmt::format("{}={} ", is_amd ? "ROCR_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES", ordinal);
}

// "0xff00" of CPUs 8-15.
std::string mask_of(const std::vector<std::uint32_t>& cpus) {
  constexpr std::uint32_t bits_per_digit = 4;
  const auto highest = *std::ranges::max_element(cpus);
  std::string digits(highest / bits_per_digit + 1, '0');
  for (const auto cpu : cpus) {
    auto& digit = digits[digits.size() - 1 - cpu / bits_per_digit];
    const auto value =
        (digit <= '9' ? digit - '0' : digit - 'a' + 10) | (1 << (cpu % bits_per_digit));
    digit = "0123456789abcdef"[value];
  }
  return "0x" + digits;
}

std::string slurm_line(const machine::survey& seen, const std::vector<gpu_affinity>& gpus) {
  const bool is_ordered = std::ranges::none_of(seen.machine.gpus, [](const machine::gpu& gpu) {
    return gpu.numbered == machine::setting_state::off;
  });
  std::string masks;
  for (const auto& one : gpus) {
    if (one.cpus.empty() || !is_ordered) {
      return {};
    }
    masks += (masks.empty() ? "" : ",") + mask_of(one.cpus);
  }
  return masks.empty() ? std::string()
                       : fmt::format("srun --ntasks-per-node={} --cpu-bind=mask_cpu:{} PROGRAM",
                                     gpus.size(), masks);
}

}  // namespace

affinity affinity_of(const machine::survey& seen) {
  affinity all;
  for (const auto& gpu : seen.machine.gpus) {
    gpu_affinity one{.gpu = gpu.index,
                     .pci_address = gpu.pci_address,
                     .numa_node = node_of(seen, gpu),
                     .cpus = {},
                     .numactl = {},
                     .taskset = {}};
    if (one.numa_node) {
      one.numactl = fmt::format("{0}numactl --cpunodebind={1} --membind={1} PROGRAM",
                                hidden_prefix(seen, gpu), *one.numa_node);
    }
    one.cpus = cpus_near(seen, gpu, one.numa_node);
    if (!one.cpus.empty()) {
      one.taskset =
          fmt::format("{}taskset -c {} PROGRAM", hidden_prefix(seen, gpu), number_list(one.cpus));
    }
    all.gpus.push_back(std::move(one));
  }
  all.slurm = slurm_line(seen, all.gpus);
  return all;
}

}  // namespace berth::diagnose
