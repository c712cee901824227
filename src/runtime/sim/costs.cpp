// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/costs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace berth::runtime::sim {
namespace {

using op = machine::operation;
using machine::quantity;

// What a model's profile may lack. Of the order of what was measured on an H200; only there so that
// every operation takes time.
constexpr double default_link_gb_per_s = 25;
constexpr double default_inside_gb_per_s = 500;
constexpr double default_peer_gb_per_s = 40;
constexpr double default_cpu_gb_per_s = 10;
constexpr double default_fixed_ns = 1000;
constexpr double default_call_ns = 9000;
constexpr double default_launch_ns = 2500;
constexpr double most_submit_ns = 2500;

// Of the rate of a copy between device memory: an H200's 1490 of 1915 GB/s.
constexpr double managed_of_device_rate = 0.78;

struct default_cost {
  op what;
  double a_ns;
  double gb_per_s;
};
constexpr std::array<default_cost, 16> default_costs{{
    {op::host_register, 60'000, 20},
    {op::host_unregister, 30'000, 55},
    {op::pinned_alloc, 900'000, 2.1},
    {op::pinned_free, 350'000, 7},
    {op::device_alloc, 90'000, 4000},
    {op::device_free, 55'000, 1700},
    {op::stream_ordered_alloc_free, 1'100, 1e6},
    {op::host_populate, 0, 1.4},
    {op::managed_touch_by_device, 0, 10},
    {op::managed_touch_by_host, 0, 3},
    {op::managed_prefetch_to_device, 0, 20},
    {op::managed_prefetch_to_host, 0, 10},
    {op::managed_remote_read, 2'500, 20},
    {op::managed_remote_write, 2'500, 20},
    {op::zero_copy_read, 2'500, 20},
    {op::zero_copy_write, 2'500, 20},
}};

double default_rate(direction way) noexcept {
  switch (way) {
    case direction::device_to_device:
      return default_inside_gb_per_s;
    case direction::peer_to_peer:
      return default_peer_gb_per_s;
    case direction::host_to_host:
      return default_cpu_gb_per_s;
    default:
      return default_link_gb_per_s;
  }
}

std::uint64_t key_of(const machine::path& where) noexcept {
  return static_cast<std::uint64_t>(where.way) | static_cast<std::uint64_t>(where.host) << 8U |
         static_cast<std::uint64_t>(where.by) << 16U |
         static_cast<std::uint64_t>(where.traits.bits()) << 24U |
         static_cast<std::uint64_t>(where.parallelism.value_or(0)) << 32U;
}

copy_cost made_up(const machine::path& where, bytes_t bytes) {
  const double rate = default_rate(where.way);
  return {.fixed_ns = default_fixed_ns,
          .flow_ns = static_cast<double>(bytes) / rate,
          .gb_per_s = rate,
          .by = where.by == engine::kernel ? engine::kernel : engine::dma,
          .call_ns = default_call_ns};
}

}  // namespace

costs::costs(machine::machine_profile profile) : profile_(std::move(profile)) {
  memory_gb_per_s_ = quantity_or(quantity::kernel_memory_gb_per_s,
                                 quantity_or(quantity::memory_gb_per_s, 800) * 0.8);
  bidirectional_gb_per_s_ = quantity_or(quantity::host_bidirectional_gb_per_s, 0);
  peer_bidirectional_gb_per_s_ = quantity_or(quantity::peer_bidirectional_gb_per_s, 0);
  beside_dma_ = quantity_or(quantity::kernel_slowdown_beside_dma, 1.01);
  beside_kernel_copy_ = quantity_or(quantity::kernel_slowdown_beside_kernel_copy, 1.4);
  engines_per_direction_ =
      static_cast<unsigned>(quantity_or(quantity::copy_engines_per_direction, 1));
  launch_ns_ = quantity_or(quantity::launch_ns, default_launch_ns);
  const auto pinned =
      copy({.way = direction::host_to_device, .host = memory_kind::pinned}, 4 * kib);
  submit_ns_ = quantity_or(quantity::submit_ns, std::min(most_submit_ns, pinned.call_ns));
}

const machine::path_match* costs::find(const machine::path& where) {
  auto [entry, is_new] = known_.try_emplace(key_of(where));
  if (is_new) {
    entry->second = profile_.lookup(where);
    if (!entry->second && where.host == memory_kind::managed) {
      machine::path pinned = where;
      pinned.host = memory_kind::pinned;
      entry->second = profile_.lookup(pinned);
    }
  }
  return entry->second ? &*entry->second : nullptr;
}

copy_cost costs::copy(const machine::path& where, bytes_t bytes) {
  const auto* const match = find(where);
  if (match == nullptr && where.by == engine::kernel && where.way == direction::peer_to_peer) {
    machine::path by_dma = where;
    by_dma.by = engine::unknown;
    by_dma.parallelism.reset();
    auto cost = copy(by_dma, bytes);
    cost.by = engine::kernel;
    return cost;
  }
  if (match == nullptr && where.host == memory_kind::pageable &&
      where.way != direction::host_to_host) {
    // Staged: one after the other, by the CPU and over the link.
    machine::path pinned = where;
    pinned.host = memory_kind::pinned;
    auto cost = copy(pinned, bytes);
    cost.flow_ns += static_cast<double>(bytes) / cpu_copy_gb_per_s(1);
    return cost;
  }
  if (match == nullptr) {
    return made_up(where, bytes);
  }
  const double fixed = match->device_time.nanoseconds(0);
  const double all = match->device_time.nanoseconds(bytes);
  const double measured_call = match->call_overhead_ns ? match->call_overhead_ns->value : -1;
  const double small_call = quantity_or(quantity::small_copy_call_ns, default_call_ns);
  return {.fixed_ns = fixed,
          .flow_ns = all - fixed,
          .gb_per_s = all > fixed ? static_cast<double>(bytes) / (all - fixed)
                                  : match->device_time.large_gb_per_s(),
          .by = match->answered.by,
          .call_ns = measured_call >= 0 ? measured_call : std::max(0.0, small_call - fixed)};
}

double costs::operation_ns(op what, bytes_t bytes, machine::trait_set traits) {
  if (const auto known = profile_.expected_time(what, bytes, traits)) {
    return static_cast<double>(known->time.count());
  }
  if (what == op::managed_resident_copy) {
    const auto local = copy(
        {.way = direction::device_to_device, .host = memory_kind::device, .by = engine::kernel},
        bytes);
    return local.fixed_ns + local.flow_ns / managed_of_device_rate;
  }
  const auto* const row =
      std::find_if(default_costs.begin(), default_costs.end(),
                   [what](const default_cost& one) { return one.what == what; });
  return row->a_ns + static_cast<double>(bytes) / row->gb_per_s;
}

double costs::quantity_or(quantity what, double otherwise) const {
  const auto known = profile_.find(what);
  return known ? known->value : otherwise;
}

double costs::cpu_copy_gb_per_s(unsigned threads) {
  const machine::path where{.way = direction::host_to_host,
                            .host = memory_kind::pageable,
                            .by = engine::cpu,
                            .parallelism = std::max(1U, threads)};
  const auto* const match = find(where);
  const double rate = match == nullptr ? 0 : match->device_time.large_gb_per_s();
  return rate > 0 && std::isfinite(rate) ? rate : default_cpu_gb_per_s * std::max(1U, threads);
}

}  // namespace berth::runtime::sim
