// SPDX-License-Identifier: Apache-2.0
/// @file
/// Host functions in place of GPU kernels, for programs that run on the emulated device
/// (`berth emulate`, docs/emulator.md). The emulator executes no GPU code: a kernel completes
/// without effect, unless the program or a library given with `--kernels` exports a function
///
///     extern "C" berth::emulated_progress berth_emulated_NAME(berth::emulated_launch* launch);
///
/// where NAME is the kernel's name as the linker sees it (mangled, unless it is `extern "C"`). A
/// program must be linked with -rdynamic to export it.
#pragma once

#include <array>
#include <cstdint>

namespace berth {

/// One launch of a kernel, as its host function sees it.
struct emulated_launch {
  std::array<std::uint32_t, 3> grid;       ///< work items in each dimension
  std::array<std::uint32_t, 3> workgroup;  ///< work items in a work group
  const void* arguments;                   ///< the kernel's arguments, laid out as the compiler did
  /// The host address of a GPU address. Null where the device may not access it: the kernel then
  /// ends with a memory fault, as on a GPU, whatever the function does.
  void* (*host_address)(std::uint64_t gpu_address);
  /// How long the kernel shall have taken on the device's clock; the function may set it.
  std::uint64_t device_ns;
  /// How often this launch was asked before: 0 at first.
  std::uint64_t calls;
};

/// What the function has to say. It runs on the emulator's one thread for all devices: it must not
/// call the GPU runtime and must not wait. To wait for something, it returns `again`.
enum class emulated_progress : int {
  done = 0,   ///< the kernel has ended
  again = 1,  ///< not yet: ask again soon; other queues go on meanwhile
};

}  // namespace berth
