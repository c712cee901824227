// SPDX-License-Identifier: Apache-2.0
#include "diagnose/checks/values.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/text.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

bool joins(const machine::link& link, std::uint32_t a, std::uint32_t b) {
  const machine::place first{machine::place_kind::gpu, a};
  const machine::place second{machine::place_kind::gpu, b};
  return (link.from == first && link.to == second) || (link.from == second && link.to == first);
}

bool is_fast_kind(machine::link_kind kind) {
  return kind == machine::link_kind::xgmi || kind == machine::link_kind::nvlink;
}

std::optional<machine::link> best_link(const machine::survey& seen, std::uint32_t a,
                                       std::uint32_t b) {
  std::optional<machine::link> best;
  for (const auto& link : seen.machine.links) {
    if (joins(link, a, b) && (!best || is_fast_kind(link.kind))) {
      best = link;
    }
  }
  return best;
}

// Each once, and in order.
std::vector<std::uint32_t> sorted(std::span<const std::uint32_t> numbers) {
  std::vector<std::uint32_t> all(numbers.begin(), numbers.end());
  std::ranges::sort(all);
  const auto twice = std::ranges::unique(all);
  all.erase(twice.begin(), twice.end());
  return all;
}

}  // namespace

std::string gpu_field(std::size_t position, std::string_view name) {
  return fmt::format("gpus[{}].{}", position, name);
}

std::vector<std::uint32_t> indices_of(const machine::survey& seen,
                                      std::span<const std::size_t> positions) {
  std::vector<std::uint32_t> indices;
  for (const auto position : positions) {
    indices.push_back(seen.machine.gpus[position].index);
  }
  return indices;
}

std::string number_list(std::span<const std::uint32_t> numbers) {
  return text::number_list(sorted(numbers));
}

std::string gpu_names(std::span<const std::uint32_t> indices) {
  const auto parts = text::number_ranges(sorted(indices));
  std::string text = indices.size() == 1 ? "GPU " : "GPUs ";
  for (std::size_t index = 0; index < parts.size(); ++index) {
    text += index == 0 ? "" : index + 1 == parts.size() ? " and " : ", ";
    text += parts[index];
  }
  return text;
}

std::string model_of(const machine::gpu& gpu) {
  if (!gpu.title.empty()) {
    return gpu.title;
  }
  if (!gpu.model.empty()) {
    return gpu.model;
  }
  if (!gpu.isa.empty()) {
    return gpu.isa;
  }
  return gpu.made_by == machine::vendor::amd      ? "AMD GPU"
         : gpu.made_by == machine::vendor::nvidia ? "NVIDIA GPU"
                                                  : "GPU";
}

std::string link_text(const machine::pcie_link& link) {
  const auto speed = machine::pcie_speed_of(link.generation.value_or(0));
  return fmt::format("{} GT/s x{}", speed.empty() ? "?" : speed,
                     link.width ? fmt::format("{}", *link.width) : "?");
}

check_evidence evidence_of(const machine::survey& seen, std::string field, std::string value) {
  const auto* said = seen.claim_of(field);
  if (said == nullptr) {
    const auto below = std::ranges::find_if(seen.claims, [&](const machine::claim& one) {
      return one.field.size() > field.size() && one.field.starts_with(field) &&
             one.field[field.size()] == '.';
    });
    said = below != seen.claims.end() ? &*below : nullptr;
  }
  return {std::move(field), std::move(value), said != nullptr ? said->source : std::string()};
}

const machine::environment_variable* find_variable(const machine::survey& seen,
                                                   std::string_view name) {
  const auto& all = seen.machine.set.environment;
  const auto found = std::ranges::find(all, name, &machine::environment_variable::name);
  return found == all.end() ? nullptr : &*found;
}

std::size_t count_gpus(const machine::survey& seen, machine::vendor made_by) {
  return static_cast<std::size_t>(
      std::ranges::count(seen.machine.gpus, made_by, &machine::gpu::made_by));
}

bool is_instinct(const machine::gpu& gpu) {
  constexpr std::array<std::string_view, 7> parts{"gfx906", "gfx908", "gfx90a", "gfx940",
                                                  "gfx941", "gfx942", "gfx950"};
  return std::ranges::any_of(parts, [&](std::string_view one) { return gpu.isa == one; });
}

const machine::numa_node* find_node(const machine::survey& seen, std::uint32_t id) {
  const auto& all = seen.machine.numa_nodes;
  const auto found = std::ranges::find(all, id, &machine::numa_node::id);
  return found == all.end() ? nullptr : &*found;
}

std::vector<gpu_pair> pairs_of(const machine::survey& seen) {
  std::vector<gpu_pair> pairs;
  const auto& gpus = seen.machine.gpus;
  for (std::size_t first = 0; first < gpus.size(); ++first) {
    for (auto second = first + 1; second < gpus.size(); ++second) {
      pairs.push_back({first, second, best_link(seen, gpus[first].index, gpus[second].index)});
    }
  }
  return pairs;
}

bool is_fast(const gpu_pair& pair) {
  return pair.joined && is_fast_kind(pair.joined->kind);
}

bool has_pcie_peers(const machine::survey& seen) {
  return std::ranges::any_of(pairs_of(seen), [&](const gpu_pair& pair) {
    const auto& a = seen.machine.gpus[pair.first];
    const auto& b = seen.machine.gpus[pair.second];
    const bool same_hive = a.hive && b.hive && *a.hive == *b.hive;
    return a.made_by == b.made_by && !same_hive && !is_fast(pair);
  });
}

}  // namespace berth::diagnose
