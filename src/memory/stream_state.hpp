// SPDX-License-Identifier: Apache-2.0
// How far a stream has come, as pools need to know it: may memory that the stream's work used go to
// somebody else?
//
// Every free that enters a heap gets the next number of the pool's clock. A stream's work up to a
// number is done when an event that was recorded after that number was given out has completed. The
// event is recorded only when somebody asks: frees that meet their own stream again cost no event.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "berth/result.hpp"
#include "runtime/driver.hpp"

namespace berth::memory {

// Numbers frees. Shared by the streams of one pool.
using gate_clock = std::atomic<std::uint64_t>;

class stream_state {
public:
  stream_state(runtime::driver& gpu, int device, runtime::stream_handle handle,
               const gate_clock& clock);
  ~stream_state();
  stream_state(const stream_state&) = delete;
  stream_state& operator=(const stream_state&) = delete;

  [[nodiscard]] runtime::stream_handle handle() const noexcept { return handle_; }

  // Whether all work up to `number` is known to be done. Makes no GPU call.
  [[nodiscard]] bool is_past(std::uint64_t number) const noexcept {
    return completed_.load(std::memory_order_acquire) >= number;
  }
  // Records an event now that covers all frees so far.
  result<void> record();
  // Finds out how far the stream is; does not block. @errors those of the stream's work
  result<void> poll(std::uint64_t number);
  // Blocks until all work up to `number` is done.
  result<void> wait_for(std::uint64_t number);
  // Lets later work of `other` wait for all work up to `number`; does not block.
  result<void> hold_back(runtime::stream_handle other, std::uint64_t number);
  // The stream is about to be destroyed: what it has queued is the last.
  result<void> retire();

private:
  // Needs mutex_. An event exists that covers `number`.
  result<void> cover(std::uint64_t number);
  result<void> record_now();
  // Where no event can be had: after this everything is done.
  result<void> drain_device();

  runtime::driver& gpu_;
  const int device_;
  const runtime::stream_handle handle_;
  const gate_clock& clock_;
  // Guards the event. GPU calls are made under it; no allocation that finds its block takes it.
  std::mutex mutex_;
  runtime::event_handle event_{};
  bool has_event_ = false;
  bool retired_ = false;
  std::uint64_t recorded_ = 0;  // the event covers frees up to this number
  std::atomic<std::uint64_t> completed_{0};
};

// The streams that a pool has met. A thread's own default stream is one stream per thread.
class stream_ledger {
public:
  stream_ledger(runtime::driver& gpu, int device) : gpu_(gpu), device_(device) {}

  // Never null; lives as long as the ledger. May throw std::bad_alloc.
  [[nodiscard]] stream_state* find_or_add(runtime::stream_handle handle);
  // The next find_or_add of this handle gives a new state. Null if the handle was never met.
  stream_state* forget(runtime::stream_handle handle);
  [[nodiscard]] std::vector<stream_state*> all();
  // The number for a free that happens now.
  [[nodiscard]] std::uint64_t next_number() noexcept {
    return clock_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }

private:
  struct entry {
    runtime::stream_handle handle;
    std::thread::id owner;  // of a per-thread stream; else none
    bool current;
    std::unique_ptr<stream_state> state;
  };
  [[nodiscard]] entry* find(runtime::stream_handle handle);

  runtime::driver& gpu_;
  const int device_;
  gate_clock clock_{0};
  std::mutex mutex_;
  std::vector<entry> entries_;
};

}  // namespace berth::memory
