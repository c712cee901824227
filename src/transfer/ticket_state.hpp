// SPDX-License-Identifier: Apache-2.0
// What a ticket stands for: a copy under way, of one of several sorts. Shared by the ticket and by
// whoever carries the copy.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "berth/copy_engine.hpp"
#include "berth/result.hpp"
#include "runtime/driver.hpp"

namespace berth::transfer {

class ticket_state {
public:
  ticket_state() = default;
  ticket_state(const ticket_state&) = delete;
  ticket_state& operator=(const ticket_state&) = delete;
  ticket_state(ticket_state&&) = delete;
  ticket_state& operator=(ticket_state&&) = delete;
  virtual ~ticket_state() = default;

  [[nodiscard]] virtual bool is_done() = 0;
  [[nodiscard]] virtual result<copy_stats> wait() = 0;
  [[nodiscard]] virtual copy_stats stats() = 0;
};

// What keeps the ends of a copy alive.
struct end_owners {
  std::shared_ptr<const void> source;
  std::shared_ptr<const void> destination;
};

// Takes over what a dropped ticket must keep until its copy has ended.
class orphanage {
public:
  orphanage() = default;
  orphanage(const orphanage&) = delete;
  orphanage& operator=(const orphanage&) = delete;
  orphanage(orphanage&&) = delete;
  orphanage& operator=(orphanage&&) = delete;
  virtual ~orphanage() = default;
  virtual void adopt(runtime::event_handle event, end_owners owners) = 0;
};

// Whether the work before the event's record has ended: also with an error, but not where only the
// question has failed.
[[nodiscard]] bool has_ended(runtime::driver& gpu, runtime::event_handle event);

// A copy that ends when a stream has come so far.
class stream_ticket final : public ticket_state {
public:
  // `home` keeps `of` alive. The event is the ticket's.
  stream_ticket(std::shared_ptr<orphanage> home, runtime::driver& of, int device,
                runtime::event_handle event, copy_plan plan, end_owners owners);
  ~stream_ticket() override;
  stream_ticket(const stream_ticket&) = delete;
  stream_ticket& operator=(const stream_ticket&) = delete;
  stream_ticket(stream_ticket&&) = delete;
  stream_ticket& operator=(stream_ticket&&) = delete;

  [[nodiscard]] runtime::event_handle event() const noexcept { return event_; }
  bool is_done() override;
  result<copy_stats> wait() override;
  copy_stats stats() override;

private:
  std::shared_ptr<orphanage> home_;
  runtime::driver& gpu_;
  int device_;
  runtime::event_handle event_;
  copy_stats stats_;
  end_owners owners_;
  std::chrono::nanoseconds begun_;
  std::mutex mutex_;  // guards stats_ and owners_; never held during a GPU call
};

// A small copy that was left to the runtime, of which nothing was asked: what it is between is
// found out only when somebody waits. Pageable ends are done when the runtime returns; others when
// the stream has come so far.
class deferred_ticket final : public ticket_state {
public:
  deferred_ticket(std::shared_ptr<void> home, runtime::driver& of, copy_plan plan, copy_range ends,
                  runtime::stream_handle stream)
      : home_(std::move(home)), gpu_(of), stats_{.plan = plan}, ends_(ends), stream_(stream) {}
  bool is_done() override;
  result<copy_stats> wait() override;
  copy_stats stats() override { return stats_; }

private:
  [[nodiscard]] bool has_pageable_end();

  std::shared_ptr<void> home_;
  runtime::driver& gpu_;
  copy_stats stats_;
  copy_range ends_;
  runtime::stream_handle stream_;
};

// Several as one.
class joint_ticket final : public ticket_state {
public:
  joint_ticket(std::vector<std::shared_ptr<ticket_state>> parts, copy_plan plan)
      : parts_(std::move(parts)), plan_(plan) {}
  bool is_done() override;
  result<copy_stats> wait() override;
  copy_stats stats() override;

private:
  std::vector<std::shared_ptr<ticket_state>> parts_;
  copy_plan plan_;
};

// A copy through the ring. Whoever carries it calls finish() once.
class staged_ticket final : public ticket_state {
public:
  // `wait_until` blocks until its argument says so: the engine's way of waiting.
  using waiter = std::function<bool(const std::function<bool()>&)>;
  staged_ticket(copy_plan plan, end_owners owners, waiter wait_until);

  bool is_done() override { return done_.load(std::memory_order_acquire); }
  result<copy_stats> wait() override;
  copy_stats stats() override;
  void finish(const copy_stats& stats, std::optional<error> failure);

private:
  std::atomic<bool> done_{false};
  std::mutex mutex_;  // guards the rest until done_
  copy_stats stats_;
  std::optional<error> failure_;
  end_owners owners_;
  waiter wait_until_;
};

}  // namespace berth::transfer
