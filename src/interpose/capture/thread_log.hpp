// SPDX-License-Identifier: Apache-2.0
// The events of one thread on their way to the file: a ring that the thread fills and one drainer
// empties, without locks. A full ring drops events and counts them; the thread never waits.
//
// Invariant: `written_` is moved by the thread alone, `read_` by whoever holds the recorder's drain
// lock. A slot belongs to the thread from the moment when it is behind `read_` + capacity until
// `written_` passes it with release order; then to the drainer, until `read_` passes it likewise.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "interpose/capture/calls.hpp"

namespace berth::interpose {

enum class host_pages : std::uint8_t { unknown, resident, fresh, of_file };

struct raw_event {
  std::uint64_t begin = 0;  // both in ticks (clock.hpp)
  std::uint64_t duration = 0;
  call_id call = call_id::none;
  interpose::host_pages pages = interpose::host_pages::unknown;
  bool has_content = false;
  bool is_fixed = false;  // the copy engine made the copy
  std::int32_t status = 0;
  std::uint32_t stack = 0;      // 0: none
  std::int32_t host_node = -1;  // -1: unknown
  std::uint64_t content = 0;
  std::array<std::uint64_t, call_schema::most> values{};  // in the order of the call's schema
};

// A call site that the thread has met for the first time.
struct raw_stack {
  static constexpr std::size_t most_frames = 30;
  std::uint32_t id = 0;
  std::uint32_t frames = 0;
  std::array<std::uint64_t, most_frames> address{};
};

template <class Slot, std::uint32_t Capacity>
class single_ring {
public:
  static constexpr std::uint32_t capacity = Capacity;

  // The thread's: a slot to fill, or null where there is none.
  [[nodiscard]] Slot* reserve() noexcept {
    const auto written = written_.load(std::memory_order_relaxed);
    return written - read_.load(std::memory_order_acquire) == Capacity
               ? nullptr
               : &slots_[written % Capacity];
  }
  // Hands the reserved slot over, and tells how many wait now.
  std::uint32_t commit() noexcept {
    const auto written = written_.load(std::memory_order_relaxed) + 1;
    written_.store(written, std::memory_order_release);
    return written - read_.load(std::memory_order_relaxed);
  }

  // The drainer's.
  [[nodiscard]] const Slot* front() const noexcept {
    const auto read = read_.load(std::memory_order_relaxed);
    return read == written_.load(std::memory_order_acquire) ? nullptr : &slots_[read % Capacity];
  }
  void pop() noexcept {
    read_.store(read_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Forgets all; only where nobody else can use it.
  void reset() noexcept { read_.store(written_.load()); }

private:
  std::array<Slot, Capacity> slots_{};
  alignas(64) std::atomic<std::uint32_t> written_{0};
  alignas(64) std::atomic<std::uint32_t> read_{0};
};

enum class log_state : std::uint32_t { free, in_use, finished };

struct thread_log {
  single_ring<raw_event, 2048> events;
  single_ring<raw_stack, 64> stacks;

  std::atomic<log_state> state{log_state::free};
  std::uint32_t thread = 0;  // the system's number

  std::atomic<std::uint64_t> dropped{0};  // since the drainer looked

  std::uint64_t last_begin_ns = 0;  // the drainer's: of the last event that it has written

  // The thread's own.
  std::uint64_t began = 0;      // ticks: when it got its log
  std::uint64_t unwinding = 0;  // ticks spent on call sites
  std::uint32_t next_site = 0;  // of its call sites
  std::uint32_t sampled = 0;    // calls since one's site was looked at
  struct known_site {
    std::uintptr_t return_address = 0;
    std::uintptr_t frame = 0;
    std::uint32_t id = 0;
  };
  std::array<known_site, 256> sites{};

  // For another thread: as new. Only where the former one has finished.
  void recycle() noexcept {
    unwinding = 0;
    sampled = 0;
    sites.fill({});
  }
};

}  // namespace berth::interpose
