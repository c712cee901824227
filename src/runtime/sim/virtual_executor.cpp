// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/virtual_executor.hpp"

#include <algorithm>
#include <utility>

namespace berth::runtime::sim {
namespace {

constexpr ticks wake_up = 5'000;  // from wake() to the first step: a sleeping thread's
constexpr ticks least_step = 50;  // even an empty step takes some time
constexpr ticks poll_interval = 1'000;

}  // namespace

struct virtual_executor::agent {
  step what;
  ticks due = 0;  // never: asleep
  bool running = false;
  bool woken = false;  // while it was running
  bool stopped = false;
};

class virtual_executor::agent_handle final : public worker {
public:
  agent_handle(virtual_executor& of, std::shared_ptr<agent> one)
      : of_(of), agent_(std::move(one)) {}
  agent_handle(const agent_handle&) = delete;
  agent_handle& operator=(const agent_handle&) = delete;
  agent_handle(agent_handle&&) = delete;
  agent_handle& operator=(agent_handle&&) = delete;
  ~agent_handle() override { of_.stop(agent_); }
  void wake() noexcept override { of_.wake(*agent_); }

private:
  virtual_executor& of_;
  std::shared_ptr<agent> agent_;
};

virtual_executor::virtual_executor(scheduler& of, unsigned cpus)
    : of_(of), cpu_free_at_(std::max(cpus, 1U), 0) {
  of_.attach(this);
}

virtual_executor::~virtual_executor() {
  of_.attach(nullptr);
}

std::unique_ptr<executor::worker> virtual_executor::start(step what) {
  auto made = std::make_shared<agent>();
  made->what = std::move(what);
  const scheduler::lock held(of_.mutex());
  made->due = of_.time().now() + wake_up;
  agents_.push_back(made);
  return std::make_unique<agent_handle>(*this, std::move(made));
}

void virtual_executor::stop(const std::shared_ptr<agent>& one) noexcept {
  scheduler::lock held(of_.mutex());
  one->stopped = true;
  of_.changed().wait(held, [&] { return !one->running; });
  agents_.erase(std::find(agents_.begin(), agents_.end(), one));
}

void virtual_executor::wake(agent& one) noexcept {
  const scheduler::lock held(of_.mutex());
  one.woken = true;
  if (!one.running) {
    one.due = std::min(one.due, of_.time().now() + wake_up);
  }
}

bool virtual_executor::wait_until(const std::function<bool()>& done) {
  while (!done()) {
    scheduler::lock held(of_.mutex());
    if (of_.next(held)) {
      continue;
    }
    const bool runs_elsewhere =
        std::any_of(agents_.begin(), agents_.end(), [](const auto& one) { return one->running; });
    if (!runs_elsewhere) {
      held.unlock();
      return done();  // the last that happened may have been it, on another thread
    }
    of_.changed().wait_for(held, std::chrono::milliseconds(1));
  }
  return true;
}

ticks virtual_executor::start_of(const agent& one) const {
  if (one.due == never || one.running || one.stopped) {
    return never;
  }
  return std::max(one.due, *std::min_element(cpu_free_at_.begin(), cpu_free_at_.end()));
}

ticks virtual_executor::next() const {
  ticks first = never;
  for (const auto& one : agents_) {
    first = std::min(first, start_of(*one));
  }
  return first;
}

void virtual_executor::run_due(scheduler::lock& held, ticks now) {
  std::vector<std::shared_ptr<agent>> due;
  for (const auto& one : agents_) {
    if (start_of(*one) <= now) {
      due.push_back(one);
    }
  }
  if (due.empty()) {
    return;
  }
  // Which one goes first is the seed's to say; the others follow in the next steps.
  const auto chosen = of_.order() == schedule::random ? of_.bits().below(due.size()) : 0;
  const auto earliest = std::min_element(
      due.begin(), due.end(), [](const auto& a, const auto& b) { return a->due < b->due; });
  run(held, of_.order() == schedule::random ? due[chosen] : *earliest);
}

void virtual_executor::run(scheduler::lock& held, const std::shared_ptr<agent>& one) {
  const auto cpu = std::min_element(cpu_free_at_.begin(), cpu_free_at_.end());
  const ticks started = std::max({one->due, *cpu, of_.device_now()});
  one->running = true;
  one->woken = false;
  *cpu = never;  // taken, as long as the step runs
  const auto cpu_index = cpu - cpu_free_at_.begin();
  held.unlock();
  auto outcome = step_outcome::finished;
  ticks ended = started;
  {
    const host_time::own_clock own(of_.time(), started);
    outcome = one->what();
    ended = own.now();
  }
  held.lock();
  ended = std::max(ended, started + least_step);
  if (of_.order() == schedule::random) {
    ended += static_cast<ticks>(of_.bits().below(50'000));  // a busy machine takes CPUs away
  }
  cpu_free_at_[static_cast<std::size_t>(cpu_index)] = ended;
  one->running = false;
  switch (outcome) {
    case step_outcome::again:
      one->due = ended;
      break;
    case step_outcome::poll:
      one->due = ended + poll_interval;
      break;
    case step_outcome::sleep:
      one->due = one->woken ? ended + wake_up : never;
      break;
    case step_outcome::finished:
      one->due = never;
      one->stopped = true;
      break;
  }
  of_.notify();
}

unsigned virtual_executor::busy_at(ticks when) const noexcept {
  unsigned busy = 0;
  for (const ticks free_at : cpu_free_at_) {
    busy += free_at == never || free_at > when ? 1 : 0;
  }
  return busy;
}

}  // namespace berth::runtime::sim
