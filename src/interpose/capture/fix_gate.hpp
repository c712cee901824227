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

// For coverage.
struct fix_counts {
  fixing mode = fixing::off;
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  std::uint64_t differed = 0;
  std::array<std::uint64_t, fix::pass_count> passed{};  // of copies that are large enough
};
[[nodiscard]] fix_counts count_fixed() noexcept;

// Linear copies whose call says, or may find out, what is between host and device.
[[nodiscard]] constexpr bool is_fixable(call_id call) noexcept {
  constexpr std::array<std::string_view, 7> operations{"copy",
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

template <call_id Call, class... Arguments>
[[nodiscard]] bool are_usual(const Arguments&... arguments) noexcept {
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    return (is_usual<word_of(Call, Index)>(arguments) && ...);
  }(std::index_sequence_for<Arguments...>());
}

// What the engine is asked. Pre: is_fixable(call).
[[nodiscard]] constexpr fix::request request_of(call_id call, const role_values& values) noexcept {
  const auto named =
      way_of(call) == way::by_address ? static_cast<way>(values[role::way]) : way_of(call);
  fix::request made;
  made.of = row_of(call).api == api::hip ? fix::runtime::hip : fix::runtime::cuda;
  made.way = named == way::to_device ? fix::named_way::to_device
             : named == way::to_host ? fix::named_way::to_host
                                     : fix::named_way::by_address;
  made.form = form_of(call);
  made.bytes = values[role::bytes];
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
  const auto named =
      way_of(Call) == way::by_address ? static_cast<way>(values[role::way]) : way_of(Call);
  auto what = request_of(Call, values);
  // NOLINTBEGIN(performance-no-int-to-ptr): arguments of the call
  what.dst = reinterpret_cast<void*>(values[role::dst]);
  what.src = reinterpret_cast<const void*>(values[role::src]);
  // NOLINTEND(performance-no-int-to-ptr)
  return fix_copy(what, is_fixable_way(named) && are_usual<Call>(arguments...), real);
}

}  // namespace berth::interpose
