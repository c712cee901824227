// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/devices.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "machine/catalogue.hpp"

namespace berth::runtime::sim {
namespace {

constexpr std::string_view default_model = "mi300x";
constexpr bytes_t default_memory = 16 * gib;

// Of a model that device_count_of has accepted: it has a GPU.
const machine::gpu& gpu_of(const machine::model& of, int device) noexcept {
  const auto& gpus = of.hardware.gpus;
  const auto index = static_cast<std::size_t>(device);
  return gpus[std::min(index, gpus.size() - 1)];
}

result<machine::model> named_model(std::string_view name) {
  const auto* const known = machine::find_by_name(name);
  if (known != nullptr) {
    return *known;
  }
  std::vector<std::string> names;
  for (const auto& one : machine::catalogue()) {
    names.push_back(one.name);
  }
  return error(errc::usage, fmt::format("no machine model '{}'", name), "simulated runtime",
               fmt::format("known: {}; or the path of a machine file", fmt::join(names, ", ")));
}

std::optional<bool> truth_of(machine::setting_state state) noexcept {
  switch (state) {
    case machine::setting_state::on:
      return true;
    case machine::setting_state::off:
    case machine::setting_state::inapplicable:
      return false;
    case machine::setting_state::unknown:
      break;
  }
  return std::nullopt;
}

template <typename To, typename From>
std::optional<To> as(const std::optional<From>& value) {
  return value ? std::optional<To>(static_cast<To>(*value)) : std::nullopt;
}

}  // namespace

result<machine::model> model_of(const options& how) {
  if (how.machine) {
    return *how.machine;
  }
  const std::string_view name = how.model.empty() ? default_model : how.model;
  const bool is_file = name.find('/') != std::string_view::npos || name.ends_with(".json");
  return is_file ? machine::try_load_model(std::filesystem::path(name)) : named_model(name);
}

machine::vendor vendor_of(const machine::model& of) noexcept {
  return gpu_of(of, 0).made_by;
}

result<int> device_count_of(const machine::model& of, const options& how) {
  const auto count = how.devices > 0 ? how.devices : of.hardware.gpus.size();
  if (count == 0 || of.hardware.gpus.empty()) {
    return error(errc::usage, fmt::format("the machine model '{}' has no GPU", of.name),
                 "simulated runtime");
  }
  if (count > 64) {
    return error(errc::usage, fmt::format("{} devices are more than 64", count),
                 "simulated runtime");
  }
  return static_cast<int>(count);
}

result<migration> migration_of(const machine::model& of, const options& how) {
  const auto& gpu = gpu_of(of, 0);
  if (gpu.made_by == machine::vendor::nvidia) {
    return how.pages_migrate == migration::off ? migration::off : migration::on;
  }
  const bool cannot = gpu.xnack_can == machine::xnack_ability::none;
  if (cannot && how.pages_migrate == migration::on) {
    return error(errc::usage, fmt::format("'{}' cannot run with XNACK", of.name),
                 "simulated runtime");
  }
  if (how.pages_migrate != migration::by_model) {
    return how.pages_migrate;
  }
  return gpu.xnack == machine::setting_state::on ? migration::on : migration::off;
}

runtime_info describe_runtime(const machine::model& of, const options& how) {
  runtime_info info;
  info.kind = runtime_kind::sim;
  info.version = {.major = 1, .minor = 0, .patch = 0};
  info.library = fmt::format("sim:{}", of.name);
  info.timing = provenance::modelled;
  for (unsigned index = 0; index < capability_count; ++index) {
    info.capabilities.add(static_cast<capability>(index));
  }
  if (vendor_of(of) != machine::vendor::amd) {
    // As CUDA has it: all host memory is coherent, and pinned memory is of one sort.
    for (const auto lacking :
         {capability::coarse_grain_advice, capability::fine_grained_device,
          capability::host_coherence, capability::system_release, capability::tells_registered}) {
      info.capabilities.remove(lacking);
    }
  }
  for (unsigned index = 0; index < capability_count; ++index) {
    if (how.without.has(static_cast<capability>(index))) {
      info.capabilities.remove(static_cast<capability>(index));
    }
  }
  return info;
}

std::vector<device_info> describe_devices(const machine::model& of, const options& how, int count,
                                          migration pages) {
  std::vector<device_info> all;
  for (int index = 0; index < count; ++index) {
    const auto& gpu = gpu_of(of, index);
    const bool amd = gpu.made_by == machine::vendor::amd;
    device_info info;
    info.index = index;
    info.name = fmt::format("{} (simulated)", gpu.title.empty() ? of.title : gpu.title);
    if (!gpu.isa.empty()) {
      info.architecture = gpu.isa;
    }
    if (!gpu.pci_address.empty() && static_cast<std::size_t>(index) < of.hardware.gpus.size()) {
      info.pci_address = gpu.pci_address;
    }
    const bytes_t memory = gpu.memory.value_or(default_memory);
    info.memory_total = std::min(memory, how.device_memory.value_or(memory));
    info.compute_units = as<int>(gpu.compute_units);
    info.copy_engines = as<int>(gpu.dma_engines);
    info.wave_size = amd ? 64 : 32;
    info.numa_node = as<int>(gpu.numa_node);
    info.integrated = truth_of(gpu.integrated);
    info.unified_addressing = true;
    info.managed_memory = !how.without.has(capability::managed);
    info.concurrent_managed_access = true;
    info.direct_managed_access_from_host = false;
    info.pageable_access = amd && pages == migration::on;
    info.pageable_uses_host_page_tables =
        gpu.coherent_host_access == machine::setting_state::on && !amd;
    info.can_map_host_memory = true;
    info.host_register_supported = true;
    info.fine_grained_memory = amd && !how.without.has(capability::fine_grained_device);
    info.large_bar = false;  // the host faults on a device's memory here, whatever the model's BAR
    all.push_back(std::move(info));
  }
  return all;
}

}  // namespace berth::runtime::sim
