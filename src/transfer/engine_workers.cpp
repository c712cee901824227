// SPDX-License-Identifier: Apache-2.0
// The engine's life: set-up, workers, lanes, and its end.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/sim/sim_driver.hpp"
#include "transfer/calibration.hpp"
#include "transfer/cpus.hpp"
#include "transfer/engine_state.hpp"
#include "transfer/gpu_scope.hpp"
#include "transfer/thread_executor.hpp"

namespace berth::transfer {
namespace {

using runtime::step_outcome;

// More threads than this do not make a copy faster on any machine measured: the link is full.
constexpr unsigned most_useful_threads = 15;
constexpr bytes_t largest_ring = 32 * mib;
constexpr bytes_t smallest_ring = 4 * mib;
// The ring stays in the last-level cache, and leaves most of it to the program.
constexpr bytes_t cache_share = 4;
// Waking a sleeping thread costs its waker some microseconds, and the thread comes some tens of
// microseconds later. So the caller wakes a few, and each of them, once, some more: two steps wake
// all, and the caller begins to copy early.
constexpr unsigned first_woken = 3;
constexpr unsigned woken_by_each = 4;
// The set-up takes about ten milliseconds. The runtimes copy a gigabyte in 70 to 140, and into
// fresh pages in 700.
constexpr bytes_t worth_waiting = 512 * mib;
constexpr bytes_t worth_waiting_if_fresh = 32 * mib;
// Calibration may take so many times as long.
constexpr bytes_t calibration_share = 16;
// Until the profile is there, smaller copies are not looked at.
constexpr bytes_t small_unless_known = 1 * mib;
// How long what makes progress may take to end, when the engine ends.
constexpr std::chrono::seconds farewell{5};

std::optional<bytes_t> last_level_cache() {
  std::optional<bytes_t> largest;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    bytes_t kibibytes = 0;
    if (file >> kibibytes) {
      largest = std::max(largest.value_or(0), kibibytes * kib);
    }
  }
  return largest;
}

bytes_t suitable_ring() {
  const auto cache = last_level_cache();
  return cache ? std::clamp(*cache / cache_share / mib * mib, smallest_ring, largest_ring)
               : largest_ring;
}

}  // namespace

engine_state::engine_state(std::shared_ptr<memory::context_state> home, copy_engine_options options)
    : home_(std::move(home)),
      options_(std::move(options)),
      process_(getpid()),
      small_below_(small_unless_known),
      kept_(*home_) {
  const auto& device = gpu().devices()[static_cast<std::size_t>(options_.device)];
  host_reaches_device_ =
      device.integrated.value_or(false) || device.pageable_uses_host_page_tables.value_or(false);
  if (auto* const simulated = dynamic_cast<runtime::sim_driver*>(&gpu())) {
    executor_ = simulated->workers();
  }
  virtual_clock_ = executor_ != nullptr;
  if (executor_ == nullptr) {
    own_executor_ = std::make_unique<thread_executor>(options_.alert_for);
    executor_ = own_executor_.get();
  }
  lane_limit_.store(std::clamp(options_.most_rings, 1U, most_lanes));
  // One worker at least: it sets up, and carries on what callers have left.
  const unsigned workers = std::max(options_.most_threads, most_useful_threads);
  helpers_.resize(workers);
  workers_.reserve(workers);
}

// Looks at the machine: a dozen small files, so not before there is something to set up.
void engine_state::choose_means() {
  threads_ = most_useful_threads;  // on the virtual clock the CPUs are simulated, too
  if (own_executor_) {
    auto usable =
        find_usable_cpus(gpu().devices()[static_cast<std::size_t>(options_.device)].numa_node);
    threads_ = std::min(usable.at_once, most_useful_threads);
    own_executor_->place_on(std::move(usable.cpus));
  }
  if (options_.most_threads > 0) {
    threads_ = options_.most_threads;
  }
  ring_bytes_ = options_.ring_bytes > 0 ? std::max(options_.ring_bytes / mib * mib, smallest_ring)
                                        : suitable_ring();
}

void engine_state::shut_down() noexcept {
  if (getpid() != process_) {
    abandon_all();
    return;
  }
  ending_.store(true);
  while (setup_.load() == setup_phase::starting || setup_.load() == setup_phase::running) {
    pass_time();
  }
  end_copies();
  closing_.store(true);
  const auto deadline = gpu().now() + farewell;
  const auto has_cooled = [](const lane& one) {
    const auto phase = one.phase.load();
    return phase == lane_phase::absent || phase == lane_phase::free;
  };
  while (!std::all_of(lanes_.begin(), lanes_.end(), has_cooled) && gpu().now() < deadline) {
    refresh_lanes();
    pass_time();
  }
  workers_.clear();
  release_all(deadline);
}

// Copies that make progress come to their end; what stands still for too long is cancelled.
void engine_state::end_copies() noexcept {
  const auto is_quiet = [](const lane& one) {
    const auto phase = one.phase.load();
    return phase == lane_phase::absent || phase == lane_phase::free || phase == lane_phase::cooling;
  };
  auto deadline = gpu().now() + farewell;
  std::uint64_t seen = 0;
  while (!std::all_of(lanes_.begin(), lanes_.end(), is_quiet)) {
    std::uint64_t steps = 0;
    const bool late = gpu().now() > deadline;
    for (auto& one : lanes_) {
      if (enter(one)) {
        steps += one.job->steps();
        if (late) {
          one.job->fail(error(errc::transfer_cancelled, "the copy engine has ended", "copy engine",
                              "let the engine outlive its tickets, or wait for them first"));
          close_if_ended(one);
        }
      }
      leave(one);
    }
    if (steps != seen) {
      seen = steps;
      deadline = gpu().now() + farewell;
    }
    if (late) {
      closing_.store(true);
    }
    pass_time();
  }
}

// What the device still uses after the deadline stays as it is, to the end of the process.
void engine_state::release_all(std::chrono::nanoseconds deadline) noexcept {
  for (auto& one : lanes_) {
    if (one.phase.load() == lane_phase::cooling) {
      one.through->abandon();
    } else if (one.through != nullptr) {
      static_cast<void>(gpu().destroy_event(one.fence));
    }
    one.job.reset();
    one.through.reset();
    one.phase.store(lane_phase::absent);
  }
  while ((!kept_.are_unused() || orphan_count_.load() > 0) && gpu().now() < deadline) {
    reap_orphans();
    pass_time();
  }
  kept_.remove_all();
  const std::scoped_lock lock(orphans_mutex_);
  if (!orphans_.empty()) {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): a DMA may use them for ever
    static_cast<void>(new (std::nothrow) std::vector<orphan>(std::exchange(orphans_, {})));
  }
}

// In the child of a fork: the threads are not there, and the runtime cannot be used.
void engine_state::abandon_all() noexcept {
  for (auto& one : workers_) {
    static_cast<void>(one.release());
  }
  static_cast<void>(own_executor_.release());
  for (auto& one : lanes_) {
    static_cast<void>(one.job.release());
    static_cast<void>(one.through.release());
  }
  orphans_.clear();
}

// --- Workers ------------------------------------------------------------------------------------

// A step must not throw: memory that the system does not have fails what was under way.
step_outcome engine_state::guarded_step(unsigned worker) noexcept {
  try {
    return step(worker);
  } catch (const std::exception& thrown) {
    const auto running = setup_phase::running;
    if (worker == 0 && setup_.load() == running) {
      setup_failure_.emplace(errc::internal, thrown.what(), "copy engine");
      setup_.store(setup_phase::failed);
    }
    return step_outcome::poll;
  }
}

step_outcome engine_state::step(unsigned worker) {
  if (worker == 0 && background_work()) {
    return step_outcome::again;
  }
  bool wanted = false;
  // Not all from the first on: a busy lane must not keep every worker.
  for (unsigned index = 0; index < most_lanes; ++index) {
    auto& one = lanes_[(worker + index) % most_lanes];
    if (help(one, worker, wanted)) {
      return step_outcome::again;
    }
  }
  return wanted ? step_outcome::poll : step_outcome::sleep;
}

// True if a piece was moved. `wanted` is set where this worker has something to wait for.
bool engine_state::help(lane& one, unsigned worker, bool& wanted) {
  if (one.phase.load(std::memory_order_relaxed) != lane_phase::active) {
    return false;
  }
  bool worked = false;
  if (enter(one)) {
    const unsigned helpers = one.job->plan().threads - 1;
    if (worker < helpers) {
      wanted = true;
      wake_others(one, worker, helpers);
      try {
        worked = one.job->work_once();
        if (!worked) {
          one.job->pump();
        }
      } catch (const std::exception& thrown) {
        one.job->fail(error(errc::internal, thrown.what(), "copy engine"));
      }
      close_if_ended(one);
    }
  }
  leave(one);
  return worked;
}

// Once for each copy.
void engine_state::wake_others(const lane& one, unsigned worker, unsigned helpers) noexcept {
  auto& seen = helpers_[worker].seen[static_cast<std::size_t>(&one - lanes_.data())];
  if (const auto copy = one.generation.load(std::memory_order_relaxed); seen != copy) {
    seen = copy;
    wake_helpers(first_woken + woken_by_each * worker, woken_by_each, helpers);
  }
}

// Invariant: a job is touched only between enter() and leave() of a lane that enter() found active,
// or by the thread that settles. enter() counts before it looks, closing is set before the count is
// looked at; all of it is sequentially consistent. So whoever settles has seen a count of 0 after
// the lane was closing, and nobody can find it active again before the next copy begins.
bool engine_state::enter(lane& one) noexcept {
  one.users.fetch_add(1);
  return one.phase.load() == lane_phase::active;
}

void engine_state::close_if_ended(lane& one) noexcept {
  if (one.job->is_ended()) {
    auto expected = lane_phase::active;
    one.phase.compare_exchange_strong(expected, lane_phase::closing);
  }
}

void engine_state::leave(lane& one) {
  if (one.users.fetch_sub(1) != 1) {
    return;
  }
  auto expected = lane_phase::closing;
  if (one.phase.compare_exchange_strong(expected, lane_phase::settling)) {
    one.job->settle();
    one.phase.store(lane_phase::cooling);
  }
}

void engine_state::wake_helpers(unsigned first, unsigned count, unsigned helpers) noexcept {
  const unsigned end = std::min({first + count, helpers, worker_count_.load()});
  for (unsigned index = first; index < end; ++index) {
    workers_[index]->wake();
  }
}

void engine_state::wake_first(unsigned helpers) noexcept {
  wake_helpers(0, first_woken, helpers);
}

bool engine_state::wait_until(const std::function<bool()>& done) {
  if (getpid() != process_) {
    return done();  // the threads are the parent's
  }
  return executor_->wait_until(done);
}

// A moment of the calling thread's time. On the virtual clock others go on meanwhile.
void engine_state::pass_time() const {
  if (virtual_clock_) {
    gpu().charge({.kind = runtime::host_work_kind::wait, .duration = std::chrono::microseconds(1)});
  } else {
    usleep(20);
  }
}

// --- Set-up -------------------------------------------------------------------------------------
//
// Nothing is set up before the first copy that could be staged, and then behind it: making threads
// and page-locking a ring would slow down the copy that runs beside it.

void engine_state::begin_set_up() {
  auto expected = setup_phase::not_begun;
  if (!setup_.compare_exchange_strong(expected, setup_phase::starting)) {
    return;
  }
  try {
    start_worker(0);
    setup_.store(setup_phase::running);  // not before: the worker adds the others to the list
    workers_.front()->wake();
  } catch (const std::exception& refused) {
    setup_failure_ = error(errc::gpu_not_permitted,
                           fmt::format("the system gives no thread: {}", refused.what()),
                           "copy engine", "copies are left to the runtime");
    setup_.store(setup_phase::failed);
  }
}

void engine_state::start_worker(unsigned index) {
  workers_.push_back(executor_->start([this, index] { return guarded_step(index); }));
  worker_count_.store(index + 1);
}

bool engine_state::is_worth_waiting(const copy_facts& facts) const noexcept {
  const bool may_calibrate =
      options_.profile == calibration::cached || options_.profile == calibration::fresh;
  const bytes_t least = is_fresh_result(facts) ? worth_waiting_if_fresh : worth_waiting;
  return facts.bytes >= (may_calibrate ? calibration_share * least : least);
}

bool engine_state::background_work() {
  if (setup_.load() == setup_phase::running) {
    set_up();
    return true;
  }
  if (setup_.load() != setup_phase::ready || ending_.load() || !wants_lane_.exchange(false)) {
    return false;
  }
  for (unsigned index = 0; index < lane_limit_.load(); ++index) {
    auto expected = lane_phase::absent;
    if (lanes_[index].phase.compare_exchange_strong(expected, lane_phase::making)) {
      if (!make_lane(lanes_[index])) {
        // No memory for more: copies share what there is. For the first one it is tried again.
        lane_limit_.store(std::max(index, 1U));
      }
      return true;
    }
  }
  return false;
}

void engine_state::set_up() {
  choose_means();
  const auto scope = gpu_scope::enter(gpu(), options_.device);
  if (!scope) {
    setup_failure_ = scope.error();
    setup_.store(setup_phase::failed);
    return;
  }
  lanes_[0].phase.store(lane_phase::making);
  auto made = make_lane(lanes_[0]);
  if (made) {
    made = start_helpers();
  }
  if (!made) {
    setup_failure_ = made.error();
    setup_.store(setup_phase::failed);
    return;
  }
  profile_ = find_profile(gpu(), options_, threads_, lanes_[0].through->stream(),
                          [this](const copy_range& ends, direction way, const staging_rule& rule) {
                            return stage(ends, way, rule);
                          });
  small_below_.store(profile_.smallest_staged());
  setup_.store(setup_phase::ready);
}

result<void> engine_state::start_helpers() {
  try {
    for (unsigned index = 1; index + 1 < threads_; ++index) {
      start_worker(index);
    }
    return {};
  } catch (const std::system_error& refused) {
    return error(errc::gpu_not_permitted,
                 fmt::format("the system gives no more threads: {}", refused.what()), "copy engine",
                 "raise the limit, or lower copy_engine_options::most_threads");
  }
}

// One staged copy by a rule, for calibration. The calling worker is the caller, so one thread less
// than later helps.
result<void> engine_state::stage(const copy_range& ends, direction way, const staging_rule& rule) {
  const bool up = way == direction::host_to_device;
  const copy_facts facts{.bytes = ends.bytes,
                         .source = up ? memory_kind::pageable : memory_kind::device,
                         .destination = up ? memory_kind::device : memory_kind::pageable,
                         .way = way};
  const copy_profile only{.to_device = {rule}, .to_host = {rule}, .known = {}, .source = {}};
  const auto [plan, store] =
      decide(facts, {.profile = &only, .threads = threads_, .ring_bytes = ring_bytes_});
  auto work = staged(plan, cut_for(plan));
  auto* const host = static_cast<std::byte*>(up ? writable(ends.src) : ends.dst);
  work.host = linear_host(gpu(), host, ends.bytes, page_care::none, store);
  work.device_end =
      linear_device(gpu(), up ? static_cast<std::byte*>(ends.dst) : writable(ends.src));
  work.until = completion::both;
  const auto ticket = carry(std::move(work), lanes_[0].through->stream(), {});
  return ticket ? result<void>() : ticket.error();
}

result<void> engine_state::make_lane(lane& one) {
  auto made = [&]() -> result<void> {
    const auto scope = gpu_scope::enter(gpu(), options_.device);
    if (!scope) {
      return scope.error();
    }
    auto through = ring::make(*home_, options_.device, ring_bytes_);
    if (!through) {
      return through.error();
    }
    auto fence = gpu().create_event(options_.device, {});
    if (!fence) {
      return fence.error();
    }
    one.fence = *fence;
    one.through = std::move(*through);
    one.job = std::make_unique<staged_copy>(gpu(), *one.through);
    return {};
  }();
  one.phase.store(made ? lane_phase::free : lane_phase::absent);
  return made;
}

result<void> engine_state::prepare() {
  if (auto own = require_own_process("copy_engine::prepare"); !own) {
    return own;
  }
  begin_set_up();
  if (!wait_until([this] { return setup_.load() > setup_phase::running; })) {
    return error(errc::internal, "the set-up stands still for ever", "copy_engine::prepare");
  }
  if (setup_.load() == setup_phase::failed) {
    return *setup_failure_;
  }
  return {};
}

// --- Lanes --------------------------------------------------------------------------------------

// Which lanes have cooled down.
void engine_state::refresh_lanes() {
  for (auto& one : lanes_) {
    if (one.phase.load() != lane_phase::cooling) {
      continue;
    }
    // The answer holds for the copy that was asked about: another may have come and gone meanwhile.
    const auto copy = one.generation.load();
    const auto state = gpu().query_stream(one.through->stream());
    if (!state || *state != runtime::progress::complete) {
      continue;
    }
    const std::scoped_lock lock(lanes_mutex_);
    auto expected = lane_phase::cooling;
    if (one.generation.load() == copy) {
      one.phase.compare_exchange_strong(expected, lane_phase::free);
    }
  }
}

bool engine_state::has_lane() const noexcept {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const lane& one) {
    const auto phase = one.phase.load();
    return phase != lane_phase::absent && phase != lane_phase::making;
  });
}

// A lane that is being given back is `making` meanwhile: nobody takes it, nobody makes it.
bytes_t engine_state::trim() noexcept {
  if (getpid() != process_ || setup_.load() != setup_phase::ready || ending_.load()) {
    return 0;
  }
  refresh_lanes();
  bytes_t given_back = 0;
  for (auto& one : lanes_) {
    {
      const std::scoped_lock lock(lanes_mutex_);
      auto expected = lane_phase::free;
      if (!one.phase.compare_exchange_strong(expected, lane_phase::making)) {
        continue;
      }
    }
    one.job.reset();
    static_cast<void>(gpu().destroy_event(one.fence));
    given_back += one.through->bytes();
    one.through.reset();
    one.phase.store(lane_phase::absent);
  }
  return given_back;
}

// A free lane, if `spare` others could still be had after it.
engine_state::lane* engine_state::take_lane(unsigned spare) {
  const std::scoped_lock lock(lanes_mutex_);
  lane* found = nullptr;
  unsigned available = 0;
  for (unsigned index = 0; index < lane_limit_.load(); ++index) {
    auto& one = lanes_[index];
    const auto phase = one.phase.load();
    available += phase == lane_phase::free || phase == lane_phase::absent ? 1 : 0;
    if (phase == lane_phase::free && found == nullptr) {
      found = &one;
    }
  }
  if (found == nullptr || available <= spare) {
    return nullptr;
  }
  found->phase.store(lane_phase::taken);
  return found;
}

}  // namespace berth::transfer
