// SPDX-License-Identifier: Apache-2.0
// The emulator in this process: whether it is wanted, and the driver once the program has opened a
// device. Nothing here is ever destroyed, because the engines run to the end of the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/preload/driver_calls.hpp"

namespace berth::emulator {

// The overlay folder, or empty where the process is not emulated.
[[nodiscard]] const std::string& overlay_root();

// The machine of the overlay folder; null if there is none.
[[nodiscard]] const machine_spec* described_machine();

// The driver of this process, made by the first call. Null where no machine is described.
[[nodiscard]] driver* open_driver();
// The same, without making one.
[[nodiscard]] driver* opened_driver() noexcept;

// What a descriptor of the emulated devices is.
enum class descriptor_kind : std::uint8_t { foreign, kfd, render };
[[nodiscard]] descriptor_kind kind_of_descriptor(int descriptor) noexcept;

// True in a child that was forked from a process with an open driver: as with the kernel's, the
// parent's descriptors are of no use there, and its engines do not exist.
[[nodiscard]] bool is_forked_child() noexcept;

}  // namespace berth::emulator
