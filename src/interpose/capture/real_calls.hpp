// SPDX-License-Identifier: Apache-2.0
// Where the intercepted calls really are. A runtime may be linked, opened with its names hidden, or
// both; a pointer that the program itself has looked up is the best answer, then the next library
// in the order of loading, then a runtime that is mapped under its usual name.
#pragma once

#include <cstdint>

#include "interpose/capture/calls.hpp"
#include "interpose/capture/coverage.hpp"

namespace berth::interpose {

using lookup = void* (*)(void* handle, const char* name);

// The loader's own dlsym, behind the one that the recorder shows.
[[nodiscard]] lookup real_dlsym() noexcept;

// Null where no runtime has it. The second time it costs a load.
[[nodiscard]] void* real_call(call_id call) noexcept;

enum class remembered : std::uint8_t {
  as_before,     // the recorder stands in front of this function
  foreign,       // no function of a GPU runtime
  another_copy,  // of a second copy of the runtime: it is not recorded
};
// The program has looked this one up.
remembered remember(call_id call, void* function) noexcept;

// The calls of a name; call_id::none if it is not intercepted.
[[nodiscard]] call_id find_call(const char* name) noexcept;
// The call whose real function this is; none if there is none.
[[nodiscard]] call_id find_function(api which, const void* function) noexcept;

// Whether one of the interface's recorded calls goes on to the library of that path. Takes the
// loader's lock.
[[nodiscard]] bool has_real_call_in(api which, const char* path) noexcept;

// A handle of the first mapped library whose file's name begins so; null where there is none. It
// stays mapped.
[[nodiscard]] void* open_mapped(const char* name_begin) noexcept;

}  // namespace berth::interpose
