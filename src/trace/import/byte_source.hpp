// SPDX-License-Identifier: Apache-2.0
// A file, or bytes in memory, as a stream of plain bytes: gzip is undone on the way, recognised
// from its first bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"

namespace berth::trace {

class byte_source {
public:
  // Blocks on the file system. @errors file_unreadable, input_empty
  [[nodiscard]] static result<byte_source> open(const std::string& path);
  // The same of a file's content. `name` names it in errors. @errors input_empty
  [[nodiscard]] static result<byte_source> from_memory(std::string name, std::vector<char> content);

  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;
  byte_source(byte_source&&) noexcept;
  byte_source& operator=(byte_source&&) noexcept;
  ~byte_source();

  // Fills `target` from its start and returns how many bytes it holds; fewer than asked for only at
  // the end. @errors file_unreadable, input_compression
  [[nodiscard]] result<std::size_t> read(std::span<char> target);

  // The first bytes that read() has not given yet, at most `count` of them; read() gives them
  // again.
  // @errors as read()
  [[nodiscard]] result<std::string_view> peek(std::size_t count);

  // True when compressed data ended before its own end mark. Valid once read() has reached the end.
  [[nodiscard]] bool ended_early() const noexcept;
  // What errors call it.
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] bool is_compressed() const noexcept;
  // Bytes of the file itself: read so far, and in all.
  [[nodiscard]] std::uint64_t file_bytes_read() const noexcept;
  [[nodiscard]] std::uint64_t file_bytes() const noexcept;

private:
  struct state;
  [[nodiscard]] static result<byte_source> start(std::unique_ptr<state> opened);
  explicit byte_source(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

}  // namespace berth::trace
