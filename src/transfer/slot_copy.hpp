// SPDX-License-Identifier: Apache-2.0
// Writing into the ring, for a DMA engine to read.
//
// Bytes that a CPU has just written lie dirty in its own cache, and a DMA engine that asks for them
// waits until they have been fetched from there: on Intel server CPUs a DMA right behind a plain
// copy reaches about half of the link. So they are better sent on the way out of the cache, or
// never put there. docs/performance.md has the figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "berth/units.hpp"

namespace berth::transfer {

enum class slot_store : std::uint8_t {
  ordinary,   // memcpy
  streaming,  // past the caches, to memory: best for short copies, bound by memory for long ones
  demoted,    // into the shared cache: best for long copies
};

[[nodiscard]] std::string_view to_string(slot_store value) noexcept;
[[nodiscard]] std::optional<slot_store> parse_slot_store(std::string_view text) noexcept;

// memcpy with such stores; where the CPU has none of that sort, memcpy. What was written is visible
// to devices once the calling thread has released it to another, as with memcpy.
void write_slot(void* slot, const void* src, bytes_t bytes, slot_store how) noexcept;

}  // namespace berth::transfer
