// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/pricing.hpp"

#include <algorithm>
#include <cmath>

namespace berth::runtime::sim {
namespace {

using op = machine::operation;
using machine::trait;

constexpr double kernel_start_ns = 1000;
constexpr bytes_t touched_line = 64;  // what one touched byte moves
constexpr bytes_t migration_block = 64 * kib;

// Blocks of 512 threads that a kernel copy is known to slow other kernels with.
constexpr double saturating_blocks = 32;

double nanoseconds(bytes_t bytes, double gb_per_s) noexcept {
  return static_cast<double>(bytes) / gb_per_s;
}

std::optional<std::uint32_t> blocks_of(launch_shape shape) noexcept {
  return shape.blocks == 0 ? std::nullopt : std::optional<std::uint32_t>(shape.blocks);
}

bool is_gpu(const machine::place& one, int index) noexcept {
  return one.kind == machine::place_kind::gpu && one.id == static_cast<std::uint32_t>(index);
}

}  // namespace

int place_of(const memory_range& range) {
  switch (range.kind()) {
    case memory_kind::device:
      return range.of->device;
    case memory_kind::managed:
      return range.of->places->mostly(range.offset(), range.bytes);
    default:
      return on_host;
  }
}

pricing::pricing(const machine::model& of, costs& cost, int devices)
    : of_(of), cost_(cost), devices_(devices) {}

running_cost pricing::price(const sim::operation& what) {
  return std::visit([&](const auto& one) { return price_of(one, what); }, what.what);
}

engine pricing::carrier(const sim::operation& what) noexcept {
  switch (what.where) {
    case lane::to_device:
    case lane::to_host:
    case lane::inside:
    case lane::peer:
      return what.cost.by_kernel_copy ? engine::kernel : engine::dma;
    case lane::compute:
      return engine::kernel;
    case lane::host:
      return engine::cpu;
    case lane::none:
      break;
  }
  return engine::unknown;
}

// --- Where things are -----------------------------------------------------------------------

std::optional<std::uint32_t> pricing::links_between(int device, int peer) const {
  for (const auto& one : of_.hardware.links) {
    if ((is_gpu(one.from, device) && is_gpu(one.to, peer)) ||
        (is_gpu(one.from, peer) && is_gpu(one.to, device))) {
      return one.count.value_or(1);
    }
  }
  return std::nullopt;
}

bool pricing::linked(int device, int peer) const {
  if (device == peer || links_between(device, peer)) {
    return true;
  }
  // A model of one GPU, several times: linked if the model says what a link gives.
  const bool several_of_one = of_.hardware.gpus.size() < static_cast<std::size_t>(devices_);
  const auto paths = of_.profile.paths();
  return several_of_one &&
         (of_.profile.find(machine::quantity::peer_bidirectional_gb_per_s).has_value() ||
          std::any_of(paths.begin(), paths.end(), [](const machine::path_cost& row) {
            return row.where.way == direction::peer_to_peer;
          }));
}

std::uint32_t pricing::numa_node_of(int device) const {
  const auto& gpus = of_.hardware.gpus;
  const auto index = static_cast<std::size_t>(device);
  return index < gpus.size() ? gpus[index].numa_node.value_or(0) : 0;
}

machine::trait_set pricing::traits_of(const memory_range& host_end, int device) const {
  machine::trait_set traits;
  if (host_end.of != nullptr && host_end.of->caching == host_caching::write_combined) {
    traits = traits.with(trait::write_combined);
  }
  if (host_end.of != nullptr && host_end.of->numa_node &&
      *host_end.of->numa_node != numa_node_of(device)) {
    traits = traits.with(trait::numa_remote);
  }
  return traits;
}

// --- Copies ---------------------------------------------------------------------------------

running_cost pricing::price_of(const copy_work& what, const sim::operation& all) {
  if (what.way == direction::peer_to_peer) {
    return price_peer_copy(what);
  }
  const auto& host_end = what.way == direction::host_to_device ? what.src : what.dst;
  const bool was_staged = !what.staged.empty();
  const auto kind = was_staged ? memory_kind::pinned : host_end.kind();
  const auto traits = was_staged ? machine::trait_set() : what.traits;
  const auto cost = cost_.copy(
      {.way = what.way,
       .host = what.way == direction::device_to_device ? memory_kind::device : kind,
       .traits = machine::trait_set::from_bits(
           static_cast<std::uint8_t>(traits.bits() | traits_of(host_end, all.device).bits()))},
      what.bytes());
  running_cost sum{.fixed_ns = cost.fixed_ns,
                   .flow_ns = cost.flow_ns,
                   .by_kernel_copy = cost.by == engine::kernel};
  const bool amd =
      !of_.hardware.gpus.empty() && of_.hardware.gpus.front().made_by == machine::vendor::amd;
  if (amd && what.rows > 1 && (what.src_pitch % 4 != 0 || what.dst_pitch % 4 != 0)) {
    sum.fixed_ns *= static_cast<double>(what.rows);  // one DMA copy for each row
  }
  switch (what.way) {
    case direction::host_to_device:
      sum.to_device_gb_per_s = cost.gb_per_s;
      break;
    case direction::device_to_host:
      sum.to_host_gb_per_s = cost.gb_per_s;
      break;
    default:
      sum.uses_memory = true;
      break;
  }
  return sum;
}

running_cost pricing::price_peer_copy(const copy_work& what) {
  const int from = place_of(what.src);
  const int to = place_of(what.dst);
  if (linked(from, to)) {
    const auto cost = cost_.copy({.way = direction::peer_to_peer,
                                  .host = memory_kind::device,
                                  .parallelism = links_between(from, to)},
                                 what.bytes());
    return {.fixed_ns = cost.fixed_ns,
            .flow_ns = cost.flow_ns,
            .peer_gb_per_s = cost.gb_per_s,
            .peer = to,
            .by_kernel_copy = cost.by == engine::kernel};
  }
  // By way of the host, one after the other.
  const auto up =
      cost_.copy({.way = direction::device_to_host, .host = memory_kind::pinned}, what.bytes());
  const auto down =
      cost_.copy({.way = direction::host_to_device, .host = memory_kind::pinned}, what.bytes());
  return {.fixed_ns = up.fixed_ns + down.fixed_ns,
          .flow_ns = up.flow_ns + down.flow_ns,
          .to_host_gb_per_s = up.gb_per_s};
}

running_cost pricing::price_of(const fill_work& what, const sim::operation& all) {
  running_cost sum{.fixed_ns = kernel_start_ns, .slowed_by_copies = true};
  add_access(what.dst, what.dst.bytes, access_kind::write, all.device, sum);
  return sum;
}

running_cost pricing::price_of(const prefetch_work& what, const sim::operation& /*all*/) {
  const auto moved = what.range.of == nullptr
                         ? touch_result{.local = what.range.bytes}
                         : what.range.of->places->preview_prefetch(what.range.offset(),
                                                                   what.range.bytes, what.where);
  const bool to_host = what.where == on_host;
  const bytes_t bytes = moved.from_host + moved.from_device;
  const double ns = cost_.operation_ns(
      to_host ? op::managed_prefetch_to_host : op::managed_prefetch_to_device, bytes);
  const double rate = ns > 0 ? static_cast<double>(bytes) / ns : 0;
  running_cost sum{.fixed_ns = kernel_start_ns, .flow_ns = ns};
  (to_host ? sum.to_host_gb_per_s : sum.to_device_gb_per_s) = rate;
  return sum;
}

running_cost pricing::price_of(const host_work_call& /*what*/, const sim::operation& /*all*/) {
  return {};
}

running_cost pricing::price_of(const marker_work& /*what*/, const sim::operation& /*all*/) {
  return {};
}

// --- Kernels --------------------------------------------------------------------------------

bytes_t pricing::add_migration(const memory_range& range, access_kind how, int device,
                               running_cost& sum) {
  if (range.kind() != memory_kind::managed) {
    return 0;
  }
  const auto met = range.of->places->preview(range.offset(), range.bytes, device, how);
  const bytes_t moved = met.from_host + met.from_device;
  if (moved > 0) {
    const double ns = cost_.operation_ns(op::managed_touch_by_device, moved);
    sum.flow_ns += ns;
    sum.to_device_gb_per_s = std::max(sum.to_device_gb_per_s, nanoseconds(moved, ns));
  }
  return met.remote;
}

void pricing::add_access(const memory_range& range, bytes_t bytes, access_kind how, int device,
                         running_cost& sum) {
  const bool writes = how == access_kind::write;
  const bytes_t remote = std::min(bytes, add_migration(range, how, device, sum));
  const bytes_t local = bytes - remote;
  double ns = 0;
  bool over_link = remote > 0;
  if (remote > 0) {
    ns += cost_.operation_ns(writes ? op::managed_remote_write : op::managed_remote_read, remote);
  }
  if (is_page_locked(range.kind())) {
    ns += cost_.operation_ns(writes ? op::zero_copy_write : op::zero_copy_read, local);
    over_link = true;
  } else if (range.on_device() && range.of->device != device) {
    const auto cost = cost_.copy({.way = direction::peer_to_peer,
                                  .host = memory_kind::device,
                                  .by = engine::kernel,
                                  .parallelism = links_between(device, range.of->device)},
                                 local);
    ns += cost.flow_ns;
    sum.fixed_ns = std::max(sum.fixed_ns, cost.fixed_ns);
  } else {
    ns += nanoseconds(local, cost_.memory_gb_per_s());
    sum.uses_memory = sum.uses_memory || local > 0;
  }
  sum.flow_ns += ns;
  if (over_link) {
    (writes ? sum.to_host_gb_per_s : sum.to_device_gb_per_s) = nanoseconds(bytes, ns);
  }
}

running_cost pricing::price_kernel_copy(const kernel_work& what, int device) {
  const auto& dst = what.writes[0];
  const auto& src = what.reads[0];
  const auto blocks = blocks_of(what.shape);
  const bool from_host = is_page_locked(src.kind());
  const bool to_host = is_page_locked(dst.kind());
  const bool plain_ends = (from_host || (src.on_device() && src.of->device == device)) &&
                          (to_host || (dst.on_device() && dst.of->device == device));
  running_cost sum{.fixed_ns = kernel_start_ns, .by_kernel_copy = from_host || to_host};
  if (plain_ends && !(from_host && to_host)) {
    const auto way = from_host ? direction::host_to_device
                     : to_host ? direction::device_to_host
                               : direction::device_to_device;
    const auto cost =
        cost_.copy({.way = way,
                    .host = from_host || to_host ? memory_kind::pinned : memory_kind::device,
                    .by = engine::kernel,
                    .traits = traits_of(from_host ? src : dst, device),
                    .parallelism = way == direction::device_to_device ? std::nullopt : blocks},
                   dst.bytes);
    sum.fixed_ns = cost.fixed_ns;
    sum.flow_ns = cost.flow_ns;
    sum.to_device_gb_per_s = from_host ? cost.gb_per_s : 0;
    sum.to_host_gb_per_s = to_host ? cost.gb_per_s : 0;
    sum.uses_memory = way == direction::device_to_device;
    sum.slowed_by_copies = sum.uses_memory;
    return sum;
  }
  // With managed or peer memory: each end for itself; both resident at the rate known for that.
  running_cost ends{};
  add_access(src, src.bytes, access_kind::read, device, ends);
  add_access(dst, dst.bytes, access_kind::write, device, ends);
  const double as_if_local = nanoseconds(src.bytes + dst.bytes, cost_.memory_gb_per_s());
  const double resident = cost_.operation_ns(op::managed_resident_copy, dst.bytes);
  const bool is_resident = ends.uses_memory && std::abs(ends.flow_ns - as_if_local) < 1;
  sum.flow_ns = is_resident ? resident : ends.flow_ns;
  sum.to_device_gb_per_s = ends.to_device_gb_per_s;
  sum.to_host_gb_per_s = ends.to_host_gb_per_s;
  sum.uses_memory = is_resident;
  sum.slowed_by_copies = true;
  return sum;
}

running_cost pricing::price_of(const kernel_work& what, const sim::operation& all) {
  if (std::holds_alternative<kernel_spin>(what.request)) {
    return {};
  }
  if (std::holds_alternative<kernel_copy>(what.request)) {
    auto sum = price_kernel_copy(what, all.device);
    if (sum.by_kernel_copy && what.shape.blocks > 0) {
      // Few blocks leave others room: not worth calling a copy that slows kernels.
      sum.by_kernel_copy = what.shape.blocks >= saturating_blocks / 4;
    }
    return sum;
  }
  running_cost sum{.fixed_ns = kernel_start_ns, .slowed_by_copies = true};
  if (const auto* const touch = std::get_if<kernel_touch>(&what.request)) {
    const auto& range = what.writes.empty() ? what.reads[0] : what.writes[0];
    const auto how = what.writes.empty() ? access_kind::read : access_kind::write;
    const bytes_t lines =
        std::min(range.bytes, (range.bytes + touch->stride - 1) / touch->stride * touched_line);
    if (range.kind() == memory_kind::managed && touch->stride > migration_block) {
      memory_range first = range;  // pages between are left alone; about as many as are touched
      first.bytes = std::min(range.bytes, lines / touched_line * migration_block);
      add_access(first, lines, how, all.device, sum);
    } else {
      add_access(range, lines, how, all.device, sum);
    }
    return sum;
  }
  for (const auto& range : what.reads) {
    add_access(range, range.bytes, access_kind::read, all.device, sum);
  }
  for (const auto& range : what.writes) {
    add_access(range, range.bytes, access_kind::write, all.device, sum);
  }
  return sum;
}

}  // namespace berth::runtime::sim
