// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/sim/effects.hpp"
#include "runtime/sim/sharing.hpp"

namespace berth::runtime::sim {
namespace {

constexpr double nothing_left = 1e-3;  // ns

// Late operations start by themselves after so long.
constexpr ticks patience = 5'000'000;
// How much nearer each look at one brings it.
constexpr ticks nearer = 250'000;
// A host function that has not returned by then is taken to wait for something.
constexpr std::chrono::milliseconds host_function_grace{100};
// How often a spinning kernel looks at its word, on the wall clock.
constexpr ticks spin_interval = 20'000;
// Beyond this, looking for overlaps at each submission would cost too much.
constexpr std::size_t most_compared = 256;

constexpr std::array<unsigned, lane_count> usual_capacity{
    ~0U, 1, 1, 4, 4, 32, ~0U,
};

bool is_released(const kernel_spin& spin) noexcept {
  if (spin.release == nullptr) {
    return false;
  }
  // atomic_ref takes no const, and only reads
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  std::atomic_ref<std::uint32_t> word(*const_cast<std::uint32_t*>(spin.release));
  return word.load(std::memory_order_acquire) != 0;
}

}  // namespace

class scheduler::turn {
public:
  explicit turn(scheduler& of) : of_(of), outer_(of.whose_turn_) {
    of_.whose_turn_ = std::this_thread::get_id();
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  turn(turn&&) = delete;
  turn& operator=(turn&&) = delete;
  ~turn() {
    of_.whose_turn_ = outer_;
    of_.changed_.notify_all();
  }
  [[nodiscard]] static bool is_of_another(const scheduler& of) {
    return of.whose_turn_ && *of.whose_turn_ != std::this_thread::get_id();
  }

private:
  scheduler& of_;
  std::optional<std::thread::id> outer_;
};

scheduler::scheduler(const options& how, costs& cost, observer& told, int devices)
    : how_(how),
      cost_(cost),
      told_(told),
      time_(how.clock),
      bits_(how.seed),
      lanes_(static_cast<std::size_t>(devices)),
      lost_(static_cast<std::size_t>(devices), false) {
  if (how_.clock == clock_kind::wall) {
    wall_thread_ = std::thread([this] { run_on_wall_clock(); });
  }
}

scheduler::~scheduler() {
  {
    const lock held(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (wall_thread_.joinable()) {
    wall_thread_.join();
  }
  if (host_thread_.joinable()) {
    host_thread_.join();
  }
}

// --- Queueing -------------------------------------------------------------------------------

void scheduler::submit(const std::shared_ptr<operation>& what,
                       std::span<const std::uint64_t> after) {
  what->number = ++submitted_;
  what->submitted = time_.now();
  what->eligible = what->submitted;
  disturb(*what);
  for_ranges(what->what, [](const memory_range& range) {
    if (range.of != nullptr) {
      ++range.of->in_use;
    }
  });
  for (const auto earlier : after) {
    const auto found = pending_.find(earlier);
    if (found != pending_.end() &&
        std::find(what->after.begin(), what->after.end(), earlier) == what->after.end()) {
      found->second->before.push_back(what->number);
      what->after.push_back(earlier);
    }
  }
  what->poison_when_ready = how_.data == data_effects::carried;
  if (what->poison_when_ready && may_poison_now(*what)) {
    poison_results(*what);
    what->poison_when_ready = false;
  }
  const bool holds =
      spin_of(*what) != nullptr || std::holds_alternative<host_work_call>(what->what);
  holding_ += holds ? 1 : 0;
  pending_.emplace(what->number, what);
  if (what->after.empty()) {
    become_ready(*what);
  }
  changed_.notify_all();
}

// A result may become poison as soon as the operation could run. That is now, unless something
// still uses the bytes, or the program itself decides when an earlier operation goes on.
bool scheduler::may_poison_now(const operation& what) const {
  if (what.after.empty()) {
    return true;
  }
  if (holding_ > 0 || pending_.size() > most_compared) {
    return false;
  }
  const auto* const result = host_result_of(what);
  bool is_free = true;
  for (const auto& [number, other] : pending_) {
    for_ranges(other->what, [&](const memory_range& used) {
      is_free = is_free && (result == nullptr || !overlap(*result, used));
    });
  }
  return is_free;
}

// The schedule's share: how long it waits, how long it takes, when its bytes move.
void scheduler::disturb(operation& what) {
  switch (how_.order) {
    case schedule::modelled:
      break;
    case schedule::early:
      what.stretch = 1e-3;
      what.bytes_move = moment::start;
      break;
    case schedule::late:
      what.eligible += patience;
      break;
    case schedule::random:
      what.eligible += bits_.below(2) == 0 ? 0 : static_cast<ticks>(bits_.log_uniform(10, 1e6));
      what.stretch = bits_.log_uniform(0.05, 20);
      what.bytes_move = static_cast<moment>(bits_.below(3));
      break;
  }
}

void scheduler::become_ready(operation& what) {
  what.state = operation_state::ready;
  if (what.poison_when_ready) {
    poison_results(what);
    what.poison_when_ready = false;
  }
  ready_.push_back(pending_.at(what.number));
}

void scheduler::asked_for(std::uint64_t number) {
  if (how_.order != schedule::late) {
    return;
  }
  std::vector<std::uint64_t> open{number};
  while (!open.empty()) {
    const auto found = pending_.find(open.back());
    open.pop_back();
    if (found != pending_.end()) {
      found->second->eligible -= nearer;
      open.insert(open.end(), found->second->after.begin(), found->second->after.end());
    }
  }
}

// --- Time -----------------------------------------------------------------------------------

void scheduler::catch_up(lock& held) {
  if (how_.clock == clock_kind::wall || time_.beside() || turn::is_of_another(*this)) {
    return;
  }
  const turn mine(*this);
  while (step(held, time_.now())) {
  }
}

void scheduler::wait(lock& held, const operation& what) {
  const auto is_done = [&] { return what.state == operation_state::done || stopping_; };
  if (how_.clock == clock_kind::wall) {
    changed_.wait(held, is_done);
    return;
  }
  if (how_.order == schedule::late) {
    std::vector<std::uint64_t> wanted{what.number};
    while (!wanted.empty()) {
      const auto found = pending_.find(wanted.back());
      wanted.pop_back();
      if (found != pending_.end()) {
        found->second->eligible = std::min(found->second->eligible, now_);
        wanted.insert(wanted.end(), found->second->after.begin(), found->second->after.end());
      }
    }
  }
  while (!is_done()) {
    if (!next(held)) {
      changed_.wait_for(held, host_function_grace);  // another thread may queue what is missing
    }
  }
  time_.reach(what.ended);
}

bool scheduler::next(lock& held) {
  if (turn::is_of_another(*this)) {
    changed_.wait(held);
    return true;
  }
  {
    const turn mine(*this);
    if (!step(held, never)) {
      if (host_jobs_open_ == 0) {
        return false;
      }
      // Only a host function can change anything, and it takes real time.
      changed_.wait_for(held, host_function_grace);
    }
  }
  time_.reach(now_);
  return true;
}

// What is ready starts; or else the next thing happens, if its time is not after `limit`. False
// where neither can be.
bool scheduler::step(lock& held, ticks limit) {
  if (start_all_ready(held)) {
    return true;
  }
  const ticks due = next_time();
  if (due > limit || due == never) {
    if (limit != never && limit > now_) {
      progress(limit);
    }
    return false;
  }
  progress(due);
  finish_due(held);
  if (agenda_ != nullptr && agenda_->next() <= now_) {
    agenda_->run_due(held, now_);
  }
  return true;
}

ticks scheduler::end_of(const operation& one, ticks now) {
  if (const auto* const spin = spin_of(one)) {
    return is_released(*spin) ? now : one.deadline;
  }
  const double left = one.fixed_left + (one.flow_left > 0 ? one.flow_left / one.rate : 0.0);
  if (!(left < 9e18)) {
    return never;
  }
  return left <= nothing_left ? now : now + static_cast<ticks>(std::ceil(left));
}

ticks scheduler::next_time() const {
  ticks first = agenda_ == nullptr ? never : agenda_->next();
  for (const auto& one : running_) {
    first = std::min(first, end_of(*one, now_));
    if (how_.clock == clock_kind::wall && spin_of(*one) != nullptr) {
      first = std::min(first, now_ + spin_interval);
    }
  }
  for (const auto& one : ready_) {
    if (lane_is_free(*one)) {
      first = std::min(first, std::max(one->eligible, now_));
    }
  }
  return first == never ? never : std::max(first, now_);
}

void scheduler::progress(ticks to) {
  if (!rates_known_) {
    share(running_, cost_);
    rates_known_ = true;
  }
  for (const auto& one : running_) {
    auto passed = static_cast<double>(to - now_);
    const double fixed = std::min(passed, one->fixed_left);
    one->fixed_left -= fixed;
    passed -= fixed;
    one->flow_left = std::max(0.0, one->flow_left - passed * one->rate);
  }
  now_ = std::max(now_, to);
}

// --- Running --------------------------------------------------------------------------------

unsigned& scheduler::lane_count_of(const operation& what) {
  return lanes_[static_cast<std::size_t>(what.device)][static_cast<std::size_t>(what.where)];
}

bool scheduler::lane_is_free(const operation& what) const {
  const auto index = static_cast<std::size_t>(what.where);
  const bool by_model = what.where == lane::to_device || what.where == lane::to_host;
  const unsigned capacity = by_model ? cost_.engines_per_direction() : usual_capacity[index];
  return lanes_[static_cast<std::size_t>(what.device)][index] < capacity;
}

std::shared_ptr<operation> scheduler::pick_ready() {
  std::vector<std::size_t> best;
  for (std::size_t index = 0; index < ready_.size(); ++index) {
    const auto& one = *ready_[index];
    if (one.eligible > now_ || !lane_is_free(one)) {
      continue;
    }
    const auto rank = [this](const operation& of) {
      // By the seed any of them may be first.
      return how_.order == schedule::random ? std::pair(0, std::uint64_t{0})
                                            : std::pair(-of.priority, of.number);
    };
    if (best.empty() || rank(one) < rank(*ready_[best.front()])) {
      best.assign(1, index);
    } else if (rank(one) == rank(*ready_[best.front()])) {
      best.push_back(index);
    }
  }
  if (best.empty()) {
    return nullptr;
  }
  const auto chosen = best.size() == 1 ? best[0] : best[bits_.below(best.size())];
  auto picked = ready_[chosen];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
  return picked;
}

bool scheduler::start_all_ready(lock& held) {
  bool any = false;
  while (const auto what = pick_ready()) {
    start(held, what);
    any = true;
  }
  if (!rates_known_) {
    share(running_, cost_);
    rates_known_ = true;
  }
  return any;
}

void scheduler::start(lock& held, const std::shared_ptr<operation>& what) {
  what->state = operation_state::running;
  what->started = now_;
  if (what->where == lane::none) {
    finish(held, what);
    return;
  }
  what->cost = told_.starts(*what);
  if (what->breaks_device) {
    lose(what->device);
    return;
  }
  const double slow = what->stretch * (how_.clock == clock_kind::wall ? how_.wall_slowdown : 1.0);
  what->fixed_left = what->cost.fixed_ns * slow;
  what->flow_left = what->cost.flow_ns * slow;
  if (const auto* const spin = spin_of(*what)) {
    what->deadline = now_ + spin->at_most.count();
  }
  ++lane_count_of(*what);
  running_.push_back(what);
  rates_known_ = false;
  if (std::holds_alternative<host_work_call>(what->what)) {
    start_host_function(held, what);
    return;
  }
  move_bytes(held, *what, moment::start);
}

void scheduler::move_bytes(lock& held, operation& what, moment now) {
  const bool in_halves = what.bytes_move == moment::both;
  if (how_.data == data_effects::time_only || (!in_halves && what.bytes_move != now)) {
    return;
  }
  if (const auto* const gone = first_gone(what)) {
    told_.faulted(what, *gone);
    lose(what.device);
    return;
  }
  const auto which = !in_halves             ? part::all
                     : now == moment::start ? part::first_half
                                            : part::second_half;
  if (how_.clock == clock_kind::wall) {
    // The program's calls must not wait for a large copy; the memory is safe, since it is in use.
    held.unlock();
    {
      const std::lock_guard bytes(bytes_mutex_);
      carry_out(what, which);
    }
    held.lock();
  } else {
    carry_out(what, which);
  }
  if (what.corrupt && now == moment::end) {
    corrupt(what);
  }
}

void scheduler::finish_due(lock& held) {
  std::vector<std::shared_ptr<operation>> due;
  for (const auto& one : running_) {
    if (end_of(*one, now_) <= now_) {
      due.push_back(one);
    }
  }
  for (const auto& one : due) {
    if (one->state == operation_state::running) {
      finish(held, one);
    }
  }
}

void scheduler::finish(lock& held, const std::shared_ptr<operation>& what) {
  if (what->where != lane::none) {
    if (what->corrupt && what->bytes_move == moment::start) {
      corrupt(*what);
    }
    move_bytes(held, *what, moment::end);
    if (what->lost) {
      return;  // it has broken its device, and been dropped with the rest
    }
    --lane_count_of(*what);
    running_.erase(std::find(running_.begin(), running_.end(), what));
    rates_known_ = false;
  }
  drop(what);
  told_.ended(*what);
  changed_.notify_all();
}

// It is no longer pending, and those after it may go on.
void scheduler::drop(const std::shared_ptr<operation>& what) {
  what->state = operation_state::done;
  what->ended = now_;
  for_ranges(what->what, [](const memory_range& range) {
    if (range.of != nullptr) {
      --range.of->in_use;
    }
  });
  const bool holds =
      spin_of(*what) != nullptr || std::holds_alternative<host_work_call>(what->what);
  holding_ -= holds ? 1 : 0;
  pending_.erase(what->number);
  for (const auto number : what->before) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) {
      continue;
    }
    auto& later = *found->second;
    later.after.erase(std::remove(later.after.begin(), later.after.end(), what->number),
                      later.after.end());
    if (later.after.empty() && later.state == operation_state::waiting) {
      become_ready(later);
    }
  }
  what->before.clear();
}

void scheduler::lose(int device) {
  lost_[static_cast<std::size_t>(device)] = true;
  std::vector<std::shared_ptr<operation>> gone;
  for (const auto& [number, one] : pending_) {
    if (one->device == device) {
      gone.push_back(one);
    }
  }
  std::sort(gone.begin(), gone.end(),
            [](const auto& a, const auto& b) { return a->number < b->number; });
  const auto is_gone = [device](const auto& one) { return one->device == device; };
  ready_.erase(std::remove_if(ready_.begin(), ready_.end(), is_gone), ready_.end());
  running_.erase(std::remove_if(running_.begin(), running_.end(), is_gone), running_.end());
  lanes_[static_cast<std::size_t>(device)].fill(0);
  rates_known_ = false;
  for (const auto& one : gone) {
    one->lost = true;
    one->state = operation_state::done;  // so that drop() of an earlier one makes none ready
  }
  for (const auto& one : gone) {
    drop(one);
  }
  changed_.notify_all();
}

// --- Functions of the program ---------------------------------------------------------------

void scheduler::start_host_function(lock& held, const std::shared_ptr<operation>& what) {
  if (!host_thread_.joinable()) {
    host_thread_ = std::thread([this] { run_host_functions(); });
  }
  what->fixed_left = std::numeric_limits<double>::infinity();
  host_jobs_.push_back({.what = what, .started = now_});
  ++host_jobs_open_;
  changed_.notify_all();
  if (how_.clock == clock_kind::virtual_time) {
    // Most return at once; waiting for them keeps the run deterministic.
    changed_.wait_for(held, host_function_grace,
                      [&] { return what->fixed_left < 9e18 || stopping_; });
  }
}

void scheduler::run_host_functions() {
  lock held(mutex_);
  while (true) {
    changed_.wait(held, [this] { return stopping_ || !host_jobs_.empty(); });
    if (stopping_) {
      return;
    }
    const auto job = host_jobs_.front();
    host_jobs_.pop_front();
    const auto& function = std::get<host_work_call>(job.what->what);
    held.unlock();
    ticks spent = 0;
    {
      const host_time::own_clock own(time_, job.started);
      function.function(function.data);
      spent = own.now() - job.started;
    }
    held.lock();
    --host_jobs_open_;
    job.what->fixed_left = how_.clock == clock_kind::wall ? 0.0 : static_cast<double>(spent);
    changed_.notify_all();
  }
}

// --- Wall clock -----------------------------------------------------------------------------

void scheduler::run_on_wall_clock() {
  lock held(mutex_);
  whose_turn_ = std::this_thread::get_id();
  while (!stopping_) {
    while (!stopping_ && step(held, time_.real())) {
    }
    if (stopping_) {
      break;
    }
    const ticks due = next_time();
    if (due == never) {
      changed_.wait(held);
    } else if (due > time_.real()) {
      changed_.wait_until(held, time_.at(due));
    }
  }
}

}  // namespace berth::runtime::sim
