// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/events.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "emulator/preload/system.hpp"

namespace berth::emulator {
namespace {

constexpr std::uint32_t most_events = 4096;
constexpr std::uint32_t for_ever = 0xffffffff;
constexpr auto patience = std::chrono::seconds(2);

}  // namespace

std::optional<std::uint32_t> event_table::create(kfd::event_type type, reset_rule reset) {
  const std::lock_guard hold(lock_);
  if (events_.size() + 1 >= most_events) {
    return std::nullopt;
  }
  // Numbers index a page of slots, so they stay below its size.
  do {
    last_id_ = last_id_ % (most_events - 1) + 1;
  } while (events_.contains(last_id_));
  events_.emplace(last_id_, event{.type = type, .reset = reset});
  return last_id_;
}

bool event_table::destroy(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  const bool known = events_.erase(id) != 0;
  changed_.notify_all();
  return known;
}

void event_table::set_locked(event& one) {
  ++one.times_set;
  one.set = one.reset == reset_rule::by_program || one.waiters == 0;
  changed_.notify_all();
}

bool event_table::set(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  const auto found = events_.find(id);
  if (found == events_.end()) {
    return false;
  }
  set_locked(found->second);
  return true;
}

bool event_table::reset(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  const auto found = events_.find(id);
  if (found == events_.end()) {
    return false;
  }
  found->second.set = false;
  return true;
}

void event_table::report(kfd::event_data& into, const event& one) {
  if (!exception_ || exception_->kind != one.type) {
    return;
  }
  noticed_ = true;
  if (one.type == kfd::event_type::memory) {
    into.memory = {.not_present = 1,
                   .read_only = 0,
                   .no_execute = 0,
                   .imprecise = 0,
                   .va = exception_->address,
                   .gpu_id = exception_->kfd_id,
                   .error_type = 0};
  } else {
    into.hardware = {
        .reset_type = 0, .reset_cause = 0, .memory_lost = 1, .gpu_id = exception_->kfd_id};
  }
}

wait_outcome event_table::wait(std::span<kfd::event_data> events, wait_rule rule,
                               std::uint32_t timeout_ms) {
  struct wish {
    std::uint64_t times_set;
    bool met;
  };
  std::unique_lock hold(lock_);
  if (!std::all_of(events.begin(), events.end(),
                   [&](const auto& data) { return events_.contains(data.event_id); })) {
    return wait_outcome::unknown_event;
  }
  std::vector<wish> wishes;
  wishes.reserve(events.size());
  for (const auto& data : events) {
    auto& one = events_.at(data.event_id);
    wishes.push_back({one.times_set, one.set});
    one.set = one.set && one.reset == reset_rule::by_program;
    ++one.waiters;
  }
  bool destroyed = false;
  const auto satisfied = [&] {
    std::size_t met = 0;
    for (std::size_t index = 0; index < events.size(); ++index) {
      const auto found = events_.find(events[index].event_id);
      if (found == events_.end()) {
        destroyed = true;
        return true;
      }
      auto& wanted = wishes[index];
      wanted.met = wanted.met || found->second.times_set != wanted.times_set;
      if (wanted.met) {
        report(events[index], found->second);
        ++met;
      }
    }
    return rule == wait_rule::all ? met == events.size() : met > 0;
  };
  bool in_time = true;
  if (timeout_ms == for_ever) {
    changed_.wait(hold, satisfied);
  } else {
    in_time = changed_.wait_for(hold, std::chrono::milliseconds(timeout_ms), satisfied);
  }
  for (const auto& data : events) {
    const auto found = events_.find(data.event_id);
    if (found != events_.end()) {
      --found->second.waiters;
    }
  }
  if (destroyed) {
    return wait_outcome::event_destroyed;
  }
  return in_time ? wait_outcome::signalled : wait_outcome::timed_out;
}

void event_table::raise(const device_exception& what) {
  {
    const std::lock_guard hold(lock_);
    exception_ = what;
    noticed_ = false;
    for (auto& [id, one] : events_) {
      if (one.type == what.kind) {
        set_locked(one);
      }
    }
  }
  std::thread([this] {
    std::unique_lock hold(lock_);
    if (!changed_.wait_for(hold, patience, [this] { return noticed_; })) {
      say("the runtime has not noticed that the device stopped: aborting the program");
      std::abort();
    }
  }).detach();
}

}  // namespace berth::emulator
