// SPDX-License-Identifier: Apache-2.0
// The operations of the contract as a list, so that faults can name them, and what the simulator
// must know of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "berth/error.hpp"

namespace berth::runtime::sim {

// In the order of driver.hpp.
enum class call : std::uint8_t {
  memory_info,
  current_device,
  set_current_device,
  synchronize_device,
  allocate_device,
  free_device,
  allocate_pinned,
  free_pinned,
  allocate_managed,
  free_managed,
  register_host,
  unregister_host,
  device_address,
  classify,
  advise,
  prefetch_async,
  copy,
  copy_async,
  copy_2d_sync,
  copy_2d_async,
  copy_peer_async,
  fill,
  fill_async,
  create_stream,
  destroy_stream,
  synchronize_stream,
  query_stream,
  wait_event,
  call_host,
  create_event,
  destroy_event,
  record_event,
  query_event,
  synchronize_event,
  elapsed,
  can_access_peer,
  enable_peer_access,
  disable_peer_access,
  prepare_kernels,
  launch,
  stream_capture_status,
  exchange_capture_mode,
};
inline constexpr unsigned call_count = static_cast<unsigned>(call::exchange_capture_mode) + 1;

// What a call may do while a stream captures, for a thread that is not `relaxed`.
enum class in_capture : std::uint8_t { allowed, refused };

struct call_info {
  call which;
  std::string_view name;  // "allocate_device"
  in_capture capture;
  errc failure;  // what an injected failure says, unless told else
};

[[nodiscard]] const call_info& info_of(call which) noexcept;
[[nodiscard]] std::optional<call> parse_call(std::string_view name) noexcept;

// An error as the simulator tells it. `what` says what happened, with the values that matter; the
// simulator's own name and number of the error are added. `where` is the call.
[[nodiscard]] error make_error(errc code, std::string_view what, call where);

}  // namespace berth::runtime::sim
