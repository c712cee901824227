// SPDX-License-Identifier: Apache-2.0
// Writes events as docs/trace-format.md has them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "interpose/capture/calls.hpp"
#include "interpose/capture/thread_log.hpp"
#include "trace/recording/layout.hpp"

namespace berth::interpose {

// What devices did, and what the recorder says of itself: numbered behind the calls.
enum class record_id : std::uint8_t {
  device_copy,
  device_fill,
  device_kernel,
  device_migration,
  window,
  count
};
inline constexpr auto record_count = static_cast<std::size_t>(record_id::count);

// Where recording begins, or stops.
enum class window_edge : std::uint8_t { end, begin };

// A record of a device, from its profiling interface.
struct device_record {
  record_id what = record_id::device_copy;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t device = 0;
  std::uint64_t stream = 0;
  std::uint64_t bytes = 0;
  std::uint8_t way = 0;         // interpose::way
  std::uint8_t dst_memory = 0;  // named_memory
  std::uint8_t src_memory = 0;
  std::uint32_t name = 0;    // of a kernel: id of its string
  std::uint64_t memory = 0;  // of a migration: address of the pages
  std::uint64_t correlation = 0;
};

// The table of calls, as a block's payload.
void put_calls(trace::recording::byte_writer& to) noexcept;

// One block of events of one thread.
class event_encoder {
public:
  // The most that one event takes.
  static constexpr std::size_t most_event_bytes = 256;

  event_encoder(trace::recording::byte_writer& to, std::uint32_t thread,
                std::uint64_t base) noexcept;
  // Pre: room for most_event_bytes.
  void put(const raw_event& event, std::uint64_t begin_ns, std::uint64_t duration_ns) noexcept;
  void put(const device_record& record) noexcept;
  void put_window(std::uint64_t time, window_edge edge) noexcept;

private:
  void put_head(std::size_t call, std::uint64_t begin, std::uint64_t duration,
                std::uint64_t flags) noexcept;
  void put_value(std::size_t role, std::uint64_t value) noexcept;

  trace::recording::byte_writer& to_;
  trace::recording::event_values values_;
  std::uint64_t begin_;
};

}  // namespace berth::interpose
