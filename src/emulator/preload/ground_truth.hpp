// SPDX-License-Identifier: Apache-2.0
// The trace of what the emulated devices really did: one JSON object on a line for each buffer,
// queue and packet. docs/emulator.md lists the fields. Lines are written whole, so that several
// processes can share the file and a crash loses nothing.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::emulator {

// One line: {"record":"copy","pid":12,"time_ns":...,...}
class trace_line {
public:
  explicit trace_line(std::string_view record);

  trace_line& field(std::string_view name, std::string_view value);
  template <std::integral Number>
  trace_line& field(std::string_view name, Number value) {
    return raw(name, std::to_string(value));
  }
  trace_line& address(std::string_view name, std::uint64_t value);

  [[nodiscard]] std::string text() const { return text_ + "}\n"; }

private:
  trace_line& raw(std::string_view name, std::string_view value);

  std::string text_;
};

class ground_truth {
public:
  // Records nothing if the name is empty.
  explicit ground_truth(const std::string& file);

  [[nodiscard]] bool wanted() const noexcept { return descriptor_ >= 0; }
  void write(const trace_line& line) const noexcept;

private:
  int descriptor_ = -1;
};

}  // namespace berth::emulator
