// SPDX-License-Identifier: Apache-2.0
// What copies cost on the emulated machine: the model's figures, in the form that the preloaded
// library reads.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "emulator/topology/plan.hpp"

namespace berth::emulator {
namespace {

using machine::place_kind;

cost_curve curve_of(const machine::cost& cost) {
  cost_curve curve;
  for (const auto& knot : cost.knots()) {
    curve.knots.push_back({.bytes = knot.bytes, .ns = knot.ns});
  }
  const auto rate = cost.large_gb_per_s();
  curve.tail_ns_per_byte =
      rate > 0 && rate < std::numeric_limits<double>::infinity() ? 1 / rate : 0;
  return curve;
}

cost_curve straight(double a_ns, double gb_per_s) {
  return curve_of(machine::cost::linear(a_ns, gb_per_s));
}

std::optional<cost_curve> known_cost(const machine::machine_profile& profile, direction way,
                                     engine by, std::optional<std::uint32_t> links = {}) {
  const bool has_host_end = way == direction::host_to_device || way == direction::device_to_host;
  const auto match =
      profile.lookup({.way = way,
                      .host = has_host_end ? memory_kind::pinned : memory_kind::device,
                      .by = by,
                      .traits = {},
                      .parallelism = links});
  return match ? std::optional(curve_of(match->device_time)) : std::nullopt;
}

// What a copy costs in the model; where it says nothing, at the rate of what it passes.
struct cost_book {
  const machine::machine_profile& profile;

  static constexpr double start_ns = 6000;  // as AMD's engines take for small copies
  static constexpr double usual_link_gb_per_s = 25;
  static constexpr double usual_memory_gb_per_s = 500;

  [[nodiscard]] double link_gb_per_s() const {
    const auto known = profile.find(machine::quantity::host_link_gb_per_s);
    return known ? known->value * 0.85 : usual_link_gb_per_s;
  }
  [[nodiscard]] cost_curve over_link(direction way, engine by) const {
    if (auto known = known_cost(profile, way, by)) {
      return *known;
    }
    const auto dma = known_cost(profile, way, engine::dma);
    return dma ? *dma : straight(start_ns, link_gb_per_s());
  }
  [[nodiscard]] cost_curve within() const {
    if (auto known = known_cost(profile, direction::device_to_device, engine::kernel)) {
      return *known;
    }
    const auto memory = profile.find(machine::quantity::memory_gb_per_s);
    // Each byte is read and written; about four fifths of the nominal rate are reached.
    return straight(start_ns, memory ? memory->value * 0.4 : usual_memory_gb_per_s);
  }
  [[nodiscard]] cost_curve to_peer(const planned_link& link, std::uint32_t physical_links) const {
    if (link.type == link_type::xgmi) {
      if (auto known = known_cost(profile, direction::peer_to_peer, engine::dma, physical_links)) {
        return *known;
      }
      if (link.max_mb_per_s > 0) {
        return straight(start_ns, static_cast<double>(link.max_mb_per_s) / 1000 * 0.75);
      }
    }
    return over_link(direction::host_to_device, engine::dma);
  }
};

// "AMD Instinct MI250X (one GCD)" is what people write; the device calls itself without the remark.
std::string marketing_name(const machine::gpu& gpu) {
  const auto& title = gpu.title.empty() ? gpu.isa : gpu.title;
  return title.substr(0, title.find(" ("));
}

gpu_spec spec_of_gpu(const planned_gpu& gpu, const cost_book& costs) {
  gpu_spec spec{.kfd_id = gpu.kfd_id,
                .kfd_node = gpu.node,
                .render_minor = gpu.render_minor,
                .memory = gpu.memory,
                .title = marketing_name(gpu.model),
                .costs = {}};
  for (const auto by : {carrier::dma, carrier::kernel}) {
    const auto word = by == carrier::dma ? engine::dma : engine::kernel;
    spec.cost(transfer::host_to_device, by) = costs.over_link(direction::host_to_device, word);
    spec.cost(transfer::device_to_host, by) = costs.over_link(direction::device_to_host, word);
    spec.cost(transfer::within_device, by) = costs.within();
  }
  return spec;
}

}  // namespace

machine_spec spec_of(const machine_plan& plan) {
  machine_spec spec;
  spec.name = plan.name;
  spec.xnack_can = plan.xnack_can;
  spec.xnack = plan.xnack;
  spec.numa = plan.numa;
  const cost_book costs{plan.profile};
  constexpr bytes_t room_for_host_buffers = 256 * gib;
  bytes_t memory = 0;
  for (const auto& gpu : plan.gpus) {
    spec.gpus.push_back(spec_of_gpu(gpu, costs));
    memory += gpu.memory;
    for (const auto* const links : {&gpu.io_links, &gpu.peer_links}) {
      for (const auto& link : *links) {
        if (link.to < plan.nodes.size()) {
          continue;
        }
        const auto to = link.to - static_cast<std::uint32_t>(plan.nodes.size());
        const auto* const known =
            find_link(plan.links, {place_kind::gpu, gpu.index}, {place_kind::gpu, to});
        const auto physical = known != nullptr ? known->count.value_or(1) : 1;
        spec.peers.push_back({.from = gpu.index, .to = to, .cost = costs.to_peer(link, physical)});
      }
    }
  }
  spec.slice_bytes = (memory + room_for_host_buffers + mib - 1) / mib * mib;
  return spec;
}

}  // namespace berth::emulator
