// SPDX-License-Identifier: Apache-2.0
// The kernels that AMD's runtime brings itself, by what they do: copies, fills, and writes to and
// waits for words in memory. HIP compiles its own from OpenCL and names them __amd_rocclr_*; ROCr's
// are in no code object and are told by their first instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "emulator/preload/byte_move.hpp"

namespace berth::emulator {

struct emulated_machine;

// 4 or 8 bytes.
struct word_write {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;
};

enum class comparison : std::uint8_t { at_least = 0, equal = 1, any_bit = 2, no_all_bits = 3 };

struct word_wait {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
  std::uint64_t mask = 0;
  std::uint64_t bytes = 0;
  comparison until = comparison::equal;

  [[nodiscard]] bool met_by(std::uint64_t found) const noexcept;
};

using runtime_effect = std::variant<byte_move, word_write, word_wait>;

// ROCr's own kernel at that descriptor: its name here, or empty for another kernel.
[[nodiscard]] std::string_view rocr_kernel_at(const emulated_machine& machine,
                                              std::uint64_t descriptor);

// What the kernel does with these arguments. Nothing for a kernel that is not the runtime's, or
// arguments that make no sense.
[[nodiscard]] std::optional<runtime_effect> runtime_effect_of(const emulated_machine& machine,
                                                              std::string_view kernel,
                                                              std::uint64_t arguments);

}  // namespace berth::emulator
