// SPDX-License-Identifier: Apache-2.0
// Which devices the process has: asked of the runtime once, after a call of the program's has shown
// that it is initialised. Asking makes no context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interpose/capture/calls.hpp"

namespace berth::interpose {

struct device_facts {
  std::array<char, 128> name{};
  std::array<char, 32> pci_address{};
  std::uint64_t memory = 0;     // bytes; 0: unknown
  std::int32_t numa_node = -1;  // -1: unknown, or the machine has one
};

struct known_devices {
  static constexpr std::size_t most = 16;
  std::array<device_facts, most> of{};
  std::size_t count = 0;
};

[[nodiscard]] known_devices ask_for_devices(api which) noexcept;

}  // namespace berth::interpose
