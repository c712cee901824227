// SPDX-License-Identifier: Apache-2.0
#include "memory/stream_state.hpp"

#include <algorithm>
#include <utility>

namespace berth::memory {

stream_state::stream_state(runtime::driver& gpu, int device, runtime::stream_handle handle,
                           const gate_clock& clock)
    : gpu_(gpu), device_(device), handle_(handle), clock_(clock) {}

stream_state::~stream_state() {
  if (has_event_) {
    static_cast<void>(gpu_.destroy_event(event_));  // after shutdown there is nothing to free
  }
}

result<void> stream_state::record() {
  const std::scoped_lock lock(mutex_);
  return record_now();
}

result<void> stream_state::record_now() {
  // Read before recording: a free that gets a later number may have queued its work later, too.
  const auto number = clock_.load(std::memory_order_acquire);
  const auto scope = runtime::scoped_device::make(gpu_, device_);
  if (!scope) {
    return scope.error();
  }
  if (!has_event_) {
    auto made = gpu_.create_event(device_);
    if (!made) {
      return made.error();
    }
    event_ = *made;
    has_event_ = true;
  }
  if (auto recorded = gpu_.record_event(event_, handle_); !recorded) {
    return recorded;
  }
  recorded_ = number;
  return {};
}

result<void> stream_state::cover(std::uint64_t number) {
  if (recorded_ >= number) {
    return {};
  }
  if (retired_) {
    return drain_device();
  }
  if (auto recorded = record_now(); !recorded) {
    // The stream may have been destroyed behind our back.
    return drain_device();
  }
  return {};
}

result<void> stream_state::drain_device() {
  const auto number = clock_.load(std::memory_order_acquire);
  if (auto done = gpu_.synchronize_device(device_); !done) {
    return done;
  }
  recorded_ = std::max(recorded_, number);
  completed_.store(recorded_, std::memory_order_release);
  return {};
}

result<void> stream_state::poll(std::uint64_t number) {
  if (is_past(number)) {
    return {};
  }
  const std::scoped_lock lock(mutex_);
  if (auto covered = cover(number); !covered) {
    return covered;
  }
  if (is_past(number)) {
    return {};
  }
  const auto state = gpu_.query_event(event_);
  if (!state) {
    return state.error();
  }
  if (*state == runtime::progress::complete) {
    completed_.store(recorded_, std::memory_order_release);
  }
  return {};
}

result<void> stream_state::wait_for(std::uint64_t number) {
  if (is_past(number)) {
    return {};
  }
  const std::scoped_lock lock(mutex_);
  if (auto covered = cover(number); !covered) {
    return covered;
  }
  if (is_past(number)) {
    return {};
  }
  if (auto done = gpu_.synchronize_event(event_); !done) {
    return done;
  }
  completed_.store(recorded_, std::memory_order_release);
  return {};
}

result<void> stream_state::hold_back(runtime::stream_handle other, std::uint64_t number) {
  if (is_past(number)) {
    return {};
  }
  const std::scoped_lock lock(mutex_);
  if (auto covered = cover(number); !covered) {
    return covered;
  }
  return is_past(number) ? result<void>() : gpu_.wait_event(other, event_);
}

result<void> stream_state::retire() {
  const std::scoped_lock lock(mutex_);
  auto recorded = record_now();
  retired_ = true;
  return recorded ? recorded : drain_device();
}

stream_ledger::entry* stream_ledger::find(runtime::stream_handle handle) {
  const auto owner =
      handle == runtime::per_thread_stream ? std::this_thread::get_id() : std::thread::id();
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const entry& one) {
    return one.current && one.handle == handle && one.owner == owner;
  });
  return found != entries_.end() ? &*found : nullptr;
}

stream_state* stream_ledger::find_or_add(runtime::stream_handle handle) {
  const std::scoped_lock lock(mutex_);
  if (auto* const known = find(handle)) {
    return known->state.get();
  }
  const auto owner =
      handle == runtime::per_thread_stream ? std::this_thread::get_id() : std::thread::id();
  entries_.push_back(
      {handle, owner, true, std::make_unique<stream_state>(gpu_, device_, handle, clock_)});
  return entries_.back().state.get();
}

stream_state* stream_ledger::forget(runtime::stream_handle handle) {
  const std::scoped_lock lock(mutex_);
  auto* const known = find(handle);
  if (known == nullptr) {
    return nullptr;
  }
  known->current = false;
  return known->state.get();
}

std::vector<stream_state*> stream_ledger::all() {
  const std::scoped_lock lock(mutex_);
  std::vector<stream_state*> states;
  for (const auto& one : entries_) {
    states.push_back(one.state.get());
  }
  return states;
}

}  // namespace berth::memory
