// SPDX-License-Identifier: Apache-2.0
// What runs when. Operations form a graph: each waits for those before it, then for its lane, then
// takes its time, and its bytes move at its start or its end. Nothing runs but by step().
//
//   virtual clock  the program's own calls run the steps: up to their own time, or until what they
//                  wait for has come.
//   wall clock     a thread of the scheduler runs the steps when their time has come.
//
// One mutex guards all of it. It is released while bytes move on the wall clock, and while code of
// the program runs.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/sim/costs.hpp"
#include "runtime/sim/host_time.hpp"
#include "runtime/sim/operation.hpp"
#include "runtime/sim/random_bits.hpp"

namespace berth::runtime::sim {

inline constexpr ticks never = std::numeric_limits<ticks>::max();

class scheduler {
public:
  using lock = std::unique_lock<std::mutex>;

  // What an operation means to the rest of the simulator. Called with the mutex held.
  class observer {
  public:
    observer() = default;
    observer(const observer&) = delete;
    observer& operator=(const observer&) = delete;
    observer(observer&&) = delete;
    observer& operator=(observer&&) = delete;
    virtual ~observer() = default;
    // It is about to start: what does it take, alone? It may be made slow or corrupt here.
    virtual running_cost starts(operation& what) = 0;
    // It has ended, its bytes have moved.
    virtual void ended(const operation& what) = 0;
    // It works on memory that is not there any more. The device is lost afterwards.
    virtual void faulted(const operation& what, const memory_range& where) = 0;
  };

  // Other things with a time of their own.
  class agenda {
  public:
    agenda() = default;
    agenda(const agenda&) = delete;
    agenda& operator=(const agenda&) = delete;
    agenda(agenda&&) = delete;
    agenda& operator=(agenda&&) = delete;
    virtual ~agenda() = default;
    [[nodiscard]] virtual ticks next() const = 0;
    // Does what is due; may release the lock.
    virtual void run_due(lock& held, ticks now) = 0;
  };

  scheduler(const options& how, costs& cost, observer& told, int devices);
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;
  scheduler(scheduler&&) = delete;
  scheduler& operator=(scheduler&&) = delete;
  ~scheduler();

  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }
  [[nodiscard]] host_time& time() noexcept { return time_; }
  [[nodiscard]] const host_time& time() const noexcept { return time_; }
  // The devices' time: of the last thing that has happened.
  [[nodiscard]] ticks device_now() const noexcept { return now_; }
  void attach(agenda* what) noexcept { agenda_ = what; }

  // --- All of the following with the mutex held ---

  // Queues it after those that are named and have not run.
  void submit(const std::shared_ptr<operation>& what, std::span<const std::uint64_t> after);

  // Virtual clock: everything happens that should have, up to the calling thread's time.
  void catch_up(lock& held);
  // Until it has run. The calling thread's time is then not before its end.
  void wait(lock& held, const operation& what);
  // The next thing happens, whatever its time, and the calling thread has waited for it. False
  // where there is none. Virtual clock only.
  bool next(lock& held);
  // One look at what has not run yet: late operations come nearer.
  void asked_for(std::uint64_t number);

  // Everything of the device that has not run never will.
  void lose(int device);
  [[nodiscard]] bool lost(int device) const { return lost_[static_cast<std::size_t>(device)]; }

  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size(); }
  [[nodiscard]] bool is_pending(std::uint64_t number) const { return pending_.contains(number); }

  // Guards coarse-grained memory while bytes move on the wall clock.
  [[nodiscard]] std::mutex& bytes_mutex() noexcept { return bytes_mutex_; }
  // Wakes who waits for a change: workers that have ended, for one.
  void notify() { changed_.notify_all(); }
  [[nodiscard]] std::condition_variable& changed() noexcept { return changed_; }
  [[nodiscard]] random_bits& bits() noexcept { return bits_; }
  [[nodiscard]] schedule order() const noexcept { return how_.order; }

private:
  // Only one thread runs steps; a step may lead to another on the same thread.
  class turn;

  bool step(lock& held, ticks limit);
  bool start_all_ready(lock& held);
  [[nodiscard]] std::shared_ptr<operation> pick_ready();
  void start(lock& held, const std::shared_ptr<operation>& what);
  void start_host_function(lock& held, const std::shared_ptr<operation>& what);
  void move_bytes(lock& held, operation& what, moment now);
  void finish_due(lock& held);
  void finish(lock& held, const std::shared_ptr<operation>& what);
  void become_ready(operation& what);
  void drop(const std::shared_ptr<operation>& what);
  void progress(ticks to);
  [[nodiscard]] ticks next_time() const;
  [[nodiscard]] static ticks end_of(const operation& one, ticks now);
  [[nodiscard]] bool lane_is_free(const operation& what) const;
  [[nodiscard]] unsigned& lane_count_of(const operation& what);
  [[nodiscard]] bool may_poison_now(const operation& what) const;
  void disturb(operation& what);
  void run_on_wall_clock();
  void run_host_functions();

  struct host_job {
    std::shared_ptr<operation> what;
    ticks started;
  };

  const options how_;
  costs& cost_;
  observer& told_;
  agenda* agenda_ = nullptr;
  host_time time_;
  random_bits bits_;

  std::mutex mutex_;
  std::mutex bytes_mutex_;
  std::condition_variable changed_;

  ticks now_ = 0;
  std::uint64_t submitted_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<operation>> pending_;
  std::vector<std::shared_ptr<operation>> ready_;
  std::vector<std::shared_ptr<operation>> running_;
  std::vector<std::array<unsigned, lane_count>> lanes_;  // by device and lane: how many run
  std::vector<bool> lost_;
  unsigned holding_ = 0;  // pending operations that the host decides about
  bool rates_known_ = true;
  bool stopping_ = false;

  std::optional<std::thread::id> whose_turn_;
  std::deque<host_job> host_jobs_;
  unsigned host_jobs_open_ = 0;
  std::thread host_thread_;  // runs the program's functions
  std::thread wall_thread_;
};

}  // namespace berth::runtime::sim
