// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/ground_truth.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "emulator/preload/system.hpp"

namespace berth::emulator {
namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char one : text) {
    if (one == '"' || one == '\\') {
      out += '\\';
      out += one;
    } else if (static_cast<unsigned char>(one) < 0x20) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(one) >> 4U];
      out += digits[static_cast<unsigned char>(one) & 15U];
    } else {
      out += one;
    }
  }
  out += '"';
}

}  // namespace

trace_line::trace_line(std::string_view record) {
  text_ = "{\"record\":";
  append_quoted(text_, record);
  field("pid", getpid());
  field("time_ns", steady_time_ns());
}

trace_line& trace_line::raw(std::string_view name, std::string_view value) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
  text_ += value;
  return *this;
}

trace_line& trace_line::field(std::string_view name, std::string_view value) {
  std::string quoted;
  append_quoted(quoted, value);
  return raw(name, quoted);
}

trace_line& trace_line::address(std::string_view name, std::uint64_t value) {
  return field(name, hexadecimal(value));
}

ground_truth::ground_truth(const std::string& file) {
  if (file.empty()) {
    return;
  }
  descriptor_ = moved_up(static_cast<int>(syscall(
      SYS_openat, AT_FDCWD, file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)));
  if (descriptor_ < 0) {
    say_once("cannot write the trace " + file);
  }
}

void ground_truth::write(const trace_line& line) const noexcept {
  if (wanted()) {
    const auto text = line.text();
    syscall(SYS_write, descriptor_, text.data(), text.size());
  }
}

}  // namespace berth::emulator
