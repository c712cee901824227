// SPDX-License-Identifier: Apache-2.0
// Copies and fills: the direction that follows from the addresses, and when a call returns.
//
//   pinned, registered, managed, device   queued; the caller must wait.
//   pageable                              the call waits, as the runtimes do. Only a small copy to
//                                         a device does not: its source is taken along.
//   host to host                          the calling thread copies, after the stream's work.
#include <limits>

#include <fmt/format.h>

#include "runtime/sim/effects.hpp"
#include "runtime/sim/simulation.hpp"

namespace berth::runtime::sim {
namespace {

// Up to this size the source is taken along: CUDA's documented 64 KiB, HIP's staging buffer.
constexpr bytes_t taken_along_nvidia = 64 * kib;
constexpr bytes_t taken_along_amd = mib;

lane lane_of(direction way) noexcept {
  switch (way) {
    case direction::host_to_device:
      return lane::to_device;
    case direction::device_to_host:
      return lane::to_host;
    case direction::peer_to_peer:
      return lane::peer;
    default:
      return lane::inside;
  }
}

direction way_between(int from, int to) noexcept {
  if (from < 0 && to < 0) {
    return direction::host_to_host;
  }
  if (from < 0) {
    return direction::host_to_device;
  }
  if (to < 0) {
    return direction::device_to_host;
  }
  return from == to ? direction::device_to_device : direction::peer_to_peer;
}

// Bytes from the first of the first row to the last of the last; nothing where that overflows.
std::optional<bytes_t> extent_of(std::size_t pitch, std::size_t width, std::size_t rows) noexcept {
  bytes_t all = 0;
  if (__builtin_mul_overflow(rows - 1, pitch, &all) || __builtin_add_overflow(all, width, &all)) {
    return std::nullopt;
  }
  return all;
}

// Rows that lie back to back are one row.
template <typename Request>
Request flattened(Request what) noexcept {
  const bool dense = what.src_pitch == what.width && what.dst_pitch == what.width;
  if (dense && what.rows > 1 && what.width <= std::numeric_limits<std::size_t>::max() / what.rows) {
    what.width *= what.rows;
    what.src_pitch = what.dst_pitch = what.width;
    what.rows = 1;
  }
  return what;
}

}  // namespace

result<memory_range> simulation::resolve(const void* first, bytes_t bytes, call which) const {
  const auto found = space_.resolve(first, bytes);
  switch (found.wrong) {
    case address_space::problem::none:
      return found.range;
    case address_space::problem::null:
      return make_error(errc::gpu_invalid_value, "a null address", which);
    case address_space::problem::freed:
      return make_error(errc::gpu_invalid_value, "the memory has been freed", which);
    case address_space::problem::unmapped:
      return make_error(errc::gpu_invalid_value, "no memory is mapped there", which);
    case address_space::problem::leaves_allocation:
      break;
  }
  return make_error(
      errc::gpu_invalid_value,
      fmt::format("{} bytes leave the allocation that they start in, or run into one", bytes),
      which);
}

result<copy_work> simulation::plan_copy(const copy_request& what, int index, call which) const {
  const auto dst_bytes = extent_of(what.dst_pitch, what.width, what.rows);
  const auto src_bytes = extent_of(what.src_pitch, what.width, what.rows);
  if (!dst_bytes || !src_bytes) {
    return make_error(errc::gpu_invalid_value, "the size overflows", which);
  }
  const auto dst = resolve(what.dst, *dst_bytes, which);
  const auto src = resolve(what.src, *src_bytes, which);
  if (!dst || !src) {
    return dst ? src.error() : dst.error();
  }
  if (overlap(*dst, *src)) {
    return make_error(errc::gpu_invalid_value, "source and destination overlap", which);
  }
  int from = place_of(*src);
  int to = place_of(*dst);
  from = from == nowhere ? on_host : from;
  if (to == nowhere) {
    to = from == on_host ? index : from;  // fresh managed pages appear where they are written
  }
  const auto way = way_between(from, to);
  if (way == direction::device_to_host && dst->of != nullptr &&
      dst->of->access == host_access::read_only) {
    return make_error(errc::gpu_invalid_value, "the destination is registered as read-only", which);
  }
  copy_work made{.dst = *dst,
                 .src = *src,
                 .dst_pitch = what.dst_pitch,
                 .src_pitch = what.src_pitch,
                 .width = what.width,
                 .rows = what.rows,
                 .way = way};
  const auto& host_end = way == direction::host_to_device ? made.src : made.dst;
  if (way != direction::device_to_device && host_end.kind() == memory_kind::pageable) {
    const auto facts = pages_.facts_of(host_end.first, host_end.bytes);
    made.traits = facts.traits;
    if (facts.numa_node && *facts.numa_node != pricing_.numa_node_of(index)) {
      made.traits = made.traits.with(machine::trait::numa_remote);
    }
  }
  return made;
}

bool simulation::may_stage(const copy_work& what) const noexcept {
  const bool nvidia = !model_.hardware.gpus.empty() &&
                      model_.hardware.gpus.front().made_by == machine::vendor::nvidia;
  return what.way == direction::host_to_device && what.rows == 1 &&
         what.bytes() <= (nvidia ? taken_along_nvidia : taken_along_amd);
}

result<void> simulation::run_copy(const copy_request& asked, stream_handle stream, blocking wait,
                                  call which) {
  auto held = enter(which);
  if (!held) {
    return held.error();
  }
  if (asked.width == 0 || asked.rows == 0) {
    return {};
  }
  const auto what = flattened(asked);
  const auto on = find_stream(stream, which);
  if (!on) {
    return on.error();
  }
  if (const auto implicit = check_implicit_capture(**on, which); !implicit) {
    return implicit;
  }
  auto plan = plan_copy(what, (*on)->device, which);
  if (!plan) {
    return plan.error();
  }
  if ((*on)->capture != nullptr) {
    return wait == blocking::yes ? refuse_if_capturing(**on, which) : [&]() -> result<void> {
      const auto kept = queue(**on, std::move(*plan), lane::inside, (*on)->device, which);
      return kept ? result<void>{} : kept.error();
    }();
  }
  return plan->way == direction::host_to_host
             ? run_host_copy(*held, **on, std::move(*plan), which)
             : run_device_copy(*held, **on, std::move(*plan), wait, which);
}

result<void> simulation::run_host_copy(lock& held, stream_state& on, copy_work what, call which) {
  if (auto drained = drain(held, on, which); !drained) {
    return drained;
  }
  make_visible();
  const bytes_t bytes = what.bytes();
  const std::shared_ptr<allocation> ends[] = {what.dst.of, what.src.of};
  for (const auto& one : ends) {
    if (one != nullptr) {
      ++one->in_use;
    }
  }
  operation own;
  own.what = std::move(what);
  held.unlock();
  if (how_.data == data_effects::carried) {
    const std::lock_guard moving(scheduler_.bytes_mutex());
    carry_out(own, part::all);
  }
  held.lock();
  for (const auto& one : ends) {
    if (one != nullptr) {
      --one->in_use;
    }
  }
  make_visible();
  spend(costs_.submit_ns() + static_cast<double>(bytes) / costs_.cpu_copy_gb_per_s(1));
  return {};
}

result<void> simulation::run_device_copy(lock& held, stream_state& on, copy_work what,
                                         blocking wait, call which) {
  const auto way = what.way;
  const bool to_device = way == direction::host_to_device;
  const int from = to_device ? on_host : place_of(what.src);
  int carrier = from;
  if (to_device) {
    const int to = place_of(what.dst);
    carrier = to >= 0 ? to : on.device;
  }
  const auto& host_end = to_device ? what.src : what.dst;
  const bool has_host_end = to_device || way == direction::device_to_host;
  const bool is_pageable_copy = has_host_end && host_end.kind() == memory_kind::pageable &&
                                !*device(carrier).pageable_uses_host_page_tables;
  const auto host_first = reinterpret_cast<std::uintptr_t>(host_end.first);
  const bytes_t host_bytes = host_end.bytes;
  const auto cost = costs_.copy(
      {.way = way, .host = has_host_end ? host_end.kind() : memory_kind::device}, what.bytes());
  if (is_pageable_copy && wait == blocking::no && may_stage(what)) {
    what.staged.assign(what.src.first, what.src.first + what.width);
    spend(static_cast<double>(what.width) / costs_.cpu_copy_gb_per_s(1));
    const auto queued = queue(on, std::move(what), lane_of(way), carrier, which);
    return queued ? result<void>{} : queued.error();
  }
  const auto queued = queue(on, std::move(what), lane_of(way), carrier, which);
  if (!queued) {
    return queued.error();
  }
  // Inside a device even the synchronous copy only queues.
  const bool waits = is_pageable_copy || (wait == blocking::yes && has_host_end);
  if (!waits) {
    return {};
  }
  auto done = wait_for(held, **queued, which);
  spend(cost.call_ns - costs_.submit_ns());
  make_visible();
  if (is_pageable_copy) {
    pages_.touched(host_first, host_bytes);
  }
  return done;
}

result<void> simulation::copy(void* dst, const void* src, bytes_t bytes) {
  return run_copy(
      {.dst = dst, .dst_pitch = bytes, .src = src, .src_pitch = bytes, .width = bytes, .rows = 1},
      default_stream, blocking::yes, call::copy);
}

result<void> simulation::copy_async(void* dst, const void* src, bytes_t bytes,
                                    stream_handle stream) {
  return run_copy(
      {.dst = dst, .dst_pitch = bytes, .src = src, .src_pitch = bytes, .width = bytes, .rows = 1},
      stream, blocking::no, call::copy_async);
}

result<void> simulation::copy_2d_sync(const copy_2d& what) {
  if (what.dst_pitch < what.width || what.src_pitch < what.width) {
    const auto held = enter(call::copy_2d_sync);
    return held ? make_error(errc::gpu_invalid_value, "a pitch below the width", call::copy_2d_sync)
                : held.error();
  }
  return run_copy({.dst = what.dst,
                   .dst_pitch = what.dst_pitch,
                   .src = what.src,
                   .src_pitch = what.src_pitch,
                   .width = what.width,
                   .rows = what.rows},
                  default_stream, blocking::yes, call::copy_2d_sync);
}

result<void> simulation::copy_2d_async(const copy_2d& what, stream_handle stream) {
  if (what.dst_pitch < what.width || what.src_pitch < what.width) {
    const auto held = enter(call::copy_2d_async);
    return held
               ? make_error(errc::gpu_invalid_value, "a pitch below the width", call::copy_2d_async)
               : held.error();
  }
  return run_copy({.dst = what.dst,
                   .dst_pitch = what.dst_pitch,
                   .src = what.src,
                   .src_pitch = what.src_pitch,
                   .width = what.width,
                   .rows = what.rows},
                  stream, blocking::no, call::copy_2d_async);
}

result<void> simulation::copy_peer_async(void* dst, int dst_device, const void* src, int src_device,
                                         bytes_t bytes, stream_handle stream) {
  auto held = enter(call::copy_peer_async);
  if (!held) {
    return held.error();
  }
  for (const int one : {dst_device, src_device}) {
    if (const auto fine = check_device(one, call::copy_peer_async); !fine) {
      return fine;
    }
  }
  if (const auto able = require(capability::peer_access, call::copy_peer_async); !able) {
    return able;
  }
  if (bytes == 0) {
    return {};
  }
  const auto on = find_stream(stream, call::copy_peer_async);
  if (!on) {
    return on.error();
  }
  if (const auto implicit = check_implicit_capture(**on, call::copy_peer_async); !implicit) {
    return implicit;
  }
  auto plan = plan_copy(
      {.dst = dst, .dst_pitch = bytes, .src = src, .src_pitch = bytes, .width = bytes, .rows = 1},
      (*on)->device, call::copy_peer_async);
  if (!plan) {
    return plan.error();
  }
  const bool as_told = plan->src.on_device() && plan->src.of->device == src_device &&
                       plan->dst.on_device() && plan->dst.of->device == dst_device;
  if (!as_told) {
    return make_error(errc::gpu_invalid_value, "the memory is not of the devices named",
                      call::copy_peer_async);
  }
  const auto where = lane_of(plan->way);
  const auto queued = queue(**on, std::move(*plan), where, src_device, call::copy_peer_async);
  return queued ? result<void>{} : queued.error();
}

result<void> simulation::run_fill(void* dst, std::byte value, bytes_t bytes, stream_handle stream,
                                  blocking wait, call which) {
  auto held = enter(which);
  if (!held) {
    return held.error();
  }
  if (bytes == 0) {
    return {};
  }
  const auto on = find_stream(stream, which);
  if (!on) {
    return on.error();
  }
  if (const auto implicit = check_implicit_capture(**on, which); !implicit) {
    return implicit;
  }
  const auto range = resolve(dst, bytes, which);
  if (!range) {
    return range.error();
  }
  const int index = range->on_device() ? range->of->device : (*on)->device;
  if (const auto reach = check_reach(*range, access_kind::write, index, which); !reach) {
    return reach;
  }
  if (wait == blocking::yes) {
    if (auto capturing = refuse_if_capturing(**on, which); !capturing) {
      return capturing;
    }
  }
  const auto queued =
      queue(**on, fill_work{.dst = *range, .value = value}, lane::compute, index, which);
  if (!queued) {
    return queued.error();
  }
  if (wait == blocking::no || *queued == nullptr) {
    return {};
  }
  auto done = wait_for(*held, **queued, which);
  make_visible();
  return done;
}

result<void> simulation::fill(void* dst, std::byte value, bytes_t bytes) {
  return run_fill(dst, value, bytes, default_stream, blocking::yes, call::fill);
}

result<void> simulation::fill_async(void* dst, std::byte value, bytes_t bytes,
                                    stream_handle stream) {
  return run_fill(dst, value, bytes, stream, blocking::no, call::fill_async);
}

}  // namespace berth::runtime::sim
