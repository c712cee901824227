// SPDX-License-Identifier: Apache-2.0
// berth's own kernels on the simulated devices: what they touch, and whether they can reach it.
#include "runtime/kernels.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/launch_plan.hpp"
#include "runtime/sim/simulation.hpp"

namespace berth::runtime::sim {
namespace {

constexpr double prepare_ns = 5'000'000;

// A range that a kernel uses, before it is looked up.
struct used_range {
  const void* first;
  bytes_t bytes;
  access_kind how;
};

struct ranges_of {
  std::vector<used_range> operator()(const kernel_copy& what) const {
    return {{what.src, what.bytes, access_kind::read}, {what.dst, what.bytes, access_kind::write}};
  }
  std::vector<used_range> operator()(const kernel_fill& what) const {
    return {{what.dst, what.bytes, access_kind::write}};
  }
  std::vector<used_range> operator()(const kernel_touch& what) const {
    const bool writes = what.access == touch_access::write;
    return {{what.first, what.bytes, writes ? access_kind::write : access_kind::read}};
  }
  std::vector<used_range> operator()(const kernel_spin& what) const {
    if (what.release == nullptr) {
      return {};
    }
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): only its place is looked up
    const auto* const word = const_cast<const std::uint32_t*>(what.release);
    return {{word, sizeof(std::uint32_t), access_kind::read}};
  }
  std::vector<used_range> operator()(const kernel_verify& what) const {
    return {{what.data, what.bytes, access_kind::read},
            {what.mismatches, sizeof(std::uint64_t), access_kind::write}};
  }
  // The table first, then a pair for each entry.
  std::vector<used_range> operator()(const kernel_scatter& what) const {
    std::vector<used_range> used{
        {what.table, what.entries * sizeof(scatter_entry), access_kind::read}};
    const bool spreads = what.way == scatter_way::spread;
    for (std::uint64_t i = 0; i < what.entries; ++i) {
      const auto& entry = what.table[i];
      const auto* const run = static_cast<const std::byte*>(what.packed) + entry.place;
      used.push_back({run, entry.bytes, spreads ? access_kind::read : access_kind::write});
      used.push_back({entry.memory, entry.bytes, spreads ? access_kind::write : access_kind::read});
    }
    return used;
  }
};

}  // namespace

result<void> simulation::check_reach(const memory_range& range, access_kind how, int index,
                                     call which) const {
  const auto refused = [which](std::string_view why) {
    return make_error(errc::gpu_invalid_value, why, which);
  };
  if (range.of == nullptr) {
    return *device(index).pageable_access ? result<void>{}
                                          : refused("a device cannot use pageable memory here");
  }
  if (range.of->mapped == host_mapping::unmapped) {
    return refused("the memory is not mapped for devices");
  }
  if (how == access_kind::write && range.of->access == host_access::read_only) {
    return refused("the memory is registered as read-only");
  }
  if (range.on_device() && range.of->device != index) {
    const bool enabled = std::find(peers_enabled_.begin(), peers_enabled_.end(),
                                   std::pair(index, range.of->device)) != peers_enabled_.end();
    return enabled ? result<void>{}
                   : refused(fmt::format("device {} has no peer access to device {}", index,
                                         range.of->device));
  }
  return {};
}

result<kernel_work> simulation::plan_kernel(const kernel_request& request, launch_shape shape,
                                            int index) const {
  kernel_work made{.request = request, .shape = shape, .reads = {}, .writes = {}};
  for (const auto& used : std::visit(ranges_of{}, request)) {
    const auto range = resolve(used.first, used.bytes, call::launch);
    if (!range) {
      return range.error();
    }
    if (const auto reach = check_reach(*range, used.how, index, call::launch); !reach) {
      return reach.error();
    }
    (used.how == access_kind::read ? made.reads : made.writes).push_back(*range);
  }
  if (std::holds_alternative<kernel_copy>(request) && overlap(made.reads[0], made.writes[0])) {
    return make_error(errc::gpu_invalid_value, "source and destination overlap", call::launch);
  }
  if (std::holds_alternative<kernel_verify>(request) && !made.writes[0].on_device()) {
    return make_error(errc::gpu_invalid_value, "the counter must be device memory", call::launch);
  }
  if (std::holds_alternative<kernel_spin>(request) && !made.reads.empty()) {
    const auto& word = made.reads[0];
    const bool shared =
        word.of != nullptr && !word.on_device() && word.of->grain == coherence::fine;
    if (!shared) {
      return make_error(errc::gpu_invalid_value,
                        "the release word must be fine-grained host memory", call::launch);
    }
  }
  if (std::holds_alternative<kernel_scatter>(request) &&
      (made.reads[0].of == nullptr || made.reads[0].on_device())) {
    return make_error(errc::gpu_invalid_value, "the table must be page-locked host memory",
                      call::launch);
  }
  return made;
}

result<void> simulation::prepare_kernels(int index) {
  auto held = enter(call::prepare_kernels);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::prepare_kernels); !fine) {
    return fine;
  }
  if (const auto able = require(capability::kernels, call::prepare_kernels); !able) {
    return able;
  }
  spend(prepare_ns);
  return {};
}

result<void> simulation::launch(const kernel_request& request, stream_handle stream,
                                launch_shape shape) {
  auto held = enter(call::launch);
  if (!held) {
    return held.error();
  }
  if (const auto able = require(capability::kernels, call::launch); !able) {
    return able;
  }
  const auto on = find_stream(stream, call::launch);
  if (!on) {
    return on.error();
  }
  const int index = (*on)->device;
  const auto checked =
      plan_launch(request, shape, {.compute_units = device(index).compute_units.value_or(1)});
  if (!checked) {
    return checked.error();
  }
  if (!*checked) {
    return {};  // 0 bytes
  }
  if (this_thread().device != index) {
    return make_error(errc::gpu_invalid_handle, "the stream is not of the current device",
                      call::launch);
  }
  if (const auto implicit = check_implicit_capture(**on, call::launch); !implicit) {
    return implicit;
  }
  auto plan = plan_kernel(request, shape, index);
  if (!plan) {
    return plan.error();
  }
  const auto queued = queue(**on, std::move(*plan), lane::compute, index, call::launch);
  return queued ? result<void>{} : queued.error();
}

}  // namespace berth::runtime::sim
