// SPDX-License-Identifier: Apache-2.0
// What the kernel driver tells of a chip beyond what a machine model holds: how its compute units
// are arranged, its caches, the versions that user space looks at. From the driver's own tables
// (amdgpu's chip configurations) and sysfs of such cards.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace berth::emulator {

enum class memory_ecc : std::uint8_t { absent, present };

struct chip {
  std::string_view isa;       // "gfx90a", as machine models say
  std::string_view codename;  // as the driver names the node
  std::uint32_t gfx_version;  // major * 10000 + minor * 100 + stepping
  std::uint32_t shader_engines;
  std::uint32_t arrays_per_engine;
  std::uint32_t units_per_array;
  std::uint32_t simds_per_unit;
  std::uint32_t waves_per_simd;
  std::uint32_t wave_size;
  std::uint32_t l1_kib;
  std::uint32_t l2_kib;
  std::uint32_t l3_kib;  // 0: none
  std::uint32_t memory_width_bits;
  std::uint32_t memory_mhz;
  std::uint32_t engine_mhz;
  std::uint32_t firmware;
  std::uint32_t sdma_firmware;
  memory_ecc ecc;
};

// The chips that ROCm 5.2 runs on and the emulator has data of.
[[nodiscard]] std::span<const chip> known_chips() noexcept;

// Null for another.
[[nodiscard]] const chip* find_chip(std::string_view isa) noexcept;

}  // namespace berth::emulator
