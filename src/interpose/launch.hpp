// SPDX-License-Identifier: Apache-2.0
// What surrounds the preloaded recorder, libberth_preload.so, from outside: where it is, whether
// this system preloads it, and the variables of the environment that tell it what to do.
// docs/recording.md lists them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "core/program.hpp"
#include "interpose/capture/settings.hpp"

namespace berth::interpose {

enum class children : std::uint8_t { recorded, left_out };

// What becomes of copies of pageable memory.
enum class copies : std::uint8_t {
  left_alone,  // unless the environment says otherwise
  fixed,
  never_fixed,
};

// What becomes of page-locked memory that the program frees.
enum class freed_pinned : std::uint8_t {
  given_back,  // unless the environment says otherwise
  kept,        // for the next allocation of the same sort
};

struct recording_options {
  std::string file;  // a pattern: %p process, %h host, %r rank, %% percent
  berth::interpose::device_times device_times = device_times::automatic;
  call_sites stacks = call_sites::automatic;
  contents content = contents::unread;
  berth::interpose::children children = children::recorded;
  berth::interpose::copies copies = copies::left_alone;
  berth::interpose::freed_pinned pinned = freed_pinned::given_back;
  std::optional<std::chrono::nanoseconds> delay;     // from the program's start
  std::optional<std::chrono::nanoseconds> duration;  // of the recording
  std::string signal;                                // "USR2"; empty: none
};

// The variable that limits a recording to one process: its value is that process' number.
inline constexpr const char* only_process_variable = "BERTH_RECORD_ONLY";

// The variable that has copies fixed: "1", or "check" to compare each. Where the environment has it
// already, that counts, so that "0" switches off what a script has switched on.
inline constexpr const char* fix_variable = "BERTH_FIX";
// MiB of freed page-locked memory that are kept; the same holds.
inline constexpr const char* fix_pinned_variable = "BERTH_FIX_PINNED";

// What the library reads; only what differs from its defaults. Neither LD_PRELOAD nor
// BERTH_RECORD_ONLY is among them.
[[nodiscard]] std::vector<program::variable> variables_of(const recording_options& options);

// "auto", "off", "all". @errors usage
[[nodiscard]] result<berth::interpose::device_times> parse_device_times(std::string_view text);
[[nodiscard]] result<call_sites> parse_stacks(std::string_view text);

// "USR2" of "USR2", "SIGUSR2" or "usr2", and its number.
struct toggle_signal {
  std::string name;
  int number = 0;
};
// @errors usage: no such signal, or one that has another meaning
[[nodiscard]] result<toggle_signal> parse_toggle_signal(std::string_view text);

// "2.5" (seconds) or a number with a unit: "250ms". @errors usage
[[nodiscard]] result<std::chrono::nanoseconds> parse_seconds(std::string_view text);

// libberth_preload.so: where BERTH_PRELOAD_LIBRARY says, beside this program, or where it was
// installed. @errors file_unreadable; usage for a path that LD_PRELOAD cannot hold
[[nodiscard]] result<std::filesystem::path> find_recorder();

// Starts a small program (this one) with the library and asks it to answer. Gives its version.
// @errors gpu_not_supported with what the system's loader says: nothing is preloaded here
[[nodiscard]] result<std::string> try_preloading(const std::filesystem::path& recorder);

}  // namespace berth::interpose
