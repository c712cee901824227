// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated runtime: allocating, freeing, registering, telling what an address is.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/sim/simulation.hpp"
#include "runtime/status.hpp"

namespace berth::runtime::sim {
namespace {

using op = machine::operation;

// What the host has, where the model does not say.
constexpr bytes_t default_host_memory = tib;
constexpr double register_call_ns = 500;

bytes_t host_memory_of(const machine::model& of) noexcept {
  bytes_t sum = 0;
  for (const auto& node : of.hardware.numa_nodes) {
    sum += node.memory.value_or(0);
  }
  return sum > 0 ? sum : default_host_memory;
}

error does_not_fit(call which, const memory_shortage& amounts) {
  return make_error(errc::gpu_out_of_memory,
                    fmt::format("{} do not fit into {} free of {}", format_bytes(amounts.requested),
                                format_bytes(*amounts.free), format_bytes(*amounts.total)),
                    which)
      .with(amounts);
}

}  // namespace

result<void*> simulation::allocate(allocation made, call which, bytes_t limit, bytes_t used) {
  const bytes_t left = limit - std::min(limit, used);
  const memory_shortage amounts{.requested = made.bytes, .free = left, .total = limit};
  if (made.bytes > left) {
    return does_not_fit(which, amounts);
  }
  const auto placed = std::make_shared<allocation>(std::move(made));
  if (!space_.place(*placed)) {
    return does_not_fit(which, amounts);
  }
  placed->number = ++allocated_;
  space_.insert(placed);
  return static_cast<void*>(placed->first);
}

result<void*> simulation::allocate_device(int index, bytes_t bytes, coherence grain) {
  auto held = enter(call::allocate_device, bytes);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::allocate_device); !fine) {
    return fine.error();
  }
  if (bytes == 0) {
    return nothing_requested("allocate_device");
  }
  if (grain == coherence::fine) {
    if (const auto able = require(capability::fine_grained_device, call::allocate_device); !able) {
      return able.error();
    }
  }
  spend(costs_.operation_ns(op::device_alloc, bytes));
  allocation made;
  made.kind = memory_kind::device;
  made.device = index;
  made.bytes = bytes;
  made.grain = grain == coherence::fine ? coherence::fine : coherence::coarse;
  return allocate(std::move(made), call::allocate_device, *device(index).memory_total,
                  space_.used_on(index));
}

result<void*> simulation::allocate_pinned(bytes_t bytes, const pinned_options& how) {
  auto held = enter(call::allocate_pinned, bytes);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(how.device, call::allocate_pinned); !fine) {
    return fine.error();
  }
  if (bytes == 0) {
    return nothing_requested("allocate_pinned");
  }
  spend(costs_.operation_ns(op::pinned_alloc, bytes));
  allocation made;
  made.kind = memory_kind::pinned;
  made.device = how.device;
  made.bytes = bytes;
  const bool coarse = how.grain == coherence::coarse && has(capability::host_coherence);
  made.grain = coarse ? coherence::coarse : coherence::fine;
  made.caching = how.caching;
  made.mapped = how.mapping;
  const auto nearest = pricing_.numa_node_of(how.device);
  made.numa_node = how.numa_node && has(capability::host_numa)
                       ? static_cast<std::uint32_t>(*how.numa_node)
                       : nearest;
  return allocate(std::move(made), call::allocate_pinned,
                  how_.pinned_limit.value_or(host_memory_of(model_)), space_.pinned());
}

result<void*> simulation::allocate_managed(int index, bytes_t bytes) {
  auto held = enter(call::allocate_managed, bytes);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::allocate_managed); !fine) {
    return fine.error();
  }
  if (const auto able = require(capability::managed, call::allocate_managed); !able) {
    return able.error();
  }
  if (bytes == 0) {
    return nothing_requested("allocate_managed");
  }
  spend(costs_.operation_ns(op::device_alloc, bytes));
  const bytes_t limit = host_memory_of(model_);  // managed memory may exceed the device's
  if (bytes > limit) {
    return does_not_fit(call::allocate_managed,
                        {.requested = bytes, .free = limit, .total = limit});
  }
  allocation made;
  made.kind = memory_kind::managed;
  made.device = index;
  made.bytes = bytes;
  made.places.emplace(bytes, migration_);
  return allocate(std::move(made), call::allocate_managed, limit, 0);
}

result<void> simulation::release(void* memory, memory_kind kind, call which, op cost) {
  auto held = enter(which);
  if (!held) {
    return held.error();
  }
  if (memory == nullptr) {
    return {};
  }
  const auto found = space_.find(memory);
  if (found == nullptr || found->first != memory) {
    return make_error(errc::gpu_invalid_value,
                      "the address is not the start of an allocation: never allocated, or freed "
                      "before",
                      which);
  }
  if (found->kind != kind) {
    return make_error(errc::gpu_invalid_value,
                      fmt::format("the memory is {}", berth::to_string(found->kind)), which);
  }
  if (found->kind == memory_kind::device) {
    if (const auto fine = check_alive(found->device, which); !fine) {
      return fine;
    }
  }
  spend(costs_.operation_ns(cost, found->bytes));
  scheduler_.catch_up(*held);
  if (found->in_use > 0) {
    return make_error(errc::gpu_invalid_value,
                      fmt::format("{} queued operations still use the memory", found->in_use),
                      which);
  }
  space_.remove(*found);
  return {};
}

result<void> simulation::free_device(void* memory) {
  return release(memory, memory_kind::device, call::free_device, op::device_free);
}

result<void> simulation::free_pinned(void* memory) {
  return release(memory, memory_kind::pinned, call::free_pinned, op::pinned_free);
}

result<void> simulation::free_managed(void* memory) {
  if (!has(capability::managed)) {
    auto held = enter(call::free_managed);
    return held ? require(capability::managed, call::free_managed) : held.error();
  }
  return release(memory, memory_kind::managed, call::free_managed, op::device_free);
}

result<void> simulation::register_host(void* memory, bytes_t bytes, const register_options& how) {
  auto held = enter(call::register_host, bytes);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(how.device, call::register_host); !fine) {
    return fine;
  }
  if (bytes == 0) {
    return nothing_requested("register_host");
  }
  if (memory == nullptr || !runtime::is_mapped(static_cast<std::byte*>(memory), bytes)) {
    return make_error(errc::gpu_invalid_value, "no memory is mapped there", call::register_host);
  }
  if (space_.any_in(memory, bytes)) {
    return make_error(errc::gpu_already_registered, "the runtime knows a part of the range already",
                      call::register_host);
  }
  const bytes_t limit = how_.pinned_limit.value_or(host_memory_of(model_));
  const bytes_t left = limit - std::min(limit, space_.pinned());
  if (bytes > left) {
    return does_not_fit(call::register_host, {.requested = bytes, .free = left, .total = limit});
  }
  const auto facts = pages_.facts_of(static_cast<std::byte*>(memory), bytes);
  spend(register_call_ns + costs_.operation_ns(op::host_register, bytes, facts.traits));
  const auto made = std::make_shared<allocation>();
  made->number = ++allocated_;
  made->kind = memory_kind::registered;
  made->device = how.device;
  made->first = static_cast<std::byte*>(memory);
  made->bytes = bytes;
  made->mapped = how.mapping;
  made->access = how.access;
  made->numa_node = facts.numa_node;
  pages_.touched(reinterpret_cast<std::uintptr_t>(memory), bytes);
  space_.insert(made);
  return {};
}

result<void> simulation::unregister_host(void* memory) {
  auto held = enter(call::unregister_host);
  if (!held) {
    return held.error();
  }
  const auto found = space_.find(memory);
  if (found == nullptr || found->first != memory || found->kind != memory_kind::registered) {
    return make_error(errc::gpu_not_registered, "no registration starts there",
                      call::unregister_host);
  }
  spend(costs_.operation_ns(op::host_unregister, found->bytes));
  scheduler_.catch_up(*held);
  if (found->in_use > 0) {
    return make_error(errc::gpu_invalid_value,
                      fmt::format("{} queued operations still use the memory", found->in_use),
                      call::unregister_host);
  }
  space_.remove(*found);
  return {};
}

result<void*> simulation::device_address(void* host_memory) {
  auto held = enter(call::device_address);
  if (!held) {
    return held.error();
  }
  const auto found = space_.find(host_memory);
  const bool reachable = found != nullptr && found->kind != memory_kind::device &&
                         found->mapped == host_mapping::mapped;
  if (!reachable) {
    return make_error(errc::gpu_invalid_value, "the memory has no address for devices",
                      call::device_address);
  }
  return host_memory;
}

result<pointer_info> simulation::classify(const void* memory) {
  auto held = enter(call::classify);
  if (!held) {
    return held.error();
  }
  pointer_info info;
  if (memory == nullptr) {
    return info;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): an address is told, not written to
  auto* const address = const_cast<void*>(memory);
  const auto found = space_.find(memory);
  if (found == nullptr) {
    info.kind = memory_kind::pageable;
    info.host_address = address;
    info.device_address = *device(0).pageable_access ? address : nullptr;
    return info;
  }
  const bool one_sort =
      found->kind == memory_kind::registered && !has(capability::tells_registered);
  info.kind = one_sort ? memory_kind::pinned : found->kind;
  info.device = found->device;
  info.grain = found->grain;
  info.host_address = found->kind == memory_kind::device ? nullptr : address;
  info.device_address = found->mapped == host_mapping::mapped ? address : nullptr;
  if (has(capability::tells_range)) {
    info.base = found->first;
    info.bytes = found->bytes;
  }
  return info;
}

result<void> simulation::advise(const void* memory, bytes_t bytes, advice what,
                                memory_location where) {
  auto held = enter(call::advise);
  if (!held) {
    return held.error();
  }
  if (const auto able = require(capability::advise, call::advise); !able) {
    return able;
  }
  const bool grain = what == advice::set_coarse_grain || what == advice::unset_coarse_grain;
  if (grain) {
    if (const auto able = require(capability::coarse_grain_advice, call::advise); !able) {
      return able;
    }
  }
  if (where.where == berth::side::device) {
    if (const auto fine = check_device(where.device, call::advise); !fine) {
      return fine;
    }
  }
  const auto range = resolve(memory, bytes, call::advise);
  if (!range) {
    return range.error();
  }
  const bool migrates =
      range->kind() == memory_kind::managed || (range->of == nullptr && *device(0).pageable_access);
  if (!migrates || bytes == 0) {
    return make_error(errc::gpu_invalid_value, "the range is not managed memory", call::advise);
  }
  if (range->of != nullptr) {
    range->of->places->advise(range->offset(), bytes, what,
                              where.where == berth::side::device ? where.device : on_host);
    if (grain) {
      range->of->grain = what == advice::set_coarse_grain ? coherence::coarse : coherence::fine;
    }
  }
  return {};
}

result<void> simulation::prefetch_async(const void* memory, bytes_t bytes, memory_location where,
                                        stream_handle stream) {
  auto held = enter(call::prefetch_async);
  if (!held) {
    return held.error();
  }
  if (const auto able = require(capability::prefetch, call::prefetch_async); !able) {
    return able;
  }
  if (where.where == berth::side::device) {
    if (const auto fine = check_device(where.device, call::prefetch_async); !fine) {
      return fine;
    }
  }
  const auto on = find_stream(stream, call::prefetch_async);
  if (!on) {
    return on.error();
  }
  const auto range = resolve(memory, bytes, call::prefetch_async);
  if (!range) {
    return range.error();
  }
  const bool migrates =
      range->kind() == memory_kind::managed || (range->of == nullptr && *device(0).pageable_access);
  if (!migrates || bytes == 0) {
    return make_error(errc::gpu_invalid_value, "the range is not managed memory",
                      call::prefetch_async);
  }
  const bool to_host = where.where != berth::side::device;
  const auto queued =
      queue(**on, prefetch_work{.range = *range, .where = to_host ? on_host : where.device},
            to_host ? lane::to_host : lane::to_device, to_host ? (*on)->device : where.device,
            call::prefetch_async);
  if (!queued) {
    return queued.error();
  }
  const bool waits =
      !model_.hardware.gpus.empty() && model_.hardware.gpus.front().made_by == machine::vendor::amd;
  // AMD's runtime waits for the pages on the CPU.
  return *queued != nullptr && waits ? wait_for(*held, **queued, call::prefetch_async)
                                     : result<void>{};
}

}  // namespace berth::runtime::sim
