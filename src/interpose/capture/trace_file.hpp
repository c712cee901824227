// SPDX-License-Identifier: Apache-2.0
// The file that a recording goes to. It lives in a program that knows nothing of it, so it takes no
// memory but its own, holds on to no descriptor that the program may have closed, and raises no
// signal. A block is in the file as a whole or not at all, unless the process is killed meanwhile.
#pragma once

#include <sys/types.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "interpose/capture/settings.hpp"
#include "trace/recording/layout.hpp"

namespace berth::interpose {

// Memory from the system, given back at the end; empty where there is none.
class own_memory {
public:
  explicit own_memory(std::size_t bytes) noexcept;
  ~own_memory();
  own_memory(const own_memory&) = delete;
  own_memory& operator=(const own_memory&) = delete;
  own_memory(own_memory&&) = delete;
  own_memory& operator=(own_memory&&) = delete;

  [[nodiscard]] std::span<std::byte> all() const noexcept { return all_; }

private:
  std::span<std::byte> all_;
};

enum class file_state : std::uint8_t { closed, open, failed };

class trace_file {
public:
  // The most of one block's payload.
  static constexpr std::size_t most_payload = std::size_t{256} << 10;

  trace_file() noexcept;
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;
  trace_file(trace_file&&) = delete;
  trace_file& operator=(trace_file&&) = delete;
  ~trace_file();

  // Creates a file of a name that is still free. Pre: closed.
  bool create(const settings& how) noexcept;
  // For payloads: one block at a time.
  [[nodiscard]] trace::recording::byte_writer payload() noexcept;
  // Compressed where that makes it smaller. A block that cannot be written is taken back, and the
  // file is failed from then on: in its place stands an end that says why, if there is room for
  // that.
  bool write(trace::recording::block_type type, std::span<const std::byte> payload) noexcept;
  void close() noexcept;
  // In the child of a fork: the file is the parent's.
  void abandon() noexcept;

  [[nodiscard]] file_state state() const noexcept { return state_; }
  [[nodiscard]] int failure() const noexcept { return failure_; }  // errno
  [[nodiscard]] const char* path() const noexcept { return path_.data(); }

private:
  [[nodiscard]] bool is_still_ours() const noexcept;
  [[nodiscard]] bool reopen() noexcept;
  [[nodiscard]] bool write_all(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::span<const std::byte> compressed(std::span<const std::byte> payload) noexcept;
  bool fail(int why) noexcept;
  void put_farewell(int why) noexcept;

  own_memory memory_;
  void* compressor_ = nullptr;  // ZSTD_CCtx in memory_
  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t end_ = 0;
  std::uint32_t sequence_ = 0;
  file_state state_ = file_state::closed;
  int failure_ = 0;
  std::array<char, settings::most_path> path_{};
};

}  // namespace berth::interpose
