// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch_plan.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace berth::runtime {
namespace {

using planned = result<std::optional<launch_plan>>;

constexpr unsigned usual_threads = 512;
constexpr unsigned most_threads = 1024;
// Blocks of usual_threads for each compute unit that saturate device memory on all models measured.
constexpr unsigned blocks_per_unit = 4;
constexpr std::chrono::seconds longest_spin{10};
// That work on one entry of a scatter, as in builtin_kernels.cu.
constexpr unsigned scatter_threads = 64;

error refused(std::string why) {
  return error(errc::gpu_invalid_value, std::move(why), "launch");
}

std::uint64_t word_of(const volatile void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

bool is_aligned(const volatile void* address, bytes_t to) noexcept {
  return word_of(address) % to == 0;
}

// The shape for `items` things of work, one for a thread and step.
launch_plan shaped(builtin_kernel kernel, std::uint64_t items, launch_shape shape,
                   const launch_target& target) {
  launch_plan plan{.kernel = kernel};
  plan.threads = shape.threads != 0 ? shape.threads : usual_threads;
  const std::uint64_t useful = (items + plan.threads - 1) / plan.threads;
  const auto units = static_cast<std::uint64_t>(std::max(target.compute_units, 1));
  plan.blocks =
      shape.blocks != 0
          ? shape.blocks
          : static_cast<unsigned>(std::clamp<std::uint64_t>(useful, 1, units * blocks_per_unit));
  return plan;
}

struct planner {
  launch_shape shape;
  const launch_target& target;

  planned operator()(const kernel_copy& what) const {
    if (what.bytes == 0) {
      return std::optional<launch_plan>{};
    }
    if (what.dst == nullptr || what.src == nullptr) {
      return refused("copy: null address");
    }
    auto plan = shaped(builtin_kernel::copy, what.bytes / 16, shape, target);
    plan.parameters = {word_of(what.dst), word_of(what.src), what.bytes};
    return std::optional(plan);
  }

  planned operator()(const kernel_fill& what) const {
    if (what.bytes == 0) {
      return std::optional<launch_plan>{};
    }
    if (what.dst == nullptr || !is_aligned(what.dst, 8) || what.offset % 8 != 0) {
      return refused("fill: address and offset must be multiples of 8, the address not null");
    }
    auto plan = shaped(builtin_kernel::fill, what.bytes / 8, shape, target);
    plan.parameters = {word_of(what.dst), what.bytes, what.seed, what.offset / 8};
    return std::optional(plan);
  }

  planned operator()(const kernel_touch& what) const {
    if (what.bytes == 0) {
      return std::optional<launch_plan>{};
    }
    if (what.first == nullptr || what.stride == 0) {
      return refused("touch: null address or stride 0");
    }
    auto plan = shaped(builtin_kernel::touch, what.bytes / what.stride + 1, shape, target);
    plan.parameters = {word_of(what.first), what.bytes, what.stride,
                       what.access == touch_access::write ? 1U : 0U};
    return std::optional(plan);
  }

  planned operator()(const kernel_spin& what) const {
    if (what.at_most.count() <= 0 || what.at_most > longest_spin) {
      return refused("spin: at_most must be more than 0 and at most 10 s");
    }
    if (!is_aligned(what.release, 4)) {
      return refused("spin: the release address must be a multiple of 4");
    }
    launch_plan plan{.kernel = builtin_kernel::spin};
    const auto microseconds = std::max<std::int64_t>(what.at_most.count() / 1000, 1);
    const auto ticks = microseconds * target.clock_khz / 1000;  // below 2^63: 1e7 us, 1e6 kHz
    plan.parameters = {word_of(what.release), static_cast<std::uint64_t>(ticks)};
    return std::optional(plan);
  }

  planned operator()(const kernel_verify& what) const {
    if (what.bytes == 0) {
      return std::optional<launch_plan>{};
    }
    if (what.data == nullptr || !is_aligned(what.data, 8) || what.offset % 8 != 0) {
      return refused("verify: address and offset must be multiples of 8, the address not null");
    }
    if (what.mismatches == nullptr || !is_aligned(what.mismatches, 8)) {
      return refused("verify: mismatches must be an 8-byte aligned address");
    }
    auto plan = shaped(builtin_kernel::verify, what.bytes / 8, shape, target);
    plan.parameters = {word_of(what.data), what.bytes, what.seed, what.offset / 8,
                       word_of(what.mismatches)};
    return std::optional(plan);
  }

  planned operator()(const kernel_scatter& what) const {
    if (what.entries == 0) {
      return std::optional<launch_plan>{};
    }
    if (what.packed == nullptr || what.table == nullptr || !is_aligned(what.table, 8)) {
      return refused("scatter: null address, or a table that is not 8-byte aligned");
    }
    auto plan = shaped(builtin_kernel::scatter, what.entries * scatter_threads, shape, target);
    plan.parameters = {word_of(what.packed), word_of(what.table), what.entries,
                       what.way == scatter_way::collect ? 1U : 0U};
    return std::optional(plan);
  }
};

}  // namespace

planned plan_launch(const kernel_request& request, launch_shape shape,
                    const launch_target& target) {
  if (shape.threads > most_threads || shape.threads % 64 != 0) {
    return refused("threads of a block must be a multiple of 64, at most 1024");
  }
  if (shape.blocks > static_cast<unsigned>(std::numeric_limits<int>::max())) {
    return refused("more than 2^31-1 blocks");
  }
  return std::visit(planner{shape, target}, request);
}

}  // namespace berth::runtime
