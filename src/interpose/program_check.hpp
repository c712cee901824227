// SPDX-License-Identifier: Apache-2.0
// Before a program is started with a preloaded library: is it there, can it be started, and does
// the system let anything be preloaded into it? Reads files only; nothing is started.
//
// Words: an *obstacle* is why a program cannot be recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "berth/result.hpp"

namespace berth::interpose {

enum class obstacle_kind : std::uint8_t {
  static_program,      // nothing is preloaded into it, but into programs that it starts
  other_architecture,  // of another processor or word size than berth
  other_c_library,     // musl: the recorder needs glibc
  other_rights,        // setuid, setgid or file capabilities: the system ignores LD_PRELOAD
};

struct obstacle {
  obstacle_kind kind{};
  std::filesystem::path program;  // of a script, its interpreter
  std::string why;                // "is linked statically"
  std::string what_to_do;

  // Programs that it starts can still be recorded.
  [[nodiscard]] bool spares_children() const noexcept {
    return kind == obstacle_kind::static_program;
  }
};

struct checked_program {
  std::filesystem::path path;        // the file that is named, found in PATH
  std::filesystem::path executable;  // what will run: of a script, its interpreter
  std::optional<berth::interpose::obstacle> obstacle;
};

// @errors usage: it does not exist, is a folder, may not be executed, or a script's interpreter
//         is missing
[[nodiscard]] result<checked_program> check_program(std::string_view name);

}  // namespace berth::interpose
