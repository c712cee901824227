// SPDX-License-Identifier: Apache-2.0
// What happens around an intercepted call. The real call is made with the arguments as they are,
// its result is handed on, and errno is left as the call has left it. Calls that the runtime makes
// of itself while one is under way are part of that one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "interpose/capture/call_site.hpp"
#include "interpose/capture/collect.hpp"
#include "interpose/capture/fix_gate.hpp"
#include "interpose/capture/host_end.hpp"
#include "interpose/capture/real_calls.hpp"
#include "interpose/capture/thread_log.hpp"

namespace berth::interpose {

// One call under way. Only the outermost of a thread is recorded: what a runtime calls of itself
// meanwhile is part of it. Only for allocations is the window for recording without meaning: what
// they give is needed to tell what later copies move.
class call_scope {
public:
  explicit call_scope(call_id call) noexcept;
  // Once, by hand: a thread that is cancelled within the runtime unwinds through here, past the
  // recorder's own copy of the unwinder, so there must be nothing to clean up. The thread ends
  // anyway.
  void leave() const noexcept;

  // What a runtime calls of itself is not.
  [[nodiscard]] bool is_outermost() const noexcept { return is_outermost_; }
  // Null where the call is not recorded, or found no room.
  [[nodiscard]] raw_event* event() const noexcept { return event_; }
  // What can only be known before the call. `host`: the end of a copy that is on the host.
  void look(const host_range& host, std::uint64_t bytes, const call_place& place) noexcept;
  void end(std::int64_t status) noexcept;

private:
  thread_log* log_ = nullptr;
  raw_event* event_ = nullptr;
  bool is_outermost_ = false;
};

// A runtime's call for which no runtime has a function. CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
// and hipErrorSharedObjectSymbolNotFound are the same number.
inline constexpr int symbol_not_found = 302;

template <class Result>
[[nodiscard]] Result missing() noexcept {
  if constexpr (std::is_pointer_v<Result>) {
    return "the GPU runtime has no such call";
  } else {
    return symbol_not_found;
  }
}

// A looked-up function that is recorded is replaced by the one that records.
[[nodiscard]] void* recording_function(api which, void* function, const char* name) noexcept;

// What cuGetProcAddress and its like have found.
template <class... Rest>
void hand_out(api which, const char* name, void** function, const Rest&...) noexcept {
  if (function != nullptr && *function != nullptr && name != nullptr) {
    *function = recording_function(which, *function, name);
  }
}

// The runtime is initialised: from now on its devices can be watched.
void begin_device_times(api which) noexcept;

template <call_id Call>
inline constexpr call_schema schema_for = schema_of(Call);

// The copy engine's copy where that is asked for and makes it, else the call itself.
// A block that the program has freed before, or the call.
template <call_id Call, class Result, class... Flags>
[[nodiscard]] Result allocate_pinned(Result (*real)(void**, std::size_t, Flags...),
                                     void** out_memory, std::size_t bytes, Flags... flags) {
  const pinned_block wanted{
      .call = Call, .bytes = bytes, .flags = (std::uint64_t{0} + ... + flags)};
  const auto* const function = reinterpret_cast<const void*>(real);
  if (out_memory == nullptr || bytes == 0) {
    return real(out_memory, bytes, flags...);
  }
  if (take_pinned(wanted, *out_memory, function)) {
    return 0;
  }
  Result status = real(out_memory, bytes, flags...);
  if (status != 0 && release_pinned(wanted, function)) {
    status = real(out_memory, bytes, flags...);
  }
  if (status == 0) {
    note_pinned(wanted, *out_memory, function);
  }
  return status;
}

template <call_id Call, class Result, class... Arguments>
[[gnu::always_inline]] inline Result carry_out(const call_scope& scope,
                                               Result (*real)(Arguments...),
                                               Arguments... arguments) {
  if constexpr (is_fixable(Call)) {
    if (fixing_now() != fixing::off && scope.is_outermost() &&
        try_to_fix<Call>(reinterpret_cast<const void*>(real), arguments...)) {
      if (scope.event() != nullptr) {
        scope.event()->is_fixed = true;
      }
      return 0;
    }
  }
  if constexpr (row_of(Call).operation == "allocate_pinned") {
    if (keeps_pinned() && scope.is_outermost()) {
      return allocate_pinned<Call>(real, arguments...);
    }
  } else if constexpr (row_of(Call).operation == "free_pinned") {
    if (keeps_pinned() && scope.is_outermost() &&
        keep_pinned(Call, arguments..., reinterpret_cast<const void*>(real))) {
      return 0;
    }
  } else if constexpr (row_of(Call).operation == "synchronize_device") {
    const Result status = real(arguments...);
    if (status == 0 && fixing_now() != fixing::off && scope.is_outermost()) {
      note_idle_device();
    }
    return status;
  }
  return real(arguments...);
}

template <call_id Call, class Result, class... Arguments>
[[gnu::always_inline]] inline Result intercept(Arguments... arguments) {
  auto* const real = reinterpret_cast<Result (*)(Arguments...)>(real_call(Call));
  if (real == nullptr) {
    return missing<Result>();
  }
  if constexpr (row_of(Call).operation == "find_call") {
    const Result status = real(arguments...);
    if (status == 0) {
      hand_out(row_of(Call).api, arguments...);
    }
    return status;
  } else if constexpr (row_of(Call).operation == "initialise") {
    const Result status = real(arguments...);
    if (status == 0) {
      begin_device_times(row_of(Call).api);
    }
    return status;
  } else if constexpr (row_of(Call).operation == "begin_capture") {
    const Result status = real(arguments...);
    if (status == 0) {
      note_capture_begun();
    }
    return status;
  } else if constexpr (row_of(Call).operation == "end_capture") {
    const Result status = real(arguments...);
    note_capture_ended();  // also of one that has failed
    return status;
  } else if constexpr (row_of(Call).operation == "reset_device") {
    end_fixing();
    return real(arguments...);
  } else if constexpr (!is_recorded(Call)) {
    return real(arguments...);
  } else {
    call_scope scope(Call);
    if (scope.event() == nullptr) {
      const Result status = carry_out<Call>(scope, real, arguments...);
      scope.leave();
      return status;
    }
    role_values values;
    collect_inputs<Call>(values, arguments...);
    scope.look(
        host_end_of<Call>(values), values[role::bytes],
        {.return_address = __builtin_return_address(0), .frame = __builtin_frame_address(0)});
    const Result status = carry_out<Call>(scope, real, arguments...);
    if (status == 0) {
      collect_results<Call>(values, arguments...);
    }
    for (std::size_t index = 0; index < schema_for<Call>.count; ++index) {
      scope.event()->values[index] = values[schema_for<Call>.roles[index]];
    }
    scope.end(status);
    scope.leave();
    return status;
  }
}

}  // namespace berth::interpose
