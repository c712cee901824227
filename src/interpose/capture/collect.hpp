// SPDX-License-Identifier: Apache-2.0
// From a call's arguments to the values of its event. Inputs are taken before the call, results
// after it. Nothing is read through a pointer that the call itself would not read or has not
// written.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "interpose/capture/abi.hpp"
#include "interpose/capture/calls.hpp"

namespace berth::interpose {

// The values of one event, by role.
struct role_values {
  std::array<std::uint64_t, role_count> of{};

  constexpr std::uint64_t& operator[](role one) noexcept {
    return of[static_cast<std::size_t>(one)];
  }
  constexpr std::uint64_t operator[](role one) const noexcept {
    return of[static_cast<std::size_t>(one)];
  }
};

template <class T>
[[nodiscard]] std::uint64_t as_number(const T& value) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

// --- Descriptions of copies ---------------------------------------------------------------------

struct copy_end {
  std::uint64_t address = 0;
  named_memory memory = named_memory::none;
};

// CUmemorytype: 1 host, 2 device, 3 array, 4 unified.
[[nodiscard]] constexpr copy_end cuda_end(int type, const void* host,
                                          std::uint64_t device) noexcept {
  switch (type) {
    case 1:
      return {std::bit_cast<std::uintptr_t>(host), named_memory::host};
    case 2:
      return {device, named_memory::device};
    case 3:
      return {0, named_memory::array};
    default:
      return {device, named_memory::unified};
  }
}

// hipMemoryType was renumbered in HIP 6: what is set tells as much.
[[nodiscard]] constexpr copy_end hip_end(const void* host, const void* device,
                                         const void* array) noexcept {
  if (host != nullptr && device == nullptr && array == nullptr) {
    return {std::bit_cast<std::uintptr_t>(host), named_memory::host};
  }
  if (device != nullptr && host == nullptr && array == nullptr) {
    return {std::bit_cast<std::uintptr_t>(device), named_memory::device};
  }
  return {0, array != nullptr && host == nullptr && device == nullptr ? named_memory::array
                                                                      : named_memory::none};
}

inline void put_ends(role_values& values, const copy_end& dst, const copy_end& src) noexcept {
  values[role::dst] = dst.address;
  values[role::src] = src.address;
  values[role::dst_memory] = as_number(dst.memory);
  values[role::src_memory] = as_number(src.memory);
}

inline void put_shape(role_values& values, std::size_t width, std::size_t rows) noexcept {
  values[role::bytes] = std::uint64_t{width} * rows;
  values[role::rows] = rows;
}

// Where in its buffer an end begins: so many bytes, rows and slices behind the start. Arrays have
// no address.
[[nodiscard]] constexpr copy_end moved(copy_end end, std::size_t bytes, std::size_t rows,
                                       std::size_t pitch, std::size_t slices = 0,
                                       std::size_t height = 0) noexcept {
  if (end.address != 0) {
    end.address += bytes + (rows + slices * height) * pitch;
  }
  return end;
}

inline void describe(role_values& values, const runtime::cuda::copy_2d_t& what) noexcept {
  put_ends(values,
           moved(cuda_end(what.dst_type, what.dst_host, what.dst_device), what.dst_x, what.dst_y,
                 what.dst_pitch),
           moved(cuda_end(what.src_type, what.src_host, what.src_device), what.src_x, what.src_y,
                 what.src_pitch));
  put_shape(values, what.width, what.rows);
}

inline void describe(role_values& values, const abi::cuda_copy_3d_t& what) noexcept {
  put_ends(values,
           moved(cuda_end(what.dst_type, what.dst_host, what.dst_device), what.dst_x, what.dst_y,
                 what.dst_pitch, what.dst_z, what.dst_height),
           moved(cuda_end(what.src_type, what.src_host, what.src_device), what.src_x, what.src_y,
                 what.src_pitch, what.src_z, what.src_height));
  put_shape(values, what.width, what.rows * what.depth);
}

inline void describe(role_values& values, const abi::hip_copy_2d_t& what) noexcept {
  put_ends(values,
           moved(hip_end(what.dst_host, what.dst_device, what.dst_array), what.dst_x, what.dst_y,
                 what.dst_pitch),
           moved(hip_end(what.src_host, what.src_device, what.src_array), what.src_x, what.src_y,
                 what.src_pitch));
  put_shape(values, what.width, what.rows);
}

[[nodiscard]] inline copy_end hip_pitched_end(const abi::pitched_t& linear, const void* array,
                                              const std::size_t (&position)[3]) noexcept {
  if (array != nullptr) {
    return {0, named_memory::array};
  }
  return moved({as_number(linear.address), named_memory::none}, position[0], position[1],
               linear.pitch, position[2], linear.height);
}

inline void describe(role_values& values, const abi::hip_copy_3d_t& what) noexcept {
  put_ends(values, hip_pitched_end(what.dst, what.dst_array, what.dst_position),
           hip_pitched_end(what.src, what.src_array, what.src_position));
  put_shape(values, what.extent.width, what.extent.height * what.extent.depth);
  values[role::way] = as_number(way_of_kind(what.kind));
}

inline void describe(role_values& values, const abi::cuda_launch_t& what) noexcept {
  values[role::stream] = as_number(what.stream);
}

// --- Before the call ----------------------------------------------------------------------------

template <class T>
concept describes = requires(role_values& values, const T& what) { describe(values, what); };

template <class T>
void collect_description(role_values& values, const T& info) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (describes<std::remove_cv_t<std::remove_pointer_t<T>>>) {
      if (info != nullptr) {
        describe(values, *info);
      }
    }
  }
}

// The word says which role, and the argument has the value of it.
template <word What, class T>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a table, of which one row is compiled
void collect_before(role_values& values, const T& argument) noexcept {
  if constexpr (What == word::dst) {
    values[role::dst] = as_number(argument);
  } else if constexpr (What == word::src) {
    values[role::src] = as_number(argument);
  } else if constexpr (What == word::bytes || What == word::width) {
    if constexpr (!std::is_pointer_v<T>) {
      values[role::bytes] = as_number(argument);
    }
  } else if constexpr (What == word::width_of_2 || What == word::count_of_2) {
    values[role::bytes] = 2 * as_number(argument);
  } else if constexpr (What == word::width_of_4 || What == word::count_of_4) {
    values[role::bytes] = 4 * as_number(argument);
  } else if constexpr (What == word::rows) {
    values[role::rows] = as_number(argument);
    values[role::bytes] *= as_number(argument);  // it stands behind the width
  } else if constexpr (What == word::extent) {
    put_shape(values, argument.width, argument.height * argument.depth);
  } else if constexpr (What == word::kind) {
    values[role::way] = as_number(way_of_kind(argument));
  } else if constexpr (What == word::memory) {
    values[role::memory] = as_number(argument);
  } else if constexpr (What == word::dst_pitched) {
    values[role::dst] = as_number(argument.address);
  } else if constexpr (What == word::flags) {
    values[role::flags] = as_number(argument);
  } else if constexpr (What == word::stream) {
    values[role::stream] = as_number(argument);
  } else if constexpr (What == word::event) {
    values[role::event] = as_number(argument);
  } else if constexpr (What == word::device) {
    if constexpr (!std::is_pointer_v<T>) {
      values[role::device] = as_number(argument);
    }
  } else if constexpr (What == word::dst_device) {
    values[role::dst_device] = as_number(argument);
  } else if constexpr (What == word::src_device) {
    values[role::src_device] = as_number(argument);
  } else if constexpr (What == word::advice) {
    values[role::advice] = as_number(argument);
  } else if constexpr (What == word::location) {
    // Types: 1 a device; all others are the host or one of its NUMA nodes.
    values[role::location] = argument.type == 1 ? as_number(argument.id) : as_number(-1);
  } else if constexpr (What == word::dst_symbol) {
    values[role::dst_memory] = as_number(named_memory::device);
  } else if constexpr (What == word::src_symbol) {
    values[role::src_memory] = as_number(named_memory::device);
  } else if constexpr (What == word::dst_array) {
    values[role::dst_memory] = as_number(named_memory::array);
  } else if constexpr (What == word::src_array) {
    values[role::src_memory] = as_number(named_memory::array);
  } else if constexpr (What == word::batch) {
    values[role::batch] = as_number(argument);
  } else if constexpr (What == word::info) {
    collect_description(values, argument);
  }
}

// --- After a call that succeeded ----------------------------------------------------------------

template <word What, class T>
void collect_after(role_values& values, const T& argument) noexcept {
  if constexpr (What == word::out_memory) {
    values[role::memory] = argument == nullptr ? 0 : as_number(*argument);
  } else if constexpr (What == word::out_stream) {
    values[role::stream] = argument == nullptr ? 0 : as_number(*argument);
  } else if constexpr (What == word::out_event) {
    values[role::event] = argument == nullptr ? 0 : as_number(*argument);
  } else if constexpr (What == word::out_pitch) {
    if (argument != nullptr && values[role::rows] > 0) {
      values[role::bytes] = std::uint64_t{*argument} * values[role::rows];
    }
  } else if constexpr (What == word::out_pitched) {
    if (argument != nullptr) {
      values[role::memory] = as_number(argument->address);
      values[role::bytes] = std::uint64_t{argument->pitch} * values[role::rows];
    }
  } else if constexpr (What == word::dst_list) {
    if (argument != nullptr && values[role::batch] > 0) {
      values[role::dst] = as_number(argument[0]);
    }
  } else if constexpr (What == word::src_list) {
    if (argument != nullptr && values[role::batch] > 0) {
      values[role::src] = as_number(argument[0]);
    }
  } else if constexpr (What == word::bytes_list) {
    for (std::uint64_t index = 0; argument != nullptr && index < values[role::batch]; ++index) {
      values[role::bytes] += argument[index];
    }
  }
}

template <call_id Call, class... Arguments>
void collect_inputs(role_values& values, const Arguments&... arguments) noexcept {
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (collect_before<word_of(Call, Index)>(values, arguments), ...);
  }(std::index_sequence_for<Arguments...>());
}

template <call_id Call, class... Arguments>
void collect_results(role_values& values, const Arguments&... arguments) noexcept {
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (collect_after<word_of(Call, Index)>(values, arguments), ...);
  }(std::index_sequence_for<Arguments...>());
}

}  // namespace berth::interpose
