// SPDX-License-Identifier: Apache-2.0
// All calls that the recorder intercepts, as numbers, with what is recorded of each: made from the
// tables of spec/ by the compiler. A parameter's word (spec/gpu_api.def) says what it is; roles
// (docs/trace-format.md) are what an event keeps of the parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::interpose {

enum class api : std::uint8_t { hip, cuda };

struct call_row {
  std::string_view name;
  interpose::api api;
  std::string_view operation;
  std::string_view parameters;  // "(void* dst, const void* src, std::size_t bytes)"
  std::string_view words;       // "(dst, src, bytes)"
};

// Call 0 is none: its roles are what any event may have (docs/trace-format.md).
enum class call_id : std::uint16_t {
  none,
#define BERTH_HIP(name, need, since, operation, result, parameters, words) name,
#define BERTH_CUDA BERTH_HIP
#include "gpu_api.def"
#define BERTH_SEEN_HIP(name, since, operation, parameters, words) name,
#define BERTH_SEEN_CUDA BERTH_SEEN_HIP
#include "seen_calls.def"
  count
};

inline constexpr auto call_count = static_cast<std::size_t>(call_id::count);

inline constexpr std::array<call_row, call_count> call_rows{{
    {"", api::hip, "", "", ""},
#define BERTH_HIP(name, need, since, operation, result, parameters, words) \
  {#name, api::hip, #operation, #parameters, #words},
#define BERTH_CUDA(name, need, since, operation, result, parameters, words) \
  {#name, api::cuda, #operation, #parameters, #words},
#include "gpu_api.def"
#define BERTH_SEEN_HIP(name, since, operation, parameters, words) \
  {#name, api::hip, #operation, #parameters, #words},
#define BERTH_SEEN_CUDA(name, since, operation, parameters, words) \
  {#name, api::cuda, #operation, #parameters, #words},
#include "seen_calls.def"
}};

[[nodiscard]] constexpr const call_row& row_of(call_id call) noexcept {
  return call_rows[static_cast<std::size_t>(call)];
}

// --- Roles --------------------------------------------------------------------------------------

enum class role : std::uint8_t {
  dst,
  src,
  dst_memory,
  src_memory,
  bytes,
  rows,
  way,
  memory,
  flags,
  stream,
  event,
  device,
  dst_device,
  src_device,
  advice,
  location,
  batch,
  // Extras.
  stack,
  host_pages,
  host_node,
  content,
  fixed,
  count
};
inline constexpr auto role_count = static_cast<std::size_t>(role::count);

inline constexpr std::array<std::string_view, role_count> role_names{
    "dst",   "src",    "dst_memory", "src_memory", "bytes",      "rows",       "way",    "memory",
    "flags", "stream", "event",      "device",     "dst_device", "src_device", "advice", "location",
    "batch", "stack",  "host_pages", "host_node",  "content",    "fixed"};

// What an event of any call may have besides its own roles.
inline constexpr std::array extra_roles{role::stack, role::host_pages, role::host_node,
                                        role::content, role::fixed};

// What the trace calls the memory of an end that the call itself names.
enum class named_memory : std::uint8_t {
  none,
  pageable,
  pinned,
  device,
  array,
  managed,
  host,
  unified
};

// --- Parameters ---------------------------------------------------------------------------------

enum class word : std::uint8_t {
  other,  // not recorded
  dst,
  src,
  bytes,
  width,
  width_of_2,
  width_of_4,
  count_of_2,
  count_of_4,
  rows,
  extent,
  kind,
  memory,
  out_memory,
  out_pitch,
  out_pitched,
  dst_pitched,
  flags,
  stream,
  out_stream,
  event,
  out_event,
  device,
  dst_device,
  src_device,
  dst_pitch,
  src_pitch,
  advice,
  location,
  dst_symbol,
  src_symbol,
  dst_array,
  src_array,
  dst_list,
  src_list,
  bytes_list,
  batch,
  info,
  out_function,
  name,
};

inline constexpr std::array<std::string_view, 40> word_names{
    "",           "dst",        "src",          "bytes",       "width",       "width_of_2",
    "width_of_4", "count_of_2", "count_of_4",   "rows",        "extent",      "kind",
    "memory",     "out_memory", "out_pitch",    "out_pitched", "dst_pitched", "flags",
    "stream",     "out_stream", "event",        "out_event",   "device",      "dst_device",
    "src_device", "dst_pitch",  "src_pitch",    "advice",      "location",    "dst_symbol",
    "src_symbol", "dst_array",  "src_array",    "dst_list",    "src_list",    "bytes_list",
    "batch",      "info",       "out_function", "name"};

[[nodiscard]] constexpr word parse_word(std::string_view text) noexcept {
  for (std::size_t index = 1; index < word_names.size(); ++index) {
    if (word_names[index] == text) {
      return static_cast<word>(index);
    }
  }
  return word::other;
}

// The text of the parameter `index` of "(a, b, c)"; empty behind the last.
[[nodiscard]] constexpr std::string_view part_of(std::string_view list,
                                                 std::size_t index) noexcept {
  list.remove_prefix(list.empty() ? 0 : 1);
  list.remove_suffix(list.empty() ? 0 : 1);
  while (index > 0 && !list.empty()) {
    const auto comma = list.find(',');
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    --index;
  }
  list = list.substr(0, list.find(','));
  const auto first = list.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view{} : list.substr(first);
}

[[nodiscard]] constexpr word word_of(call_id call, std::size_t index) noexcept {
  return parse_word(part_of(row_of(call).words, index));
}

// --- Schemas ------------------------------------------------------------------------------------

// The roles of a call's events, in the order in which their values are written.
struct call_schema {
  static constexpr std::size_t most = 8;
  std::array<role, most> roles{};
  std::size_t count = 0;

  constexpr void add(role one) noexcept {
    for (std::size_t index = 0; index < count; ++index) {
      if (roles[index] == one) {
        return;
      }
    }
    roles[count++] = one;
  }
};

constexpr void add_roles(call_schema& schema, word what, std::string_view type) noexcept {
  const auto describes_copy = type.find("copy_2d_t") != std::string_view::npos ||
                              type.find("copy_3d") != std::string_view::npos;
  switch (what) {
    case word::dst:
    case word::dst_list:
    case word::dst_pitched:
      return schema.add(role::dst);
    case word::src:
    case word::src_list:
      return schema.add(role::src);
    case word::bytes:
    case word::bytes_list:
    case word::width:
    case word::width_of_2:
    case word::width_of_4:
    case word::count_of_2:
    case word::count_of_4:
      return schema.add(role::bytes);
    case word::rows:
      return schema.add(role::rows);
    case word::extent:
      schema.add(role::bytes);
      return schema.add(role::rows);
    case word::kind:
      return schema.add(role::way);
    case word::memory:
    case word::out_memory:
    case word::out_pitched:
      return schema.add(role::memory);
    case word::flags:
      return schema.add(role::flags);
    case word::stream:
    case word::out_stream:
      return schema.add(role::stream);
    case word::event:
    case word::out_event:
      return schema.add(role::event);
    case word::device:
      return schema.add(role::device);
    case word::dst_device:
      return schema.add(role::dst_device);
    case word::src_device:
      return schema.add(role::src_device);
    case word::advice:
      return schema.add(role::advice);
    case word::location:
      return schema.add(role::location);
    case word::dst_symbol:
    case word::dst_array:
      return schema.add(role::dst_memory);
    case word::src_symbol:
    case word::src_array:
      return schema.add(role::src_memory);
    case word::batch:
      return schema.add(role::batch);
    case word::info:
      if (describes_copy) {
        for (const auto one :
             {role::dst, role::src, role::dst_memory, role::src_memory, role::bytes, role::rows}) {
          schema.add(one);
        }
        if (type.find("hip_copy_3d_t") != std::string_view::npos) {
          schema.add(role::way);
        }
      } else if (type.find("cuda_launch_t") != std::string_view::npos) {
        schema.add(role::stream);
      }
      return;
    default:
      return;
  }
}

[[nodiscard]] constexpr call_schema schema_of(call_id call) noexcept {
  call_schema schema;
  for (std::size_t index = 0; !part_of(row_of(call).words, index).empty(); ++index) {
    add_roles(schema, word_of(call, index), part_of(row_of(call).parameters, index));
  }
  return schema;
}

// --- What is recorded ---------------------------------------------------------------------------

// Operations that leave an event. Calls of all others pass through.
inline constexpr std::array<std::string_view, 50> recorded_operations{"allocate_device",
                                                                      "allocate_pinned",
                                                                      "allocate_managed",
                                                                      "allocate_async",
                                                                      "allocate_array",
                                                                      "free_device",
                                                                      "free_pinned",
                                                                      "free_async",
                                                                      "free_array",
                                                                      "map_memory",
                                                                      "unmap_memory",
                                                                      "open_shared",
                                                                      "close_shared",
                                                                      "register_host",
                                                                      "unregister_host",
                                                                      "device_address",
                                                                      "copy",
                                                                      "copy_async",
                                                                      "copy_with_stream",
                                                                      "copy_to_device",
                                                                      "copy_to_device_async",
                                                                      "copy_to_host",
                                                                      "copy_to_host_async",
                                                                      "copy_on_device",
                                                                      "copy_on_device_async",
                                                                      "copy_2d",
                                                                      "copy_2d_async",
                                                                      "copy_3d",
                                                                      "copy_3d_async",
                                                                      "copy_peer",
                                                                      "copy_peer_async",
                                                                      "copy_to_symbol",
                                                                      "copy_to_symbol_async",
                                                                      "copy_from_symbol",
                                                                      "copy_from_symbol_async",
                                                                      "copy_to_array",
                                                                      "copy_to_array_async",
                                                                      "copy_from_array",
                                                                      "copy_from_array_async",
                                                                      "copy_batch_async",
                                                                      "fill",
                                                                      "fill_async",
                                                                      "launch",
                                                                      "launch_graph",
                                                                      "synchronize_stream",
                                                                      "synchronize_event",
                                                                      "synchronize_device",
                                                                      "wait_event",
                                                                      "advise",
                                                                      "prefetch_async"};

[[nodiscard]] constexpr bool is_recorded(call_id call) noexcept {
  return std::find(recorded_operations.begin(), recorded_operations.end(),
                   row_of(call).operation) != recorded_operations.end();
}

[[nodiscard]] constexpr bool is_copy(call_id call) noexcept {
  return row_of(call).operation.starts_with("copy");
}

[[nodiscard]] constexpr bool is_allocation(call_id call) noexcept {
  const auto operation = row_of(call).operation;
  return operation.starts_with("allocate") || operation == "register_host";
}

// What a later copy's kinds of memory follow from: recorded outside the window, too.
[[nodiscard]] constexpr bool changes_memory(call_id call) noexcept {
  constexpr std::array<std::string_view, 5> others{"unregister_host", "map_memory", "unmap_memory",
                                                   "open_shared", "close_shared"};
  const auto operation = row_of(call).operation;
  return is_allocation(call) || operation.starts_with("free") ||
         std::find(others.begin(), others.end(), operation) != others.end();
}

// Directions as the roles of a trace count them (docs/trace-format.md).
enum class way : std::uint8_t {
  by_address,
  to_device,
  to_host,
  on_device,
  between_devices,
  on_host
};

[[nodiscard]] constexpr way way_of(call_id call) noexcept {
  const auto operation = row_of(call).operation;
  if (operation.starts_with("copy_to_device")) {
    return way::to_device;
  }
  if (operation.starts_with("copy_to_host")) {
    return way::to_host;
  }
  if (operation.starts_with("copy_on_device")) {
    return way::on_device;
  }
  return operation.starts_with("copy_peer") ? way::between_devices : way::by_address;
}

// hipMemcpyKind: 0 host to host, 1 to the device, 2 to the host, 3 on a device, 4 by address.
[[nodiscard]] constexpr way way_of_kind(int kind) noexcept {
  switch (kind) {
    case 0:
      return way::on_host;
    case 1:
      return way::to_device;
    case 2:
      return way::to_host;
    case 3:
    case 1024:
      return way::on_device;
    default:
      return way::by_address;
  }
}

// The longest schema fits.
static_assert([] {
  for (std::size_t index = 0; index < call_count; ++index) {
    if (schema_of(static_cast<call_id>(index)).count > call_schema::most) {
      return false;
    }
  }
  return true;
}());

}  // namespace berth::interpose
