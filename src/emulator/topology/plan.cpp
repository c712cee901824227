// SPDX-License-Identifier: Apache-2.0
#include "emulator/topology/plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulator/shared_machine.hpp"

namespace berth::emulator {
namespace {

using machine::link_kind;
using machine::place_kind;
using machine::setting_state;

// The weights that the kernel driver gives (kfd_crat.c).
constexpr std::uint32_t pcie_weight = 20;
constexpr std::uint32_t coherent_host_weight = 13;
constexpr std::uint32_t xgmi_weight_per_hop = 15;
constexpr std::uint32_t other_socket_distance = 32;
constexpr std::uint32_t unknown_hops = 2;  // in a hive, between GPUs of which no link is known

// Of a first GPU on a socket: bus numbers as servers have them.
constexpr std::uint32_t bus_of_socket = 0x80;
constexpr std::uint32_t first_bus = 0x03;
constexpr std::uint32_t buses_per_gpu = 3;
constexpr std::uint32_t first_kfd_id = 0x4111;
constexpr std::uint32_t kfd_id_step = 0x111;
constexpr std::uint32_t first_render_minor = 128;
// The driver keeps some of the memory for itself.
constexpr bytes_t reserved_memory = 16 * mib;

error cannot_emulate(const machine::model& of, std::string why) {
  return error(errc::usage, fmt::format("{} cannot be emulated: {}", of.name, why), "--machine",
               "berth emulate --list shows the models that can");
}

result<std::vector<machine::gpu>> choose_gpus(const machine::model& of,
                                              std::optional<std::uint32_t> wanted) {
  auto chosen = of.hardware.gpus;
  if (chosen.empty()) {
    return cannot_emulate(of, "it has no GPU");
  }
  if (of.kind == machine::model_kind::gpu) {
    chosen.resize(wanted.value_or(1), chosen.front());
  } else if (wanted && *wanted > chosen.size()) {
    return error(errc::usage, fmt::format("{} has {} GPUs", of.name, chosen.size()), "--gpus");
  } else {
    chosen.resize(wanted.value_or(static_cast<std::uint32_t>(chosen.size())));
  }
  if (chosen.empty() || chosen.size() > most_gpus) {
    return error(errc::usage, fmt::format("1 to {} GPUs can be emulated", most_gpus), "--gpus");
  }
  std::set<std::string> unknown;
  for (const auto& gpu : chosen) {
    if (gpu.made_by != machine::vendor::amd) {
      return cannot_emulate(of, "its GPUs are not AMD's");
    }
    if (find_chip(gpu.isa) == nullptr) {
      unknown.insert(gpu.isa.empty() ? "a GPU without an ISA" : gpu.isa);
    }
    if (!gpu.memory) {
      return cannot_emulate(of, "the size of its memory is not known");
    }
  }
  if (!unknown.empty()) {
    return cannot_emulate(
        of, fmt::format("the emulator stands in for ROCm 5.2 devices and has no data of {}",
                        fmt::join(unknown, ", ")));
  }
  return chosen;
}

std::vector<std::uint32_t> online_cpus() {
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::vector<std::uint32_t> cpus;
  for (long cpu = 0; cpu < std::max(count, 1L); ++cpu) {
    cpus.push_back(static_cast<std::uint32_t>(cpu));
  }
  return cpus;
}

bytes_t host_memory() {
  return static_cast<bytes_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<bytes_t>(::sysconf(_SC_PAGESIZE));
}

// CPUs that exist, shared out evenly; with more nodes than CPUs they get the same ones again.
std::vector<std::uint32_t> share_of_cpus(const std::vector<std::uint32_t>& all, std::size_t node,
                                         std::size_t nodes) {
  std::vector<std::uint32_t> share;
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (index * nodes / all.size() == node) {
      share.push_back(all[index]);
    }
  }
  if (share.empty()) {
    share.push_back(all[node % all.size()]);
  }
  return share;
}

std::uint32_t distance_between(const machine::numa_node& from, std::uint32_t to) {
  for (const auto& distance : from.distances) {
    if (distance.to == to) {
      return distance.value;
    }
  }
  return from.id == to ? 10 : other_socket_distance;
}

std::vector<planned_node> plan_nodes(std::vector<machine::numa_node> of) {
  if (of.empty()) {
    of.emplace_back();
  }
  const auto cpus = online_cpus();
  std::vector<planned_node> nodes;
  for (std::size_t index = 0; index < of.size(); ++index) {
    planned_node node{.index = static_cast<std::uint32_t>(index),
                      .memory = of[index].memory.value_or(host_memory() / of.size()) / 4096 * 4096,
                      .cpus = share_of_cpus(cpus, index, of.size()),
                      .distances = {},
                      .links = {}};
    for (const auto& other : of) {
      node.distances.push_back(distance_between(of[index], other.id));
    }
    nodes.push_back(std::move(node));
  }
  for (auto& from : nodes) {
    for (const auto& to : nodes) {
      if (from.index != to.index) {
        from.links.push_back({.from = from.index,
                              .to = to.index,
                              .type = link_type::hypertransport,
                              .weight = from.distances[to.index]});
      }
    }
  }
  return nodes;
}

bool real_nodes_are(std::size_t count) {
  std::error_code ignored;
  std::size_t found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/node", ignored)) {
    const auto name = entry.path().filename().string();
    found += name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9';
  }
  return found == count;
}

std::uint32_t numa_index(const machine::description& hardware, const machine::gpu& gpu) {
  const auto& nodes = hardware.numa_nodes;
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (gpu.numa_node && nodes[index].id == *gpu.numa_node) {
      return static_cast<std::uint32_t>(index);
    }
  }
  return 0;
}

// "0000:c3:00.0" to bus and device.
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_pci(const std::string& address) {
  if (address.size() != 12) {
    return std::nullopt;
  }
  try {
    return std::pair(static_cast<std::uint32_t>(std::stoul(address.substr(5, 2), nullptr, 16)),
                     static_cast<std::uint32_t>(std::stoul(address.substr(8, 2), nullptr, 16)));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

planned_gpu plan_gpu(const machine::gpu& of, std::uint32_t index, std::size_t nodes,
                     std::uint32_t numa, std::uint32_t on_socket) {
  const auto sockets_before = std::min<std::uint32_t>(numa, 1);
  planned_gpu gpu{.model = of,
                  .made_as = find_chip(of.isa),
                  .index = index,
                  .node = static_cast<std::uint32_t>(nodes) + index,
                  .numa = numa,
                  .kfd_id = first_kfd_id + kfd_id_step * index,
                  .render_minor = first_render_minor + index,
                  .bus = first_bus + sockets_before * bus_of_socket + on_socket * buses_per_gpu,
                  .device = 0,
                  .memory = *of.memory - reserved_memory,
                  .large_bar = !of.bar || *of.bar >= *of.memory,
                  .io_links = {},
                  .peer_links = {}};
  if (const auto known = parse_pci(of.pci_address)) {
    gpu.bus = known->first;
    gpu.device = known->second;
  }
  return gpu;
}

std::uint64_t mb_per_s(double gb) {
  return static_cast<std::uint64_t>(gb * 1000);
}

void connect_to_host(planned_gpu& gpu, std::vector<planned_node>& nodes, const machine_plan& plan,
                     const machine::description& hardware) {
  auto& host = nodes[gpu.numa];
  const auto host_id = hardware.numa_nodes.empty() ? 0 : hardware.numa_nodes[gpu.numa].id;
  const auto* const known =
      find_link(plan.links, {place_kind::numa_node, host_id}, {place_kind::gpu, gpu.index});
  const bool coherent = known != nullptr && known->kind == link_kind::xgmi;
  planned_link link{.from = gpu.node,
                    .to = host.index,
                    .type = coherent ? link_type::xgmi : link_type::pcie,
                    .weight = coherent ? coherent_host_weight : pcie_weight};
  if (known != nullptr && known->nominal_gb_per_s) {
    link.max_mb_per_s = mb_per_s(*known->nominal_gb_per_s);
    link.min_mb_per_s = link.max_mb_per_s;
  }
  if (known != nullptr && known->weight) {
    link.weight = *known->weight;
  }
  gpu.io_links.push_back(link);
  if (gpu.large_bar) {  // without, the host cannot reach the device's memory
    std::swap(link.from, link.to);
    host.links.push_back(link);
  }
}

void connect_peers(planned_gpu& from, const planned_gpu& to, const machine_plan& plan) {
  const auto* const known =
      find_link(plan.links, {place_kind::gpu, from.index}, {place_kind::gpu, to.index});
  const bool same_hive = from.model.hive && from.model.hive == to.model.hive;
  const bool xgmi = known != nullptr ? known->kind == link_kind::xgmi : same_hive;
  planned_link link{
      .from = from.node, .to = to.node, .type = xgmi ? link_type::xgmi : link_type::pcie};
  if (xgmi) {
    const auto count = known != nullptr ? known->count.value_or(1) : 1;
    const auto hops = known != nullptr ? known->hops.value_or(1) : unknown_hops;
    link.weight = xgmi_weight_per_hop * hops;
    link.max_mb_per_s =
        known != nullptr && known->nominal_gb_per_s ? mb_per_s(*known->nominal_gb_per_s) : 0;
    link.min_mb_per_s = link.max_mb_per_s / std::max(count, 1U);
  } else {
    const bool same_socket = from.numa == to.numa;
    link.weight = 2 * pcie_weight + (same_socket ? 0 : plan.nodes[from.numa].distances[to.numa]);
  }
  if (known != nullptr && known->weight) {
    link.weight = *known->weight;
  }
  (xgmi ? from.io_links : from.peer_links).push_back(link);
}

}  // namespace

const machine::link* find_link(const std::vector<machine::link>& links, machine::place a,
                               machine::place b) {
  const auto found = std::find_if(links.begin(), links.end(), [&](const machine::link& one) {
    return (one.from == a && one.to == b) || (one.from == b && one.to == a);
  });
  return found == links.end() ? nullptr : &*found;
}

std::string planned_gpu::pci_address() const {
  return fmt::format("0000:{:02x}:{:02x}.0", bus, device);
}

result<machine_plan> plan_machine(const machine::model& of, std::optional<std::uint32_t> gpus) {
  auto chosen = choose_gpus(of, gpus);
  if (!chosen) {
    return chosen.error();
  }
  const auto& hardware = of.hardware;
  machine_plan plan{
      .name = of.name,
      .title = of.title,
      .nodes = plan_nodes(hardware.numa_nodes),
      .gpus = {},
      .hmm = hardware.set.hmm != setting_state::off,
      .numa = numa_nodes::real,
      .profile = of.profile,
      .links = hardware.links,
      .xnack = hardware.set.xnack == setting_state::on ? xnack_mode::on : xnack_mode::off,
      .xnack_can = xnack_support::supported};
  plan.numa = real_nodes_are(plan.nodes.size()) ? numa_nodes::real : numa_nodes::invented;
  std::array<std::uint32_t, most_gpus> on_socket{};
  for (const auto& gpu : *chosen) {
    const auto numa = numa_index(hardware, gpu);
    plan.gpus.push_back(plan_gpu(gpu, static_cast<std::uint32_t>(plan.gpus.size()),
                                 plan.nodes.size(), numa, on_socket[numa > 0 ? 1 : 0]++));
    if (gpu.xnack_can != machine::xnack_ability::per_process) {
      plan.xnack_can = xnack_support::unsupported;  // the driver wants it of all devices
    }
  }
  for (auto& gpu : plan.gpus) {
    connect_to_host(gpu, plan.nodes, plan, hardware);
  }
  for (auto& from : plan.gpus) {
    for (const auto& to : plan.gpus) {
      if (from.index != to.index) {
        connect_peers(from, to, plan);
      }
    }
  }
  return plan;
}

}  // namespace berth::emulator
