// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/recorder.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include "berth/version.hpp"
#include "interpose/capture/clock.hpp"
#include "interpose/capture/fix_gate.hpp"
#include "interpose/capture/locked.hpp"
#include "interpose/capture/no_signals.hpp"
#include "interpose/capture/real_calls.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not everywhere declared

namespace berth::interpose {
namespace {

using trace::recording::block_type;
using trace::recording::byte_writer;

// How long events stay in memory at most.
constexpr std::int64_t drain_every_ns = 100'000'000;
constexpr std::size_t drainer_stack = std::size_t{256} << 10;
// More than that are made in haste only.
constexpr std::size_t enough_logs = 64;
// Of a block of pairs.
constexpr std::size_t most_pair_bytes = std::size_t{32} << 10;

std::uint64_t nanoseconds(const timespec& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Pairs of strings: a block's payload. The count goes in front, so the pairs are gathered first.
class pair_writer {
public:
  pair_writer(byte_writer& to, std::span<std::byte> room) noexcept : to_(to), pairs_(room) {}
  void put(std::string_view key, std::string_view value) noexcept {
    if (pairs_.room() > key.size() + value.size() + 2 * trace::recording::most_varint_bytes) {
      pairs_.put_string(key);
      pairs_.put_string(value);
      ++count_;
    }
  }
  void put(std::string_view key, std::uint64_t value) noexcept {
    std::array<char, 24> digits{};
    const int length =
        std::snprintf(digits.data(), digits.size(), "%llu", static_cast<unsigned long long>(value));
    put(key, std::string_view(digits.data(), static_cast<std::size_t>(length)));
  }
  // "runtime.0.path"
  template <class Value>
  void put(const char* group, std::size_t index, const char* field, const Value& value) noexcept {
    std::array<char, 64> key{};
    const int length = std::snprintf(key.data(), key.size(), "%s%zu%s", group, index, field);
    put(std::string_view(key.data(), static_cast<std::size_t>(length)), value);
  }
  void end() noexcept {
    to_.put_varint(count_);
    for (const std::byte one : pairs_.written()) {
      to_.put_byte(std::to_integer<std::uint8_t>(one));
    }
  }

private:
  byte_writer& to_;
  byte_writer pairs_;
  std::uint64_t count_ = 0;
};

// Nothing where no copy is to be fixed.
void put_fixing(pair_writer& pairs, const fix_counts& counts) noexcept {
  if (counts.mode == fixing::off) {
    return;
  }
  pairs.put("fix.copies", counts.copies);
  pairs.put("fix.bytes", counts.bytes);
  if (counts.mode == fixing::checked) {
    pairs.put("fix.differed", counts.differed);
  }
  if (counts.reused > 0) {
    pairs.put("fix.reused", counts.reused);
  }
  for (std::size_t index = 1; index < fix::pass_count; ++index) {
    if (counts.passed[index] > 0) {
      std::array<char, 64> key{};
      const int length =
          std::snprintf(key.data(), key.size(), "fix.passed.%s", fix::pass_names[index].data());
      pairs.put(std::string_view(key.data(), static_cast<std::size_t>(length)),
                counts.passed[index]);
    }
  }
}

constexpr std::array<std::string_view, 8> steering_variables{
    "HSA_", "HIP_", "ROCR_", "GPU_", "AMD_", "CUDA_", "NVIDIA_", "PYTORCH_"};

bool steers_a_runtime(std::string_view variable) noexcept {
  return std::any_of(steering_variables.begin(), steering_variables.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

void put_environment(pair_writer& pairs) noexcept {
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || !steers_a_runtime(text)) {
      continue;
    }
    std::array<char, 128> key{};
    const int length = std::snprintf(key.data(), key.size(), "environment.%.*s",
                                     static_cast<int>(equals), text.data());
    if (length > 0 && static_cast<std::size_t>(length) < key.size()) {
      pairs.put({key.data(), static_cast<std::size_t>(length)}, text.substr(equals + 1));
    }
  }
}

// Without the standard library's files, which take memory of the program's.
void put_arguments(pair_writer& pairs) noexcept {
  std::array<char, 4096> text{};
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  const auto length =
      static_cast<std::size_t>(std::max<ssize_t>(::read(file, text.data(), text.size()), 0));
  ::close(file);
  std::size_t index = 0;
  for (std::size_t at = 0; at < length; ++index) {
    const auto rest = std::string_view(text.data() + at, length - at);
    const auto one = rest.substr(0, rest.find('\0'));
    pairs.put("argument.", index, "", one);
    at += one.size() + 1;
  }
}

// By reached_by. A call that came in by no lookup that was seen was linked.
constexpr std::array<std::string_view, 4> reached_names{"unseen", "linked", "dlsym",
                                                        "cuGetProcAddress"};

}  // namespace

// --- Begin --------------------------------------------------------------------------------------

recorder::recorder(const settings& how) noexcept
    : how_(how),
      clock_(find_tick_source()),
      scale_(clock_),
      pairs_memory_(most_pair_bytes),
      modules_memory_(trace_file::most_payload) {
  began_ = monotonic_ns();
  window_is_on_ = how_.delay_ns == 0;
  in_window_.store(window_is_on_);
}

recorder::~recorder() {
  end("exit");
}

void recorder::begin() noexcept {
  if (phase_.load(std::memory_order_acquire) != phase::idle || !how_.records() ||
      (how_.only_process != 0 && how_.only_process != ::getpid())) {
    return;
  }
  const no_signals calm;
  const locked hold(start_lock_);
  if (phase_.load() == phase::idle) {
    phase_.store(start() ? phase::recording : phase::ended);
  }
}

bool recorder::start() noexcept {
  window_is_on_ = wants_window();  // the program may have run for long without a GPU
  in_window_.store(window_is_on_);
  {
    const locked hold(drain_);
    if (!file_.create(how_)) {
      // Said nowhere: standard error is the program's. Who has asked for the file misses it.
      return false;
    }
    write_process();
    write_calls();
  }
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, drainer_stack);
  // Without it, logs are emptied at the end only, and drop what does not fit.
  has_drainer_ = ::pthread_create(&drainer_, &attributes, run_drainer, this) == 0;
  ::pthread_attr_destroy(&attributes);
  return true;
}

// --- Logs ---------------------------------------------------------------------------------------

thread_log* recorder::acquire_log() noexcept {
  if (!is_recording()) {
    return nullptr;
  }
  const auto take = [&](thread_log& log) {
    log.recycle();
    log.began = read_ticks(clock_);
    log.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    return &log;
  };
  const auto count = log_count_.load();
  for (std::size_t index = 0; index < count; ++index) {
    auto* const log = logs_[index].load();
    auto expected = log_state::free;
    if (log != nullptr && log->state.compare_exchange_strong(expected, log_state::in_use)) {
      return take(*log);
    }
  }
  const no_signals calm;
  const locked hold(start_lock_);
  const auto index = log_count_.load();
  if (index >= enough_logs) {
    hurry();  // those of finished threads are free when they are drained
  }
  if (index == most_logs || (index + 1) * sizeof(thread_log) > how_.memory) {
    return nullptr;
  }
  void* const memory = ::mmap(nullptr, sizeof(thread_log), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  auto* const log = new (memory) thread_log;
  log->next_site = static_cast<std::uint32_t>(index) << 20U;  // ids of different logs differ
  log->state.store(log_state::in_use);
  logs_[index].store(log);
  log_count_.store(index + 1);
  return take(*log);
}

void recorder::release_log(thread_log& log) noexcept {
  log.state.store(log_state::finished);
}

void recorder::hurry() noexcept {
  if (work_.exchange(1, std::memory_order_relaxed) == 0) {
    ::syscall(SYS_futex, &work_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

void recorder::set_devices(api which, const known_devices& found) noexcept {
  const auto index = static_cast<std::size_t>(which);
  device_facts_[index] = found;
  devices_ready_[index].store(true, std::memory_order_release);
}

void recorder::note_missed(const char* name) noexcept {
  for (auto& place : missed_) {
    const char* known = nullptr;
    if (place.compare_exchange_strong(known, name) || known == name) {
      return;
    }
  }
}

// --- The drainer --------------------------------------------------------------------------------

void* recorder::run_drainer(void* self) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "berth-record");
  static_cast<recorder*>(self)->drain_until_end();
  return nullptr;
}

void recorder::drain_until_end() noexcept {
  while (phase_.load() != phase::ended) {
    wait_for_work();
    update_window();
    if (auto* const source = source_.load()) {
      source->deliver();
    }
    flush();
  }
}

void recorder::wait_for_work() noexcept {
  const timespec wait{.tv_sec = 0, .tv_nsec = drain_every_ns};
  ::syscall(SYS_futex, &work_, FUTEX_WAIT_PRIVATE, 0, &wait, nullptr, 0);
  work_.store(0);
}

// On between delay and end, where the signal has not switched it off.
bool recorder::wants_window() const noexcept {
  const auto passed = static_cast<std::int64_t>(monotonic_ns() - began_);
  const auto end = how_.duration_ns > 0 ? how_.delay_ns + how_.duration_ns : INT64_MAX;
  const bool is_switched_off = toggled_.load(std::memory_order_relaxed) % 2 == 1;
  return passed >= how_.delay_ns && passed < end && !is_switched_off;
}

void recorder::update_window() noexcept {
  const bool wanted = wants_window();
  if (wanted == window_is_on_) {
    return;
  }
  window_is_on_ = wanted;
  in_window_.store(wanted, std::memory_order_relaxed);
  const locked hold(drain_);
  write_window(wanted ? window_edge::begin : window_edge::end);
}

void recorder::look_around(surroundings& around) noexcept {
  const locked hold(modules_lock_);
  around.runtimes = find_mapped_runtimes();
  for (std::size_t index = 0; index < around.runtimes.count; ++index) {
    auto& one = around.runtimes.found[index];
    one.is_used = has_real_call_in(one.api, one.path.data());
  }
  const auto changes = loader_changes();
  if (changes != modules_seen_ && !modules_memory_.all().empty()) {
    byte_writer to(modules_memory_.all());
    put_modules(to);
    modules_bytes_ = to.size();
    modules_seen_ = changes;
  }
}

void recorder::flush() noexcept {
  if (!is_recording()) {
    return;
  }
  const no_signals calm;
  surroundings around;
  look_around(around);
  const locked hold(drain_);
  drain_all(around);
}

void recorder::drain_all(const surroundings& around) noexcept {
  scale_.renew();
  write_modules();
  const auto count = log_count_.load();
  for (std::size_t index = 0; index < count; ++index) {
    auto& log = *logs_[index].load();
    const bool finished = log.state.load() == log_state::finished;
    drain_stacks(log);
    drain_events(log);
    note_dropped(log);
    if (finished) {
      log.state.store(log_state::free);
    }
  }
  drain_devices();
  write_coverage(around);
}

void recorder::drain_stacks(thread_log& log) noexcept {
  constexpr std::size_t most_stack_bytes = 16 + 10 * raw_stack::most_frames;
  while (log.stacks.front() != nullptr) {
    auto to = file_.payload();
    while (const auto* const stack = log.stacks.front()) {
      if (to.room() < most_stack_bytes) {
        break;
      }
      to.put_varint(stack->id);
      to.put_varint(stack->frames);
      std::uint64_t last = 0;
      for (std::size_t index = 0; index < stack->frames; ++index) {
        to.put_signed(static_cast<std::int64_t>(stack->address[index] - last));
        last = stack->address[index];
      }
      log.stacks.pop();
    }
    file_.write(block_type::stacks, to.written());
  }
}

// What came while it is drained is left for the next time, or a busy thread would hold the drainer.
void recorder::drain_events(thread_log& log) noexcept {
  auto left = decltype(log.events)::capacity;
  while (left > 0 && log.events.front() != nullptr) {
    auto to = file_.payload();
    event_encoder encoder(to, log.thread, scale_.nanoseconds(log.events.front()->begin));
    while (const auto* const event = left > 0 ? log.events.front() : nullptr) {
      if (to.room() < event_encoder::most_event_bytes) {
        break;
      }
      // Two scales may differ by a clock's reading; a thread's events keep their order.
      log.last_begin_ns = std::max(log.last_begin_ns, scale_.nanoseconds(event->begin));
      encoder.put(*event, log.last_begin_ns, scale_.duration(event->duration));
      log.events.pop();
      ++events_;
      --left;
    }
    file_.write(block_type::events, to.written());
  }
}

void recorder::note_dropped(thread_log& log) noexcept {
  const auto lost = log.dropped.exchange(0, std::memory_order_acquire);
  if (lost == 0) {
    return;
  }
  dropped_ += lost;
  const auto now = monotonic_ns();
  auto to = file_.payload();
  to.put_varint(log.thread);
  to.put_varint(lost);
  to.put_varint(now - drain_every_ns);
  to.put_varint(now);
  file_.write(block_type::dropped, to.written());
}

void recorder::drain_devices() noexcept {
  for (auto to = file_.payload(); devices_.take_strings(to); to = file_.payload()) {
    file_.write(block_type::strings, to.written());
  }
  for (auto to = file_.payload(); devices_.take_records(to); to = file_.payload()) {
    file_.write(block_type::events, to.written());
  }
  dropped_ += devices_.take_dropped();
}

// --- Blocks -------------------------------------------------------------------------------------

void recorder::write_process() noexcept {
  auto to = file_.payload();
  pair_writer pairs(to, pairs_memory_.all());
  pairs.put("berth", version_text);
  pairs.put("pid", static_cast<std::uint64_t>(::getpid()));
  pairs.put("parent", static_cast<std::uint64_t>(::getppid()));
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  pairs.put("host", std::string_view(host.data()));
  if (const std::string_view rank = rank_of_environment(); !rank.empty()) {
    pairs.put("rank", rank);
  }
  std::array<char, settings::most_path> path{};
  if (::readlink("/proc/self/exe", path.data(), path.size() - 1) > 0) {
    pairs.put("program", std::string_view(path.data()));
  }
  if (::getcwd(path.data(), path.size()) != nullptr) {
    pairs.put("folder", std::string_view(path.data()));
  }
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  pairs.put("begin_monotonic_ns", began_);
  pairs.put("begin_realtime_ns", nanoseconds(now));
  pairs.put("cpus", static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  put_arguments(pairs);
  put_environment(pairs);
  pairs.end();
  file_.write(block_type::process, to.written());
}

void recorder::write_calls() noexcept {
  auto to = file_.payload();
  put_calls(to);
  file_.write(block_type::calls, to.written());
}

// Never waits for who holds modules_lock_: that one may wait for the loader's. The next drain has
// it.
void recorder::write_modules() noexcept {
  if (::pthread_mutex_trylock(&modules_lock_) != 0) {
    return;
  }
  if (modules_bytes_ > 0) {
    file_.write(block_type::modules, modules_memory_.all().first(modules_bytes_));
    modules_bytes_ = 0;
  }
  ::pthread_mutex_unlock(&modules_lock_);
}

// The interface that has told of more.
const known_devices& recorder::known_facts() const noexcept {
  static constexpr known_devices none{};
  const known_devices* best = &none;
  for (std::size_t index = 0; index < device_facts_.size(); ++index) {
    if (devices_ready_[index].load(std::memory_order_acquire) &&
        device_facts_[index].count > best->count) {
      best = &device_facts_[index];
    }
  }
  return *best;
}

void recorder::write_coverage(const surroundings& around) noexcept {
  auto to = file_.payload();
  pair_writer pairs(to, pairs_memory_.all());
  for (std::size_t index = 0; index < around.runtimes.count; ++index) {
    const auto& one = around.runtimes.found[index];
    pairs.put("runtime.", index, ".path", std::string_view(one.path.data()));
    pairs.put("runtime.", index, ".api", one.api == api::hip ? "hip" : "cuda");
    std::size_t how = 0;
    for (std::size_t way = 1; one.is_used && way < reached_names.size(); ++way) {
      how = reached_[static_cast<std::size_t>(one.api)][way].load() ? way : how;
    }
    pairs.put("runtime.", index, ".how", reached_names[how]);
  }
  const auto& devices = known_facts();
  for (std::size_t index = 0; index < devices.count; ++index) {
    const auto& one = devices.of[index];
    pairs.put("device.", index, ".name", std::string_view(one.name.data()));
    pairs.put("device.", index, ".pci", std::string_view(one.pci_address.data()));
    pairs.put("device.", index, ".memory", one.memory);
    if (one.numa_node >= 0) {
      pairs.put("device.", index, ".numa_node", static_cast<std::uint64_t>(one.numa_node));
    }
  }
  const auto* const source = source_.load();
  pairs.put("device_times", source == nullptr ? "none: not read of this runtime" : source->state());
  pairs.put("stacks", how_.sites == call_sites::off   ? "none"
                      : how_.sites == call_sites::all ? "all"
                                                      : "sampled");
  put_fixing(pairs, count_fixed());
  pairs.put("memory_limit", how_.memory);
  pairs.put("dropped", dropped_ + without_log_.load());
  for (std::size_t index = 0; index < most_missed; ++index) {
    if (const char* const name = missed_[index].load()) {
      pairs.put("missed.", index, "", name);
    }
  }
  pairs.end();
  const auto sum = trace::recording::crc32(to.written());
  if (sum != coverage_written_) {
    coverage_written_ = sum;
    file_.write(block_type::coverage, to.written());
  }
}

void recorder::write_window(window_edge edge) noexcept {
  auto to = file_.payload();
  const auto now = monotonic_ns();
  event_encoder encoder(to, 0, now);
  encoder.put_window(now, edge);
  file_.write(block_type::events, to.written());
}

void recorder::write_end(const char* reason) noexcept {
  auto to = file_.payload();
  pair_writer pairs(to, pairs_memory_.all());
  pairs.put("reason", std::string_view(reason));
  pairs.put("events", events_ + devices_.taken());
  pairs.put("dropped", dropped_ + without_log_.load());
  pairs.put("end_monotonic_ns", monotonic_ns());
  pairs.end();
  file_.write(block_type::end, to.written());
}

// --- End ----------------------------------------------------------------------------------------

void recorder::end(const char* reason) noexcept {
  if (auto* const source = source_.load(); source != nullptr && is_recording()) {
    source->deliver();
  }
  flush();
  const no_signals calm;
  {
    // Under the lock under which it begins: nothing begins after the end.
    const locked hold(start_lock_);
    if (phase_.exchange(phase::ended) != phase::recording) {
      return;
    }
  }
  hurry();
  if (has_drainer_) {
    has_drainer_ = false;
    await_drainer();
  }
  const locked hold(drain_);
  write_end(reason);
  file_.close();
}

// It comes at once, unless this thread holds the loader's lock (it ends the process from within
// dlopen) and the drainer wants that. Then it is left alone: it finds the file closed.
void recorder::await_drainer() const noexcept {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (::pthread_timedjoin_np(drainer_, nullptr, &until) != 0) {
    ::pthread_detach(drainer_);
  }
}

// The loader's list has a lock that the child of a fork inherits as it is. So nobody may be looking
// at it for the recorder meanwhile, or the child would wait for ever when it looks. Only who forks
// while it walks through that list itself, and so has that lock, would wait here in vain.
void recorder::before_fork() noexcept {
  sigset_t all;
  sigset_t former;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  ::pthread_mutex_lock(&start_lock_);
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 1;
  fork_has_modules_ = ::pthread_mutex_clocklock(&modules_lock_, CLOCK_MONOTONIC, &until) == 0;
  ::pthread_mutex_lock(&drain_);
  signals_before_fork_ = former;
}

void recorder::after_fork_in_parent() noexcept {
  const auto former = signals_before_fork_;
  ::pthread_mutex_unlock(&drain_);
  if (fork_has_modules_) {
    ::pthread_mutex_unlock(&modules_lock_);
  }
  ::pthread_mutex_unlock(&start_lock_);
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

// The child begins anew, with a file of its own, when it uses a GPU runtime. Its one thread keeps
// its log; the others of the parent's are free.
void recorder::after_fork_in_child() noexcept {
  start_lock_ = PTHREAD_MUTEX_INITIALIZER;
  drain_ = PTHREAD_MUTEX_INITIALIZER;
  modules_lock_ = PTHREAD_MUTEX_INITIALIZER;
  for (std::size_t index = 0; index < log_count_.load(); ++index) {
    auto& log = *logs_[index].load();
    log.events.reset();
    log.stacks.reset();
    log.dropped.store(0);
    log.recycle();
    log.state.store(log_state::free);
  }
  devices_.reset();
  file_.close();
  has_drainer_ = false;
  events_ = 0;
  dropped_ = 0;
  modules_seen_ = 0;
  modules_bytes_ = 0;
  coverage_written_ = 0;
  without_log_.store(0);
  began_ = monotonic_ns();
  window_is_on_ = how_.delay_ns == 0;
  in_window_.store(window_is_on_);
  for (auto& known : devices_known_) {
    known.store(false);
  }
  source_.store(nullptr);
  work_.store(0);
  if (phase_.load() == phase::recording) {
    phase_.store(phase::idle);
  }
  ::pthread_sigmask(SIG_SETMASK, &signals_before_fork_, nullptr);
}

}  // namespace berth::interpose
