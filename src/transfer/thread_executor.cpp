// SPDX-License-Identifier: Apache-2.0
#include "transfer/thread_executor.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "transfer/backoff.hpp"

namespace berth::transfer {
namespace {

using runtime::step_outcome;
using steady = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds least_alert = std::chrono::microseconds(50);

// Signals are the program's: its handlers must not run on threads that it does not know.
class blocked_signals {
public:
  blocked_signals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;
  blocked_signals(blocked_signals&&) = delete;
  blocked_signals& operator=(blocked_signals&&) = delete;
  ~blocked_signals() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

private:
  sigset_t former_{};
};

class thread_worker final : public runtime::executor::worker {
public:
  thread_worker(runtime::executor::step what, const std::vector<int>& cpus,
                std::chrono::nanoseconds alert_for)
      : what_(std::move(what)), alert_for_(alert_for) {
    const blocked_signals inherited_by_the_thread;
    thread_ = std::thread([this, cpus] {
      place(cpus);
      run();
    });
  }
  thread_worker(const thread_worker&) = delete;
  thread_worker& operator=(const thread_worker&) = delete;
  thread_worker(thread_worker&&) = delete;
  thread_worker& operator=(thread_worker&&) = delete;
  ~thread_worker() override {
    stopping_.store(true);
    wake();
    thread_.join();
  }

  void wake() noexcept override {
    signals_.fetch_add(1);
    signals_.notify_one();
  }

private:
  static void place(const std::vector<int>& cpus) noexcept {
    pthread_setname_np(pthread_self(), "berth-copy");
    if (cpus.empty()) {
      return;
    }
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    for (const int cpu : cpus) {
      CPU_SET(static_cast<std::size_t>(cpu), &allowed);
    }
    pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
  }

  void run() {
    backoff idle;
    auto woken = steady::now();
    while (true) {
      // Before all else: a wake() from now on, also the destructor's, must not be missed.
      const auto seen = signals_.load();
      if (stopping_.load()) {
        return;
      }
      switch (what_()) {
        case step_outcome::again:
          idle.reset();
          break;
        case step_outcome::poll:
          idle.wait();
          break;
        case step_outcome::sleep:
          idle.reset();
          wait_for_signal(seen, steady::now() - woken);
          woken = steady::now();
          break;
        case step_outcome::finished:
          return;
      }
    }
  }

  // Looking for more costs the CPU, sleeping costs the next copy some tens of microseconds. So it
  // looks in proportion to what it has just worked: that bounds what looking can waste to a share
  // of what copying takes.
  void wait_for_signal(std::uint32_t seen, std::chrono::nanoseconds worked) {
    const auto begin = steady::now();
    const auto until = begin + std::min(alert_for_, std::max(least_alert, 4 * worked));
    while (signals_.load(std::memory_order_relaxed) == seen) {
      const auto now = steady::now();
      if (now > until) {
        signals_.wait(seen);
        return;
      }
      if (now - begin > least_alert) {
        std::this_thread::yield();  // whoever has work goes first
      } else {
        backoff::relax();
      }
    }
  }

  runtime::executor::step what_;
  std::chrono::nanoseconds alert_for_;
  std::atomic<std::uint32_t> signals_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<runtime::executor::worker> thread_executor::start(step what) {
  return std::make_unique<thread_worker>(std::move(what), cpus_, alert_for_);
}

bool thread_executor::wait_until(const std::function<bool()>& done) {
  backoff idle;
  while (!done()) {
    idle.wait();
  }
  return true;
}

}  // namespace berth::transfer
