// SPDX-License-Identifier: Apache-2.0
// How the preloaded library reaches the system beneath its own interposed calls, and how it speaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::emulator {

// The next definition of a symbol behind this library; null where there is none.
[[nodiscard]] void* next_symbol(const char* name) noexcept;

template <typename Function>
[[nodiscard]] Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(next_symbol(name));
}

// A descriptor of the emulator's own: not inherited by programs, and high, so that programs which
// count on low numbers are not disturbed. Negative if `descriptor` is.
[[nodiscard]] int moved_up(int descriptor) noexcept;

// The whole file, past the overlay. Empty where it cannot be read.
[[nodiscard]] std::string read_whole_file(const std::string& path);

// One line on standard error: "berth emulator: ...".
void say(std::string_view text) noexcept;
// The same, and never again for the same text in this process.
void say_once(const std::string& text);

// User space gives addresses of this process as numbers.
template <typename Value>
[[nodiscard]] Value* host_pointer(std::uint64_t address) noexcept {
  return reinterpret_cast<Value*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Reads memory of this process that may be gone. False if it is.
[[nodiscard]] bool read_safely(std::uint64_t address, void* into, std::size_t bytes) noexcept;
// Copies between addresses of this process of which either may be gone. False if one is.
[[nodiscard]] bool copy_safely(void* to, const void* from, std::size_t bytes) noexcept;

// CLOCK_BOOTTIME: the clock that the driver pairs with that of the devices.
[[nodiscard]] std::uint64_t boot_time_ns() noexcept;
[[nodiscard]] std::uint64_t steady_time_ns() noexcept;

}  // namespace berth::emulator
