// SPDX-License-Identifier: Apache-2.0
// Events of the driver, with the kernel's rules: setting an event wakes all who wait for it at that
// moment, and an event that resets itself stays set only if nobody waited.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "emulator/preload/kfd_abi.hpp"

namespace berth::emulator {

enum class reset_rule : std::uint8_t { by_wait, by_program };
enum class wait_rule : std::uint8_t { any, all };

// What a device reports when it stops: an address that it could not reach, or a hang.
struct device_exception {
  kfd::event_type kind = kfd::event_type::memory;
  std::uint64_t address = 0;
  std::uint32_t kfd_id = 0;
};

enum class wait_outcome : std::uint8_t { signalled, timed_out, unknown_event, event_destroyed };

class event_table {
public:
  // Nothing when there are too many.
  std::optional<std::uint32_t> create(kfd::event_type type, reset_rule reset);
  bool destroy(std::uint32_t id);
  bool set(std::uint32_t id);
  bool reset(std::uint32_t id);

  // Blocks until any or all of the events were set, or `timeout_ms` has passed (all ones: for
  // ever). Fills in what the exceptions among them report.
  wait_outcome wait(std::span<kfd::event_data> events, wait_rule rule, std::uint32_t timeout_ms);

  // Reports an exception to all who have an event for it. If nobody takes notice for some time, as
  // happens when AMD's runtime is busy waiting for work of the stopped device, says so and aborts
  // the program, which would wait for ever.
  void raise(const device_exception& what);

private:
  struct event {
    kfd::event_type type;
    reset_rule reset;
    bool set = false;
    std::uint64_t times_set = 0;  // a waiter compares with what it found when it came
    unsigned waiters = 0;
  };

  void set_locked(event& one);
  void report(kfd::event_data& into, const event& one);

  std::mutex lock_;
  std::condition_variable changed_;
  std::map<std::uint32_t, event> events_;
  std::uint32_t last_id_ = 0;
  std::optional<device_exception> exception_;
  bool noticed_ = false;
};

}  // namespace berth::emulator
