// SPDX-License-Identifier: Apache-2.0
// A recorder for tests of the command: loaded in the place of libberth_preload.so, it answers the
// self-test and writes a recording of one copy when the process begins. STANDIN says how it fails:
//   mute       does not answer the self-test       crash      ends the self-test by a signal
//   nothing    makes no file                       garbage    makes a file that is no recording
//   cut        the recording lacks its end
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "trace/recording/layout.hpp"

namespace {

using namespace berth::trace::recording;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

void write_text(int file, std::string_view text) {
  [[maybe_unused]] const auto written = ::write(file, text.data(), text.size());
}

struct buffer {
  std::array<std::byte, 4096> bytes{};
  byte_writer writer{bytes};
};

void write_bytes(int file, const byte_writer& from) {
  const auto bytes = from.written();
  write_text(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void write_block(int file, block_type type, const buffer& payload, std::uint32_t sequence) {
  buffer header;
  put_block_header(header.writer,
                   {.type = type,
                    .encoding = block_encoding::plain,
                    .stored_bytes = 0,
                    .plain_bytes = static_cast<std::uint32_t>(payload.writer.size()),
                    .sequence = sequence,
                    .checksum = 0},
                   payload.writer.written());
  write_bytes(file, header.writer);
  write_bytes(file, payload.writer);
}

void put_pair(buffer& into, std::string_view key, std::string_view value) {
  into.writer.put_string(key);
  into.writer.put_string(value);
}

// %p alone: the tests use no other.
std::string file_name(std::string pattern) {
  if (const auto at = pattern.find("%p"); at != std::string::npos) {
    pattern.replace(at, 2, std::to_string(::getpid()));
  }
  return pattern;
}

// The names of roles, in the order of an event's values.
constexpr std::array<std::string_view, 3> copy_roles = {"dst", "src", "bytes"};

void write_recording(int file, const std::string& mode) {
  buffer header;
  put_file_header(header.writer);
  write_bytes(file, header.writer);
  buffer process;
  process.writer.put_varint(2);
  put_pair(process, "program", "standin");
  put_pair(process, "pid", std::to_string(::getpid()));
  write_block(file, block_type::process, process, 0);
  buffer calls;
  calls.writer.put_varint(2);
  calls.writer.put_varint(0);  // call 0: the extras
  calls.writer.put_string("");
  calls.writer.put_string("berth");
  calls.writer.put_string("");
  calls.writer.put_varint(0);
  calls.writer.put_varint(1);
  calls.writer.put_string("hipMemcpyHtoD");
  calls.writer.put_string("hip");
  calls.writer.put_string("copy");
  calls.writer.put_varint(copy_roles.size());
  for (const auto role : copy_roles) {
    calls.writer.put_string(role);
  }
  write_block(file, block_type::calls, calls, 1);
  buffer events;
  events.writer.put_varint(static_cast<std::uint64_t>(::getpid()));
  events.writer.put_signed(1'000'000);
  events.writer.put_varint(1);          // the call
  events.writer.put_signed(0);          // begin
  events.writer.put_varint(2'000'000);  // duration
  events.writer.put_varint(0);          // flags
  events.writer.put_signed(0x7000'0000);
  events.writer.put_signed(0x1000'0000);
  events.writer.put_signed(8 << 20);
  write_block(file, block_type::events, events, 2);
  if (mode != "cut") {
    buffer end;
    end.writer.put_varint(1);
    put_pair(end, "reason", "exit");
    write_block(file, block_type::end, end, 3);
  }
}

[[gnu::constructor]] void begin() {
  const auto mode = variable("STANDIN");
  if (const auto check = variable("BERTH_PRELOAD_CHECK"); !check.empty()) {
    if (mode == "crash") {
      ::raise(SIGKILL);
    }
    if (mode != "mute") {
      write_text(std::atoi(check.c_str()), "berth-preload 0.1.0\n");
    }
    return;
  }
  const auto pattern = variable("BERTH_RECORD");
  const auto only = variable("BERTH_RECORD_ONLY");
  if (pattern.empty() || mode == "nothing" ||
      (!only.empty() && only != std::to_string(::getpid()))) {
    return;
  }
  const int file =
      ::open(file_name(pattern).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return;
  }
  if (mode == "garbage") {
    write_text(file, "no recording at all");
  } else {
    write_recording(file, mode);
  }
  ::close(file);
}

}  // namespace
