// SPDX-License-Identifier: Apache-2.0
// What of a process the recorder could see: its GPU runtimes, and how their calls reach it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/capture/calls.hpp"
#include "interpose/capture/settings.hpp"

namespace berth::interpose {

// In rising order of what a trace prefers to tell.
enum class reached_by : std::uint8_t { nothing, called, symbol_lookup, driver_table };

struct mapped_runtime {
  interpose::api api = interpose::api::hip;
  std::array<char, 512> path{};
  bool is_used = false;  // some recorded call goes on to it
};

// The GPU runtimes that the process has mapped now. Takes the loader's lock.
struct mapped_runtimes {
  static constexpr std::size_t most = 8;
  std::array<mapped_runtime, most> found{};
  std::size_t count = 0;
};
[[nodiscard]] mapped_runtimes find_mapped_runtimes() noexcept;

// The interface of the library with that path; nothing for libraries that are no GPU runtime.
struct known_runtime {
  bool is_one = false;
  interpose::api api = interpose::api::hip;
};
[[nodiscard]] known_runtime runtime_of_path(std::string_view path) noexcept;

}  // namespace berth::interpose
