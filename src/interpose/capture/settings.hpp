// SPDX-License-Identifier: Apache-2.0
// What the recorder is told through the environment: see docs/recording.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace berth::interpose {

enum class device_times : std::uint8_t { automatic, off, on };
enum class call_sites : std::uint8_t { automatic, off, all };
enum class contents : std::uint8_t { unread, hashed };

struct settings {
  static constexpr std::size_t most_path = 4096;

  std::array<char, most_path> path{};  // BERTH_RECORD; empty: nothing is recorded
  interpose::device_times times = interpose::device_times::automatic;
  call_sites sites = call_sites::automatic;
  interpose::contents contents = interpose::contents::unread;
  std::int64_t delay_ns = 0;
  std::int64_t duration_ns = 0;   // 0: to the end
  int toggle_signal = 0;          // 0: none
  std::int64_t only_process = 0;  // 0: children, too
  std::size_t memory = std::size_t{64} << 20;

  [[nodiscard]] bool records() const noexcept { return path[0] != '\0'; }
};

// Never fails: what cannot be understood keeps its default.
[[nodiscard]] settings settings_of_environment() noexcept;

// The pattern with %p, %h, %r and %% filled in; `attempt` above 0 puts the process's number, and
// from 2 on the attempt's, before the extension: for a name that another process has taken. False
// where it does not fit.
[[nodiscard]] bool expand_path(const settings& from, unsigned attempt,
                               std::array<char, settings::most_path>& to) noexcept;

// Of this process within a job of MPI, Slurm or torchrun; empty where none is known.
[[nodiscard]] const char* rank_of_environment() noexcept;

}  // namespace berth::interpose
