// SPDX-License-Identifier: Apache-2.0
// Queued work of the simulated runtime.
//
//   operation  one thing that a stream does.
//   lane       the part of a device that carries it. A lane carries a number of operations at once;
//              the others wait.
//   cost       time alone, in two parts: a fixed one, and a flow that others on the same link,
//              memory or compute units slow down.
#pragma once

#include <chrono>
#include <cstdint>
#include <variant>
#include <vector>

#include "berth/types.hpp"
#include "runtime/driver.hpp"
#include "runtime/sim/address_space.hpp"

namespace berth::runtime::sim {

// Nanoseconds since the driver was opened.
using ticks = std::int64_t;

enum class lane : std::uint8_t {
  none,       // takes no time: markers
  to_device,  // DMA from the host
  to_host,    // DMA to the host
  inside,     // copies inside a device
  peer,       // to another device
  compute,    // kernels
  host,       // a function of the program
};
inline constexpr unsigned lane_count = static_cast<unsigned>(lane::host) + 1;

// What a running operation takes from others.
struct running_cost {
  double fixed_ns = 0;
  double flow_ns = 0;
  double to_device_gb_per_s = 0;  // what it would draw over the host link, alone
  double to_host_gb_per_s = 0;
  double peer_gb_per_s = 0;
  int peer = -1;
  bool uses_memory = false;       // bound by the device's memory
  bool by_kernel_copy = false;    // a copy that takes compute units
  bool slowed_by_copies = false;  // a kernel
};

// Rows of bytes; one row for a plain copy.
struct copy_work {
  memory_range dst;  // from the first byte of the first row to the last of the last
  memory_range src;
  std::size_t dst_pitch = 0;
  std::size_t src_pitch = 0;
  std::size_t width = 0;
  std::size_t rows = 1;
  direction way = direction::unknown;
  std::vector<std::byte> staged{};  // the source as it was at the call; else empty
  machine::trait_set traits{};      // of the pageable end
  [[nodiscard]] bytes_t bytes() const noexcept { return bytes_t{width} * rows; }
};

struct fill_work {
  memory_range dst;
  std::byte value{};
};

// One of berth's kernels, with the ranges that it touches.
struct kernel_work {
  kernel_request request;
  launch_shape shape;
  std::vector<memory_range> reads;
  std::vector<memory_range> writes;
};

struct prefetch_work {
  memory_range range;
  int where = 0;  // a device or on_host
};

struct host_work_call {
  driver::host_function function = nullptr;
  void* data = nullptr;
};

enum class marker_kind : std::uint8_t { record, wait, barrier };
struct marker_work {
  marker_kind kind = marker_kind::barrier;
  event_release release = event_release::standard;
};

using operation_work =
    std::variant<copy_work, fill_work, kernel_work, prefetch_work, host_work_call, marker_work>;

// When in its duration an operation's bytes move.
enum class moment : std::uint8_t { start, end, both };

enum class operation_state : std::uint8_t { waiting, ready, running, done };

struct operation {
  std::uint64_t number = 0;
  operation_work what;
  int device = 0;
  std::uint64_t stream = 0;
  int priority = 0;  // higher goes first
  lane where = lane::none;

  std::vector<std::uint64_t> after;   // operations that it waits for, while they have not run
  std::vector<std::uint64_t> before;  // operations that wait for it
  operation_state state = operation_state::waiting;

  ticks submitted = 0;
  ticks eligible = 0;  // not started earlier
  ticks started = 0;
  ticks ended = 0;
  double stretch = 1;
  moment bytes_move = moment::end;
  bool poison_when_ready = false;
  bool corrupt = false;
  bool breaks_device = false;
  bool lost = false;  // its device broke before it had run

  running_cost cost{};
  double fixed_left = 0;
  double flow_left = 0;
  double rate = 1;     // of the flow, at most 1
  ticks deadline = 0;  // of a spinning kernel
};

[[nodiscard]] inline const kernel_spin* spin_of(const operation& one) noexcept {
  const auto* const kernel = std::get_if<kernel_work>(&one.what);
  return kernel == nullptr ? nullptr : std::get_if<kernel_spin>(&kernel->request);
}

// Calls visit(range) for each piece of memory that the operation names.
template <typename Visit>
void for_ranges(const operation_work& what, const Visit& visit) {
  if (const auto* const copy = std::get_if<copy_work>(&what)) {
    visit(copy->dst);
    visit(copy->src);
  } else if (const auto* const fill = std::get_if<fill_work>(&what)) {
    visit(fill->dst);
  } else if (const auto* const kernel = std::get_if<kernel_work>(&what)) {
    for (const auto& range : kernel->reads) {
      visit(range);
    }
    for (const auto& range : kernel->writes) {
      visit(range);
    }
  } else if (const auto* const prefetch = std::get_if<prefetch_work>(&what)) {
    visit(prefetch->range);
  }
}

// "copy", "kernel_fill", "record_event".
[[nodiscard]] std::string_view name_of(const operation_work& what);

}  // namespace berth::runtime::sim
