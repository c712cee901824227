// SPDX-License-Identifier: Apache-2.0
// What devices did, as their profiling interface reports it, on the way to the file: records, and
// the texts that they refer to. Given from any thread, taken by the drainer; bounded.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "interpose/capture/event_encoder.hpp"
#include "interpose/capture/trace_file.hpp"

namespace berth::interpose {

class device_log {
public:
  device_log() noexcept;

  // Drops and counts where there is no room.
  void add(const device_record& record) noexcept;
  void note_dropped(std::uint64_t records) noexcept;
  // The same text always has the same id; 0 where there is no room.
  [[nodiscard]] std::uint32_t intern(std::string_view text) noexcept;

  // The drainer's: what has come since, or as much of it as fits; false when nothing is left.
  bool take_records(trace::recording::byte_writer& to) noexcept;
  bool take_strings(trace::recording::byte_writer& to) noexcept;
  // And how many records were dropped since.
  [[nodiscard]] std::uint64_t take_dropped() noexcept;
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

  // In the child of a fork.
  void reset() noexcept;

private:
  struct known_text {
    std::uint64_t hash;
    std::uint32_t id;
  };

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  own_memory memory_;
  std::span<device_record> records_;
  std::span<known_text> known_;
  std::span<std::byte> texts_;  // id and string, encoded, not yet written
  std::size_t count_ = 0;
  std::size_t text_bytes_ = 0;
  std::uint32_t last_id_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace berth::interpose
