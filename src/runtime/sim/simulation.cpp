// SPDX-License-Identifier: Apache-2.0
// Devices, threads, faults and time of the simulated runtime.
#include "runtime/sim/simulation.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <fmt/format.h>

#include "runtime/sim/devices.hpp"
#include "runtime/sim/effects.hpp"
#include "runtime/status.hpp"

namespace berth::runtime::sim {
namespace {

using op = machine::operation;

constexpr double call_ns = 100;
constexpr double query_ns = 300;
// What looking for the time takes; so that a loop over now() ends.
constexpr ticks now_ns = 25;
constexpr double wake_up_ns = 1500;  // from the end of the work to the waiting thread
constexpr double late_query_ns = 20'000;
constexpr double write_combined_read_gb_per_s = 0.2;
constexpr unsigned default_cpus = 16;

bool is_query(call which) noexcept {
  return which == call::query_stream || which == call::query_event;
}

unsigned cpus_of(const machine::model& of, const options& how) {
  if (how.host_cpus > 0) {
    return how.host_cpus;
  }
  std::size_t sum = 0;
  for (const auto& node : of.hardware.numa_nodes) {
    sum += node.cpus.size();
  }
  return sum > 0 ? static_cast<unsigned>(sum) : default_cpus;
}

std::uint64_t next_identity() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

simulation::simulation(options how, machine::model of, int devices, migration pages)
    : how_(std::move(how)),
      model_(std::move(of)),
      migration_(pages),
      identity_(next_identity()),
      info_(describe_runtime(model_, how_)),
      devices_(describe_devices(model_, how_, devices, pages)),
      costs_(model_.profile),
      pricing_(model_, costs_, devices),
      space_(how_.data),
      pages_(how_.pages),
      faults_(how_.faults),
      lost_because_(static_cast<std::size_t>(devices)),
      scheduler_(how_, costs_, *this, devices) {
  for (int index = 0; index < devices; ++index) {
    default_streams_.push_back(make_stream(index, stream_role::legacy, stream_ordering::blocking));
  }
  if (how_.clock == clock_kind::virtual_time) {
    workers_ = std::make_unique<virtual_executor>(scheduler_, cpus_of(model_, how_));
  }
}

simulation::~simulation() = default;

// --- Time -----------------------------------------------------------------------------------

std::chrono::nanoseconds simulation::now() const noexcept {
  auto& time = scheduler_.time();
  time.spend(now_ns);
  return std::chrono::nanoseconds(time.now());
}

void simulation::spend(double ns) noexcept {
  scheduler_.time().spend(static_cast<ticks>(std::llround(std::max(0.0, ns))));
}

double simulation::managed_host_cost(const void* first, bytes_t bytes, access_kind how) {
  const auto found = space_.resolve(first, bytes);
  if (found.wrong != address_space::problem::none || found.range.kind() != memory_kind::managed) {
    return 0;
  }
  const auto met = found.range.of->places->touch(found.range.offset(), bytes, on_host, how);
  return met.from_device == 0 ? 0 : costs_.operation_ns(op::managed_touch_by_host, met.from_device);
}

double simulation::host_cost(const host_work& work) {
  if (work.kind == host_work_kind::wait || work.kind == host_work_kind::compute) {
    return static_cast<double>(work.duration.count());
  }
  double ns = 0;
  if (work.src != nullptr) {
    ns += managed_host_cost(work.src, work.bytes, access_kind::read);
  }
  if (work.dst != nullptr) {
    ns += managed_host_cost(work.dst, work.bytes, access_kind::write);
    const auto to = space_.find(work.dst);
    const auto* const first = static_cast<const std::byte*>(work.dst);
    const auto facts = to == nullptr ? pages_.facts_of(first, work.bytes) : page_facts{};
    if (facts.traits.has(machine::trait::fresh_pages)) {
      ns += costs_.operation_ns(op::host_populate, work.bytes, facts.traits);
      pages_.touched(reinterpret_cast<std::uintptr_t>(first), work.bytes);
    }
  }
  if (work.kind == host_work_kind::fault) {
    return ns;
  }
  const auto from = work.src == nullptr ? nullptr : space_.find(work.src);
  if (from != nullptr && from->caching == host_caching::write_combined) {
    return ns + static_cast<double>(work.bytes) / write_combined_read_gb_per_s;
  }
  const unsigned busy =
      workers_ == nullptr ? 1 : std::max(1U, workers_->busy_at(scheduler_.time().now()));
  return ns + static_cast<double>(work.bytes) * busy / costs_.cpu_copy_gb_per_s(busy);
}

// NOLINTNEXTLINE(bugprone-exception-escape): a process without memory or locks ends here
void simulation::charge(const host_work& work) noexcept {
  lock held(scheduler_.mutex());
  spend(host_cost(work));
  scheduler_.catch_up(held);
}

// --- Calls ----------------------------------------------------------------------------------

thread_state& simulation::this_thread() {
  // Not by thread id: that of a thread that has ended may come again.
  thread_local std::map<std::uint64_t, thread_state> states;
  return states[identity_];
}

result<simulation::lock> simulation::enter(call which, bytes_t requested) {
  lock held(scheduler_.mutex());
  spend(call_ns);
  if (is_query(which)) {
    spend(how_.order == schedule::late ? late_query_ns : query_ns);
  }
  scheduler_.catch_up(held);
  if (const auto failure = faults_.at_call(which)) {
    auto injected = make_error(*failure, "an injected failure", which);
    if (*failure == errc::gpu_out_of_memory) {
      return std::move(injected).with(
          {.requested = requested, .free = std::nullopt, .total = std::nullopt});
    }
    return injected;
  }
  if (info_of(which).capture == in_capture::refused && captures_.refuse(this_thread().mode)) {
    return make_error(errc::gpu_capture, "not while a stream captures", which);
  }
  return held;
}

result<void> simulation::check_alive(int device, call which) const {
  if (scheduler_.lost(device)) {
    const auto& why = lost_because_[static_cast<std::size_t>(device)];
    return make_error(errc::gpu_device_lost, fmt::format("device {} is lost: {}", device, why),
                      which);
  }
  return {};
}

result<void> simulation::check_device(int device, call which) const {
  if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) {
    return device_out_of_range(device, devices_.size());
  }
  return check_alive(device, which);
}

result<void> simulation::require(capability what, call which) const {
  if (!has(what)) {
    return make_error(errc::gpu_not_supported,
                      fmt::format("{} is off", berth::runtime::to_string(what)), which);
  }
  return {};
}

// --- What operations mean -------------------------------------------------------------------

running_cost simulation::starts(operation& what) {
  auto cost = pricing_.price(what);
  if (faults_.at_operation()) {
    what.breaks_device = true;
    lost_because_[static_cast<std::size_t>(what.device)] = "an injected fault";
  }
  if (std::holds_alternative<copy_work>(what.what)) {
    const auto faults = faults_.at_copy();
    cost.fixed_ns *= faults.factor;
    cost.flow_ns *= faults.factor;
    what.corrupt = faults.corrupt;
  }
  return cost;
}

void simulation::note_places(const operation& what) {
  const auto touch = [](const memory_range& range, int who, access_kind how) {
    if (range.kind() == memory_kind::managed && !range.gone()) {
      range.of->places->touch(range.offset(), range.bytes, who, how);
    }
  };
  if (const auto* const kernel = std::get_if<kernel_work>(&what.what)) {
    for (const auto& range : kernel->reads) {
      touch(range, what.device, access_kind::read);
    }
    for (const auto& range : kernel->writes) {
      touch(range, what.device, access_kind::write);
    }
  } else if (const auto* const fill = std::get_if<fill_work>(&what.what)) {
    touch(fill->dst, what.device, access_kind::write);
  } else if (const auto* const copy = std::get_if<copy_work>(&what.what)) {
    const int there = place_of(copy->dst);
    touch(copy->dst, there == nowhere ? what.device : there, access_kind::write);
  } else if (const auto* const prefetch = std::get_if<prefetch_work>(&what.what)) {
    if (prefetch->range.kind() == memory_kind::managed && !prefetch->range.gone()) {
      prefetch->range.of->places->prefetch(prefetch->range.offset(), prefetch->range.bytes,
                                           prefetch->where);
    }
  }
}

void simulation::ended(const operation& what) {
  note_places(what);
  const auto* const marker = std::get_if<marker_work>(&what.what);
  if (marker != nullptr && marker->kind == marker_kind::record &&
      marker->release == event_release::system) {
    make_visible();
  }
  journal_.add(what, pricing::carrier(what));
}

void simulation::faulted(const operation& what, const memory_range& where) {
  lost_because_[static_cast<std::size_t>(what.device)] =
      fmt::format("memory fault: {} {} used {} after it was freed", name_of(what.what), what.number,
                  label_of(where));
}

void simulation::make_visible() {
  const std::lock_guard bytes(scheduler_.bytes_mutex());
  space_.release_writes();
}

// --- Devices --------------------------------------------------------------------------------

result<memory_amounts> simulation::memory_info(int index) {
  auto held = enter(call::memory_info);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::memory_info); !fine) {
    return fine.error();
  }
  const bytes_t total = *device(index).memory_total;
  return memory_amounts{.free = total - std::min(total, space_.used_on(index)), .total = total};
}

result<int> simulation::current_device() {
  auto held = enter(call::current_device);
  if (!held) {
    return held.error();
  }
  return this_thread().device;
}

result<void> simulation::set_current_device(int index) {
  auto held = enter(call::set_current_device);
  if (!held) {
    return held.error();
  }
  if (index < 0 || static_cast<std::size_t>(index) >= devices_.size()) {
    return device_out_of_range(index, devices_.size());
  }
  this_thread().device = index;
  return {};
}

result<void> simulation::synchronize_device(int index) {
  auto held = enter(call::synchronize_device);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::synchronize_device); !fine) {
    return fine;
  }
  std::vector<std::uint64_t> all;
  for (const auto& one : streams_of(index)) {
    all.push_back(one->tail);
    if (auto capturing = refuse_if_capturing(*one, call::synchronize_device); !capturing) {
      return capturing;
    }
  }
  const auto barrier = std::make_shared<operation>();
  barrier->what = marker_work{};
  barrier->device = index;
  scheduler_.submit(barrier, all);
  const auto done = wait_for(*held, *barrier, call::synchronize_device);
  make_visible();
  spend(wake_up_ns);
  return done;
}

result<bool> simulation::can_access_peer(int index, int peer) {
  auto held = enter(call::can_access_peer);
  if (!held) {
    return held.error();
  }
  for (const int one : {index, peer}) {
    if (const auto fine = check_device(one, call::can_access_peer); !fine) {
      return fine.error();
    }
  }
  if (const auto able = require(capability::peer_access, call::can_access_peer); !able) {
    return able.error();
  }
  return pricing_.linked(index, peer);
}

result<void> simulation::enable_peer_access(int index, int peer) {
  auto held = enter(call::enable_peer_access);
  if (!held) {
    return held.error();
  }
  for (const int one : {index, peer}) {
    if (const auto fine = check_device(one, call::enable_peer_access); !fine) {
      return fine;
    }
  }
  if (const auto able = require(capability::peer_access, call::enable_peer_access); !able) {
    return able;
  }
  if (!pricing_.linked(index, peer)) {
    return make_error(errc::gpu_not_supported,
                      fmt::format("device {} cannot reach device {}", index, peer),
                      call::enable_peer_access);
  }
  const std::pair both(index, peer);
  if (index != peer &&
      std::find(peers_enabled_.begin(), peers_enabled_.end(), both) == peers_enabled_.end()) {
    peers_enabled_.push_back(both);
  }
  return {};
}

result<void> simulation::disable_peer_access(int index, int peer) {
  auto held = enter(call::disable_peer_access);
  if (!held) {
    return held.error();
  }
  for (const int one : {index, peer}) {
    if (const auto fine = check_device(one, call::disable_peer_access); !fine) {
      return fine;
    }
  }
  if (const auto able = require(capability::peer_access, call::disable_peer_access); !able) {
    return able;
  }
  peers_enabled_.erase(
      std::remove(peers_enabled_.begin(), peers_enabled_.end(), std::pair(index, peer)),
      peers_enabled_.end());
  return {};
}

// --- Beside the contract --------------------------------------------------------------------

std::vector<executed_operation> simulation::executed() const {
  const lock held(scheduler_.mutex());
  return journal_.all();
}

std::string simulation::executed_text() const {
  const lock held(scheduler_.mutex());
  return journal_.text();
}

void simulation::inject(const fault& what) {
  const lock held(scheduler_.mutex());
  faults_.add(what);
}

void simulation::clear_faults() {
  const lock held(scheduler_.mutex());
  faults_.clear();
}

std::uint64_t simulation::calls() const {
  const lock held(scheduler_.mutex());
  return faults_.calls();
}

holdings simulation::held() const {
  const lock guard(scheduler_.mutex());
  return {.allocations = space_.count(memory_kind::device) + space_.count(memory_kind::pinned) +
                         space_.count(memory_kind::managed),
          .registrations = space_.count(memory_kind::registered),
          .streams = streams_.size(),
          .events = events_.size(),
          .pending = scheduler_.pending()};
}

void simulation::declare_pages(const void* memory, bytes_t bytes, page_facts facts) {
  const lock held(scheduler_.mutex());
  pages_.declare(reinterpret_cast<std::uintptr_t>(memory), bytes, facts);
}

executor* simulation::workers() noexcept {
  return workers_.get();
}

}  // namespace berth::runtime::sim
