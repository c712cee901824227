// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/calls.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace berth::runtime::sim {
namespace {

constexpr auto allowed = in_capture::allowed;
constexpr auto refused = in_capture::refused;

constexpr std::array<call_info, call_count> table{{
    {call::memory_info, "memory_info", allowed, errc::gpu_unexpected},
    {call::current_device, "current_device", allowed, errc::gpu_unexpected},
    {call::set_current_device, "set_current_device", allowed, errc::gpu_unexpected},
    {call::synchronize_device, "synchronize_device", refused, errc::gpu_unexpected},
    {call::allocate_device, "allocate_device", refused, errc::gpu_out_of_memory},
    {call::free_device, "free_device", refused, errc::gpu_unexpected},
    {call::allocate_pinned, "allocate_pinned", refused, errc::gpu_out_of_memory},
    {call::free_pinned, "free_pinned", refused, errc::gpu_unexpected},
    {call::allocate_managed, "allocate_managed", refused, errc::gpu_out_of_memory},
    {call::free_managed, "free_managed", refused, errc::gpu_unexpected},
    {call::register_host, "register_host", refused, errc::gpu_out_of_memory},
    {call::unregister_host, "unregister_host", refused, errc::gpu_unexpected},
    {call::device_address, "device_address", allowed, errc::gpu_unexpected},
    {call::classify, "classify", allowed, errc::gpu_unexpected},
    {call::advise, "advise", allowed, errc::gpu_unexpected},
    {call::prefetch_async, "prefetch_async", allowed, errc::gpu_unexpected},
    {call::copy, "copy", refused, errc::gpu_unexpected},
    {call::copy_async, "copy_async", allowed, errc::gpu_unexpected},
    {call::copy_2d_sync, "copy_2d_sync", refused, errc::gpu_unexpected},
    {call::copy_2d_async, "copy_2d_async", allowed, errc::gpu_unexpected},
    {call::copy_peer_async, "copy_peer_async", allowed, errc::gpu_unexpected},
    {call::fill, "fill", refused, errc::gpu_unexpected},
    {call::fill_async, "fill_async", allowed, errc::gpu_unexpected},
    {call::create_stream, "create_stream", allowed, errc::gpu_unexpected},
    {call::destroy_stream, "destroy_stream", allowed, errc::gpu_unexpected},
    {call::synchronize_stream, "synchronize_stream", allowed, errc::gpu_unexpected},
    {call::query_stream, "query_stream", allowed, errc::gpu_unexpected},
    {call::wait_event, "wait_event", allowed, errc::gpu_unexpected},
    {call::call_host, "call_host", allowed, errc::gpu_unexpected},
    {call::create_event, "create_event", allowed, errc::gpu_unexpected},
    {call::destroy_event, "destroy_event", allowed, errc::gpu_unexpected},
    {call::record_event, "record_event", allowed, errc::gpu_unexpected},
    {call::query_event, "query_event", refused, errc::gpu_unexpected},
    {call::synchronize_event, "synchronize_event", allowed, errc::gpu_unexpected},
    {call::elapsed, "elapsed", allowed, errc::gpu_unexpected},
    {call::can_access_peer, "can_access_peer", allowed, errc::gpu_unexpected},
    {call::enable_peer_access, "enable_peer_access", allowed, errc::gpu_unexpected},
    {call::disable_peer_access, "disable_peer_access", allowed, errc::gpu_unexpected},
    {call::prepare_kernels, "prepare_kernels", allowed, errc::gpu_kernel_unavailable},
    {call::launch, "launch", allowed, errc::gpu_launch_failed},
    {call::stream_capture_status, "stream_capture_status", allowed, errc::gpu_unexpected},
    {call::exchange_capture_mode, "exchange_capture_mode", allowed, errc::gpu_unexpected},
}};

constexpr bool in_order() {
  for (unsigned index = 0; index < call_count; ++index) {
    if (table[index].which != static_cast<call>(index)) {
      return false;
    }
  }
  return true;
}
static_assert(in_order());

struct own_name {
  errc code;
  std::string_view name;
};
// The simulator's own names; their number is the place in this table.
constexpr std::array<own_name, 14> own_names{{
    {errc::gpu_unexpected, "sim_unexpected"},
    {errc::gpu_device_out_of_range, "sim_no_such_device"},
    {errc::gpu_out_of_memory, "sim_out_of_memory"},
    {errc::gpu_invalid_value, "sim_invalid_value"},
    {errc::gpu_invalid_handle, "sim_invalid_handle"},
    {errc::gpu_not_supported, "sim_not_supported"},
    {errc::gpu_not_permitted, "sim_not_permitted"},
    {errc::gpu_not_ready, "sim_not_ready"},
    {errc::gpu_already_registered, "sim_already_registered"},
    {errc::gpu_not_registered, "sim_not_registered"},
    {errc::gpu_launch_failed, "sim_launch_failed"},
    {errc::gpu_kernel_unavailable, "sim_kernel_unavailable"},
    {errc::gpu_capture, "sim_capture"},
    {errc::gpu_device_lost, "sim_device_lost"},
}};

}  // namespace

const call_info& info_of(call which) noexcept {
  return table[static_cast<unsigned>(which)];
}

std::optional<call> parse_call(std::string_view name) noexcept {
  const auto* const found = std::find_if(table.begin(), table.end(),
                                         [name](const call_info& row) { return row.name == name; });
  return found == table.end() ? std::nullopt : std::optional(found->which);
}

error make_error(errc code, std::string_view what, call where) {
  const auto* const found = std::find_if(own_names.begin(), own_names.end(),
                                         [code](const own_name& row) { return row.code == code; });
  const auto* const row = found == own_names.end() ? own_names.begin() : found;
  return error(code, fmt::format("{}: {} ({})", what, row->name, row - own_names.begin() + 1),
               std::string(info_of(where).name));
}

}  // namespace berth::runtime::sim
