// SPDX-License-Identifier: Apache-2.0
// The clock of the program's threads. On the virtual clock all threads share one, which their calls
// move on; a step of a worker and a host function have their own for as long as they run, since
// they run beside the rest.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/sim/operation.hpp"
#include "runtime/sim/options.hpp"

namespace berth::runtime::sim {

class host_time {
public:
  explicit host_time(clock_kind kind) noexcept
      : kind_(kind), opened_(std::chrono::steady_clock::now()) {}

  [[nodiscard]] clock_kind kind() const noexcept { return kind_; }

  // The calling thread's time.
  [[nodiscard]] ticks now() const noexcept {
    if (kind_ == clock_kind::wall) {
      return real();
    }
    const auto* const own = scope_of_this_thread();
    return own != nullptr ? own->now_ : shared_.load(std::memory_order_relaxed);
  }
  // The calling thread has spent so much. Nothing on the wall clock, where it does so by itself.
  void spend(ticks amount) noexcept {
    if (auto* const own = scope_of_this_thread(); own != nullptr) {
      own->now_ += amount;
    } else if (kind_ == clock_kind::virtual_time) {
      shared_.fetch_add(amount, std::memory_order_relaxed);
    }
  }
  // The calling thread has waited until then.
  void reach(ticks when) noexcept {
    if (auto* const own = scope_of_this_thread(); own != nullptr) {
      own->now_ = own->now_ < when ? when : own->now_;
      return;
    }
    ticks seen = shared_.load(std::memory_order_relaxed);
    while (seen < when && !shared_.compare_exchange_weak(seen, when, std::memory_order_relaxed)) {
    }
  }
  [[nodiscard]] ticks real() const noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                opened_)
        .count();
  }
  [[nodiscard]] std::chrono::steady_clock::time_point at(ticks when) const noexcept {
    return opened_ + std::chrono::nanoseconds(when);
  }
  // Whether the calling thread has its own clock now.
  [[nodiscard]] bool beside() const noexcept { return scope_of_this_thread() != nullptr; }

  // Gives the calling thread its own clock, which starts at `from`.
  class own_clock {
  public:
    own_clock(host_time& of, ticks from) noexcept : of_(&of), now_(from), outer_(current()) {
      current() = this;
    }
    own_clock(const own_clock&) = delete;
    own_clock& operator=(const own_clock&) = delete;
    own_clock(own_clock&&) = delete;
    own_clock& operator=(own_clock&&) = delete;
    ~own_clock() { current() = outer_; }
    [[nodiscard]] ticks now() const noexcept { return now_; }

  private:
    friend class host_time;
    const host_time* of_;
    ticks now_;
    own_clock* outer_;
  };

private:
  static own_clock*& current() noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread's own
    thread_local own_clock* innermost = nullptr;
    return innermost;
  }
  // The thread may be in a step of another simulated runtime.
  [[nodiscard]] own_clock* scope_of_this_thread() const noexcept {
    auto* own = current();
    while (own != nullptr && own->of_ != this) {
      own = own->outer_;
    }
    return own;
  }

  clock_kind kind_;
  std::chrono::steady_clock::time_point opened_;
  std::atomic<ticks> shared_{0};
};

}  // namespace berth::runtime::sim
