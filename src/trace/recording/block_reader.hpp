// SPDX-License-Identifier: Apache-2.0
// Walks the blocks of a recording: header, checksums, decompression. What is damaged is passed over
// and counted, and the next block whose checksum is right goes on.
//
// Words: a *damaged place* is a run of bytes that are no block; *missing blocks* are gaps in the
// blocks' own numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/result.hpp"
#include "trace/import/byte_source.hpp"
#include "trace/recording/layout.hpp"

namespace berth::trace::recording {

// True for the first bytes of a recording; 8 of them decide.
[[nodiscard]] bool is_recording(std::string_view first_bytes) noexcept;

struct block {
  block_type type{};
  std::uint32_t sequence = 0;
  std::span<const std::byte> payload;  // plain; valid until the next block is read
};

struct damage {
  std::uint64_t places = 0;          // damaged ones, the end of a cut file not counted
  std::uint64_t missing_blocks = 0;  // their numbers are not in the file
  std::uint64_t lost_bytes = 0;      // of the file, in no block; a cut block's too
  // How many blocks had been read when the first loss was met.
  std::optional<std::uint64_t> first_loss;
  bool cut = false;  // the file ends inside a block

  [[nodiscard]] bool any() const noexcept { return places > 0 || missing_blocks > 0; }
};

class block_reader {
public:
  // Reads the file's header. Blocks on the file system.
  // @errors input_unknown_format (no recording, or one of a newer version), input_truncated
  // (shorter
  //         than its header), file_unreadable, input_compression
  [[nodiscard]] static result<block_reader> open(byte_source source);

  block_reader(const block_reader&) = delete;
  block_reader& operator=(const block_reader&) = delete;
  block_reader(block_reader&&) noexcept;
  block_reader& operator=(block_reader&&) noexcept;
  ~block_reader();

  // The next whole block, of any type; nothing at the end.
  // @errors file_unreadable, input_compression (of a file that is compressed as a whole)
  [[nodiscard]] result<std::optional<block>> next();

  [[nodiscard]] const damage& losses() const noexcept;
  [[nodiscard]] std::uint64_t blocks_read() const noexcept;
  [[nodiscard]] std::uint32_t version() const noexcept;
  [[nodiscard]] const byte_source& source() const noexcept;

private:
  struct state;
  explicit block_reader(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

}  // namespace berth::trace::recording
