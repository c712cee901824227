// SPDX-License-Identifier: Apache-2.0
#include "transfer/ticket_state.hpp"

#include <algorithm>
#include <utility>

#include "transfer/gpu_scope.hpp"

namespace berth::transfer {

bool has_ended(runtime::driver& gpu, runtime::event_handle event) {
  const auto state = gpu.query_event(event);
  if (state) {
    return *state == runtime::progress::complete;
  }
  return state.error().code() == errc::gpu_device_lost ||
         state.error().code() == errc::gpu_shut_down;
}

// --- stream_ticket ------------------------------------------------------------------------------

stream_ticket::stream_ticket(std::shared_ptr<orphanage> home, runtime::driver& of, int device,
                             runtime::event_handle event, copy_plan plan, end_owners owners)
    : home_(std::move(home)),
      gpu_(of),
      device_(device),
      event_(event),
      stats_{.plan = plan, .blocks = 1},
      owners_(std::move(owners)),
      begun_(of.now()) {}

stream_ticket::~stream_ticket() {
  if (owners_.source || owners_.destination) {
    home_->adopt(event_, std::move(owners_));
  } else {
    static_cast<void>(gpu_.destroy_event(event_));
  }
}

bool stream_ticket::is_done() {
  const auto scope = gpu_scope::enter(gpu_, device_);
  return scope && has_ended(gpu_, event_);
}

result<copy_stats> stream_ticket::wait() {
  {
    const auto scope = gpu_scope::enter(gpu_, device_);
    if (!scope) {
      return scope.error();
    }
    if (auto done = gpu_.synchronize_event(event_); !done) {
      return done.error();
    }
  }
  const std::scoped_lock lock(mutex_);
  if (stats_.total.count() == 0) {
    stats_.total = gpu_.now() - begun_;
  }
  owners_ = {};
  return stats_;
}

copy_stats stream_ticket::stats() {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

// --- deferred_ticket ----------------------------------------------------------------------------

bool deferred_ticket::has_pageable_end() {
  const auto is_pageable_now = [this](const void* memory) {
    const auto found = gpu_.classify(memory);
    return found && found->kind == memory_kind::pageable;
  };
  return is_pageable_now(ends_.src) || is_pageable_now(ends_.dst);
}

bool deferred_ticket::is_done() {
  if (has_pageable_end()) {
    return true;
  }
  const auto state = gpu_.query_stream(stream_);
  return !state || *state == runtime::progress::complete;
}

result<copy_stats> deferred_ticket::wait() {
  if (!has_pageable_end()) {
    if (auto done = gpu_.synchronize_stream(stream_); !done) {
      return done.error();
    }
  }
  return stats_;
}

// --- joint_ticket -------------------------------------------------------------------------------

bool joint_ticket::is_done() {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& one) { return one->is_done(); });
}

result<copy_stats> joint_ticket::wait() {
  std::optional<error> first;
  for (const auto& one : parts_) {
    if (auto done = one->wait(); !done && !first) {
      first = done.error();
    }
  }
  if (first) {
    return *first;
  }
  return stats();
}

copy_stats joint_ticket::stats() {
  copy_stats sum{.plan = plan_};
  for (const auto& one : parts_) {
    const auto part = one->stats();
    sum.blocks += part.blocks;
    sum.total = std::max(sum.total, part.total);
    sum.waiting_for_fill += part.waiting_for_fill;
    sum.waiting_for_link += part.waiting_for_link;
  }
  return sum;
}

// --- staged_ticket ------------------------------------------------------------------------------

staged_ticket::staged_ticket(copy_plan plan, end_owners owners, waiter wait_until)
    : stats_{.plan = plan}, owners_(std::move(owners)), wait_until_(std::move(wait_until)) {}

result<copy_stats> staged_ticket::wait() {
  if (!is_done() && !wait_until_([this] { return is_done(); })) {
    return error(
        errc::internal,
        "a copy that nobody carries on: its engine is the parent process's, or it stands still",
        "ticket::wait");
  }
  const std::scoped_lock lock(mutex_);
  if (failure_) {
    return *failure_;
  }
  return stats_;
}

copy_stats staged_ticket::stats() {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

void staged_ticket::finish(const copy_stats& stats, std::optional<error> failure) {
  end_owners released;
  {
    const std::scoped_lock lock(mutex_);
    stats_ = stats;
    failure_ = std::move(failure);
    released = std::exchange(owners_, {});
  }
  done_.store(true, std::memory_order_release);
  // The owners go after that, outside the lock: their destructors are the program's.
}

}  // namespace berth::transfer
