// SPDX-License-Identifier: Apache-2.0
#include "emulator/topology/chips.hpp"

#include <algorithm>
#include <array>

namespace berth::emulator {
namespace {

constexpr std::array<chip, 4> chips = {{
    {.isa = "gfx906",
     .codename = "vega20",
     .gfx_version = 90006,
     .shader_engines = 4,
     .arrays_per_engine = 1,
     .units_per_array = 16,
     .simds_per_unit = 4,
     .waves_per_simd = 10,
     .wave_size = 64,
     .l1_kib = 16,
     .l2_kib = 4096,
     .l3_kib = 0,
     .memory_width_bits = 4096,
     .memory_mhz = 1000,
     .engine_mhz = 1700,
     .firmware = 466,
     .sdma_firmware = 145,
     .ecc = memory_ecc::absent},
    {.isa = "gfx908",
     .codename = "arcturus",
     .gfx_version = 90008,
     .shader_engines = 8,
     .arrays_per_engine = 1,
     .units_per_array = 16,
     .simds_per_unit = 4,
     .waves_per_simd = 10,
     .wave_size = 64,
     .l1_kib = 16,
     .l2_kib = 8192,
     .l3_kib = 0,
     .memory_width_bits = 4096,
     .memory_mhz = 1200,
     .engine_mhz = 1502,
     .firmware = 60,
     .sdma_firmware = 18,
     .ecc = memory_ecc::present},
    {.isa = "gfx90a",
     .codename = "aldebaran",
     .gfx_version = 90010,
     .shader_engines = 8,
     .arrays_per_engine = 1,
     .units_per_array = 14,
     .simds_per_unit = 4,
     .waves_per_simd = 8,
     .wave_size = 64,
     .l1_kib = 16,
     .l2_kib = 8192,
     .l3_kib = 0,
     .memory_width_bits = 4096,
     .memory_mhz = 1600,
     .engine_mhz = 1700,
     .firmware = 69,
     .sdma_firmware = 8,
     .ecc = memory_ecc::present},
    {.isa = "gfx1030",
     .codename = "navi21",
     .gfx_version = 100300,
     .shader_engines = 4,
     .arrays_per_engine = 2,
     .units_per_array = 10,
     .simds_per_unit = 2,
     .waves_per_simd = 16,
     .wave_size = 32,
     .l1_kib = 16,
     .l2_kib = 4096,
     .l3_kib = 131072,
     .memory_width_bits = 256,
     .memory_mhz = 1000,
     .engine_mhz = 2575,
     .firmware = 104,
     .sdma_firmware = 80,
     .ecc = memory_ecc::absent},
}};

}  // namespace

std::span<const chip> known_chips() noexcept {
  return chips;
}

const chip* find_chip(std::string_view isa) noexcept {
  const auto* const found =
      std::find_if(chips.begin(), chips.end(), [&](const chip& one) { return one.isa == isa; });
  return found == chips.end() ? nullptr : found;
}

}  // namespace berth::emulator
