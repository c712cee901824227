// SPDX-License-Identifier: Apache-2.0
// Copies on their way to the copy engine of libberth_fix.so. Off unless BERTH_FIX says otherwise;
// the library is opened behind the first copy that could gain.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "interpose/capture/calls.hpp"
#include "interpose/capture/collect.hpp"
#include "interpose/fix/decision.hpp"
#include "interpose/fix/interface.hpp"

namespace berth::interpose {

enum class fixing : std::uint8_t { off, on, checked };

// "1" is on, "check" on with the self-check, all else off.
[[nodiscard]] constexpr fixing fixing_of(std::string_view word) noexcept {
  return word == "1" ? fixing::on : word == "check" ? fixing::checked : fixing::off;
}

// When the library is loaded.
void start_fixing() noexcept;
[[nodiscard]] fixing fixing_now() noexcept;
// No more copies are fixed: before a call that takes away what the engines are made of. Blocks for
// copies under way.
void end_fixing() noexcept;

// After a call that has waited for all work of the device: rings that have been idle for long are
// given back, which would wait for the same.
void note_idle_device() noexcept;

// --- The program's page-locked memory
// ---------------------------------------------------------------
// Freed blocks are kept for the next allocation of the same sort, where that is asked for. `real`:
// the function that the call goes to.

struct pinned_block {
  call_id call = call_id::none;  // that allocates
  std::uint64_t bytes = 0;
  std::uint64_t flags = 0;
};

[[nodiscard]] bool keeps_pinned() noexcept;
[[nodiscard]] bool take_pinned(const pinned_block& wanted, void*& memory,
                               const void* real) noexcept;
void note_pinned(const pinned_block& made, void* memory, const void* real) noexcept;
// True: the free is not to be made. Blocks as it would.
[[nodiscard]] bool keep_pinned(call_id call, void* memory, const void* real) noexcept;
// True: the runtime has got kept blocks back.
[[nodiscard]] bool release_pinned(const pinned_block& wanted, const void* real) noexcept;

// While a stream records a graph, nothing is kept: waiting for the device would spoil the capture.
void note_capture_begun() noexcept;
void note_capture_ended() noexcept;

// For coverage.
struct fix_counts {
  fixing mode = fixing::off;
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  std::uint64_t differed = 0;
  std::uint64_t reused = 0;  // allocations of page-locked memory that a kept block has served
  std::array<std::uint64_t, fix::pass_count> passed{};  // of copies that are large enough
};
[[nodiscard]] fix_counts count_fixed() noexcept;

// Copies, in one run or by rows, whose call says, or may find out, what is between host and device.
[[nodiscard]] constexpr bool is_fixable(call_id call) noexcept {
  constexpr std::array<std::string_view, 9> operations{"copy",
                                                       "copy_2d",
                                                       "copy_2d_async",
                                                       "copy_async",
                                                       "copy_with_stream",
                                                       "copy_to_device",
                                                       "copy_to_device_async",
                                                       "copy_to_host",
                                                       "copy_to_host_async"};
  return std::find(operations.begin(), operations.end(), row_of(call).operation) !=
         operations.end();
}

// The call's default stream is the calling thread's own.
[[nodiscard]] constexpr bool uses_thread_stream(call_id call) noexcept {
  const auto name = row_of(call).name;
  return name.ends_with("_spt") || name.ends_with("_ptds") || name.ends_with("_ptsz");
}

[[nodiscard]] constexpr fix::call_form form_of(call_id call) noexcept {
  return row_of(call).operation.ends_with("_async") ? fix::call_form::queued
                                                    : fix::call_form::blocking;
}

[[nodiscard]] constexpr bool is_fixable_way(way one) noexcept {
  return one == way::by_address || one == way::to_device || one == way::to_host;
}

// hipMemcpyKind: 0 to 4. Others are the runtime's to refuse, or to understand.
[[nodiscard]] constexpr bool is_usual_kind(int kind) noexcept {
  return kind >= 0 && kind <= 4;
}

template <word What, class T>
[[nodiscard]] constexpr bool is_usual(const T& argument) noexcept {
  if constexpr (What == word::kind) {
    return is_usual_kind(argument);
  } else {
    return true;
  }
}

// --- Rows
// -----------------------------------------------------------------------------------------

// What a call says of its rows beyond its event.
struct row_layout {
  std::uint64_t dst_pitch = 0;
  std::uint64_t src_pitch = 0;
};

template <word What, class T>
void collect_layout(row_layout& layout, const T& argument) noexcept {
  if constexpr (What == word::dst_pitch) {
    layout.dst_pitch = argument;
  } else if constexpr (What == word::src_pitch) {
    layout.src_pitch = argument;
  } else if constexpr (What == word::info && requires { argument->dst_pitch; }) {
    if (argument != nullptr) {
      layout = {argument->dst_pitch, argument->src_pitch};
    }
  }
}

template <call_id Call, class... Arguments>
[[nodiscard]] row_layout layout_of(const Arguments&... arguments) noexcept {
  row_layout layout;
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (collect_layout<word_of(Call, Index)>(layout, arguments), ...);
  }(std::index_sequence_for<Arguments...>());
  return layout;
}

// The direction that the memory of the two ends names, where a description says it.
[[nodiscard]] constexpr way way_between(named_memory dst, named_memory src) noexcept {
  if (dst == named_memory::device && src == named_memory::host) {
    return way::to_device;
  }
  if (dst == named_memory::host && src == named_memory::device) {
    return way::to_host;
  }
  const auto is_any = [](named_memory one) { return one == named_memory::unified; };
  const auto has_address = [&](named_memory one) {
    return is_any(one) || one == named_memory::host || one == named_memory::device;
  };
  return (is_any(dst) || is_any(src)) && has_address(dst) && has_address(src) ? way::by_address
                                                                              : way::on_host;
}

// The direction that a call names: by itself, by a kind, or by the memory of its ends.
[[nodiscard]] constexpr way named_way_of(call_id call, const role_values& values) noexcept {
  if (way_of(call) != way::by_address) {
    return way_of(call);
  }
  if (row_of(call).words.find("info") != std::string_view::npos) {
    return way_between(static_cast<named_memory>(values[role::dst_memory]),
                       static_cast<named_memory>(values[role::src_memory]));
  }
  return static_cast<way>(values[role::way]);
}

template <call_id Call, class... Arguments>
[[nodiscard]] bool are_usual(const Arguments&... arguments) noexcept {
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    return (is_usual<word_of(Call, Index)>(arguments) && ...);
  }(std::index_sequence_for<Arguments...>());
}

// What the engine is asked. Pre: is_fixable(call).
[[nodiscard]] constexpr fix::request request_of(call_id call, const role_values& values) noexcept {
  const auto named = named_way_of(call, values);
  fix::request made;
  made.of = row_of(call).api == api::hip ? fix::runtime::hip : fix::runtime::cuda;
  made.way = named == way::to_device ? fix::named_way::to_device
             : named == way::to_host ? fix::named_way::to_host
                                     : fix::named_way::by_address;
  made.form = form_of(call);
  made.bytes = values[role::bytes];
  made.rows = values[role::rows];
  made.stream = values[role::stream];
  if (made.stream == 0 && uses_thread_stream(call)) {
    made.stream = 2;
  }
  return made;
}

// Asks for the copy. True: it was made as the call would have made it. `real`: the function that
// the call goes to.
[[nodiscard]] bool fix_copy(fix::request& what, bool way_is_known, const void* real) noexcept;

template <call_id Call, class... Arguments>
[[nodiscard]] bool try_to_fix(const void* real, const Arguments&... arguments) noexcept {
  role_values values;
  collect_inputs<Call>(values, arguments...);
  if (values[role::bytes] < fix::least_bytes) {
    return false;
  }
  auto what = request_of(Call, values);
  const auto layout = layout_of<Call>(arguments...);
  what.dst_pitch = layout.dst_pitch;
  what.src_pitch = layout.src_pitch;
  // NOLINTBEGIN(performance-no-int-to-ptr): arguments of the call
  what.dst = reinterpret_cast<void*>(values[role::dst]);
  what.src = reinterpret_cast<const void*>(values[role::src]);
  // NOLINTEND(performance-no-int-to-ptr)
  return fix_copy(what, is_fixable_way(named_way_of(Call, values)) && are_usual<Call>(arguments...),
                  real);
}

}  // namespace berth::interpose
