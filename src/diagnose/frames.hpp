// SPDX-License-Identifier: Apache-2.0
// Whose code a frame of a call stack is, and which frames of a stack say where in the program
// something was called. Frames of GPU runtimes, of interpreters and of what starts a program are
// nobody's place: they are the same for every call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace berth::diagnose {

enum class frame_owner : std::uint8_t {
  program,
  framework,    // PyTorch, XLA, cuBLAS: named where the program has no frame of its own
  runtime,      // the GPU's, and berth's own
  interpreter,  // Python, Java
  start_up,     // the C and C++ libraries, _start
};

// A frame as sources print it: "upload (model.cpp:12)", "cudaMemcpy in libcudart.so.13",
// "libtorch_cuda.so+0x1234", "train.py(12): step".
[[nodiscard]] frame_owner owner_of_frame(std::string_view frame) noexcept;

// Two frames at most; 0 where there is none.
struct stack_place {
  trace::name_id function = 0;  // the innermost that says something
  trace::name_id caller = 0;    // where that is a library's: the outermost of a library or program

  [[nodiscard]] constexpr bool is_known() const noexcept { return function != 0; }
  friend constexpr auto operator<=>(const stack_place&, const stack_place&) = default;
};

// The innermost frame of the program; one that has a symbol, if any has. 0 if there is none.
[[nodiscard]] trace::name_id own_frame(const trace::trace& events, const trace::call_site& site);
// The same, and what a framework's frames say where the program has none.
[[nodiscard]] stack_place place_in(const trace::trace& events, const trace::call_site& site);

// "upload (model.cpp:12)", "at::native::copy_ in libtorch_cpu.so (from THPVariable_to in
// libtorch_python.so)"; empty if it is not known.
[[nodiscard]] std::string describe(const trace::trace& events, const stack_place& place);

}  // namespace berth::diagnose
