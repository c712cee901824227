// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/poller.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace berth::emulator {
namespace {

using std::chrono::microseconds;
using clock_type = std::chrono::steady_clock;

// How long to sleep between two looks, by how long nothing has happened.
struct pace {
  microseconds quiet_for;
  microseconds sleep;
};
constexpr std::array<pace, 4> paces = {{
    {microseconds(200), microseconds(0)},
    {microseconds(2'000), microseconds(30)},
    {microseconds(50'000), microseconds(200)},
    {microseconds(500'000), microseconds(1'000)},
}};
constexpr auto longest_sleep = microseconds(4'000);
// While a queue waits for something that only memory shows.
constexpr auto longest_wait = microseconds(500);

microseconds sleep_after(clock_type::duration quiet, step_outcome outcome) {
  const auto* const fitting = std::find_if(paces.begin(), paces.end(),
                                           [&](const pace& one) { return quiet < one.quiet_for; });
  const auto sleep = fitting == paces.end() ? longest_sleep : fitting->sleep;
  return outcome == step_outcome::waiting ? std::min(sleep, longest_wait) : sleep;
}

}  // namespace

void poller::add(std::unique_ptr<hardware_queue> queue) {
  const std::lock_guard hold(lock_);
  queues_.push_back(std::move(queue));
  wake_ = true;
  if (started_) {
    woken_.notify_one();
    return;
  }
  started_ = true;
  // Signals belong to the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool poller::remove(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  return std::erase_if(queues_, [&](const auto& queue) { return queue->id() == id; }) != 0;
}

bool poller::has(std::uint32_t id) {
  const std::lock_guard hold(lock_);
  return std::any_of(queues_.begin(), queues_.end(),
                     [&](const auto& queue) { return queue->id() == id; });
}

bool poller::empty() {
  const std::lock_guard hold(lock_);
  return queues_.empty();
}

void poller::wake() {
  const std::lock_guard hold(lock_);
  wake_ = true;
  woken_.notify_one();
}

step_outcome poller::step_all() {
  auto best = step_outcome::idle;
  for (const auto& queue : queues_) {
    best = std::max(best, queue->step());
  }
  return best;
}

void poller::run() {
  prctl(PR_SET_NAME, "berth-emulator");
  constexpr unsigned long fine_ns = 1'000;
  prctl(PR_SET_TIMERSLACK, fine_ns);
  auto last_progress = clock_type::now();
  for (;;) {
    std::unique_lock hold(lock_);
    const auto outcome = step_all();
    if (outcome == step_outcome::progressed) {
      last_progress = clock_type::now();
      continue;
    }
    const auto sleep = sleep_after(clock_type::now() - last_progress, outcome);
    if (sleep.count() == 0) {
      hold.unlock();
      sched_yield();
    } else if (woken_.wait_for(hold, sleep, [this] { return wake_; })) {
      last_progress = clock_type::now();
    }
    if (hold.owns_lock()) {
      wake_ = false;
    }
  }
}

}  // namespace berth::emulator
