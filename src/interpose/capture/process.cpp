// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/process.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "berth/version.hpp"
#include "interpose/capture/clock.hpp"
#include "interpose/capture/cupti.hpp"
#include "interpose/capture/host_end.hpp"
#include "interpose/capture/interception.hpp"
#include "interpose/capture/kept_errno.hpp"

namespace berth::interpose {
namespace {

// Never destroyed: calls may come as long as the process lives.
alignas(recorder) std::array<std::byte, sizeof(recorder)> recorder_memory{};
std::atomic<recorder*> the_recorder{nullptr};
alignas(cupti_source) std::array<std::byte, sizeof(cupti_source)> cupti_memory{};
std::atomic<cupti_source*> cupti{nullptr};
std::atomic<bool> device_times_begun{false};
pthread_key_t thread_end{};
pid_t owner = 0;
bool is_forked = false;

// Plain data of the initial-exec model: a load relative to the thread, and no destructor.
[[gnu::tls_model("initial-exec")]] constinit thread_local thread_log* own_log = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local int depth = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t refused = 0;

// Calls of a thread without a log that go by before it asks again.
constexpr std::uint32_t calls_before_asking = 256;

void end_thread(void* log) noexcept {
  own_log = nullptr;
  recorder::release_log(*static_cast<thread_log*>(log));
}

thread_log* log_of_thread(recorder& to) noexcept {
  if (own_log == nullptr && refused-- == 0) {
    to.begin();
    own_log = to.acquire_log();
    refused = own_log == nullptr ? calls_before_asking : 0;
    if (own_log != nullptr) {
      ::pthread_setspecific(thread_end, own_log);
    }
  }
  return own_log;
}

void prepare_fork() noexcept {
  process_recorder()->before_fork();
}
void parent_forked() noexcept {
  process_recorder()->after_fork_in_parent();
}
void child_forked() noexcept {
  cupti.store(nullptr);  // the parent's
  owner = ::getpid();
  is_forked = true;
  own_log = nullptr;
  refused = 0;
  process_recorder()->after_fork_in_child();
}

void on_toggle(int) noexcept {
  process_recorder()->toggle_window();
}

// The program's own handler for that signal wins, whenever it sets it.
void watch_signal(int number) noexcept {
  struct sigaction now {};
  if (number == 0 || ::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) {
    return;
  }
  struct sigaction ours {};
  ours.sa_handler = on_toggle;
  ours.sa_flags = SA_RESTART;
  ::sigaction(number, &ours, nullptr);
}

// `berth run` asks whether the library is loaded at all.
void answer_check() noexcept {
  const char* const wanted = std::getenv("BERTH_PRELOAD_CHECK");
  if (wanted == nullptr || *wanted == '\0') {
    return;
  }
  std::array<char, 64> line{};
  const int length = std::snprintf(line.data(), line.size(), "berth-preload %s\n",
                                   std::string_view(version_text).data());
  static_cast<void>(!::write(std::atoi(wanted), line.data(), static_cast<std::size_t>(length)));
}

// Small copies and launches come by the million: of their sites, one in so many is looked at.
constexpr std::uint32_t one_in = 64;

bool wants_site(thread_log& log, const settings& how, call_id call, std::uint64_t bytes) noexcept {
  switch (how.sites) {
    case call_sites::off:
      return false;
    case call_sites::all:
      return true;
    case call_sites::automatic:
      break;
  }
  return bytes >= least_looked_at || is_allocation(call) || log.sampled++ % one_in == 0;
}

}  // namespace

recorder* process_recorder() noexcept {
  return the_recorder.load(std::memory_order_acquire);
}

void start_process() noexcept {
  answer_check();
  const auto how = settings_of_environment();
  if (!how.records() || process_recorder() != nullptr) {
    return;
  }
  owner = ::getpid();
  ::pthread_key_create(&thread_end, end_thread);
  the_recorder.store(new (recorder_memory.data()) recorder(how));
  ::pthread_atfork(prepare_fork, parent_forked, child_forked);
  watch_signal(how.toggle_signal);
}

void begin_device_times(api which) noexcept {
  auto* const own = process_recorder();
  if (own == nullptr || which != api::cuda || own->how().times == device_times::off ||
      owner != ::getpid()) {
    return;
  }
  const kept_errno kept;
  own->begin();
  if (!own->is_recording() || device_times_begun.exchange(true)) {
    return;
  }
  auto* const source = new (cupti_memory.data()) cupti_source(*own);
  const outermost ours;  // calls that CUPTI makes are nobody's
  source->begin();
  ours.leave();
  own->set_device_source(source);
  cupti.store(source);
  // Runs before what the driver has registered to end itself, which was before this.
  std::atexit([] { cupti.load()->end(); });
}

void yield_device_times() noexcept {
  if (auto* const source = cupti.load()) {
    source->stand_aside();
  }
  device_times_begun.store(true);
}

void end_process(const char* reason) noexcept {
  auto* const own = process_recorder();
  // The child of a vfork shares this memory, but is not this process.
  if (own == nullptr || owner != ::getpid()) {
    return;
  }
  // Also a runtime whose calls were never seen is to be told of. The child of a fork has inherited
  // its parent's, and mostly does nothing with it.
  if (!is_forked && find_mapped_runtimes().count > 0) {
    own->begin();
  }
  own->end(reason);
}

// --- Around a call ------------------------------------------------------------------------------

outermost::outermost() noexcept : is_outermost_(depth++ == 0) {}
void outermost::leave() const noexcept {
  --depth;
}

bool outermost::wants(call_frame& frame, call_id call) const noexcept {
  auto* const to = process_recorder();
  if (!is_outermost_ || to == nullptr) {
    return false;
  }
  const kept_errno kept;
  auto* const log = log_of_thread(*to);
  if (!to->is_recording() || (!changes_memory(call) && !to->in_window())) {
    return false;
  }
  if (log == nullptr) {
    to->note_without_log();
    return false;
  }
  frame.log_ = log;
  return true;
}

void call_frame::begin(call_id call, const role_values& values, const call_place& place) noexcept {
  const kept_errno kept;
  auto* const to = process_recorder();
  to->note_reached(row_of(call).api, reached_by::called);
  const auto& how = to->how();
  const auto bytes = values[role::bytes];
  event_.call = call;
  if (is_copy(call) && bytes >= least_looked_at) {
    look_at(host_end_of(call, values), event_);
  }
  if (how.contents == contents::hashed && is_copy(call)) {
    const auto end = host_end_of(call, values);
    if (end.first != 0 && end.first == values[role::src] && end.bytes > 0 &&
        values[role::rows] == 0) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument of the call
      const auto hash = sample_hash(reinterpret_cast<const void*>(end.first), end.bytes);
      event_.content = hash.value_or(0);
      event_.has_content = hash.has_value();
    }
  }
  event_.begin = monotonic_ns();
  if (wants_site(*log_, how, call, bytes)) {
    event_.stack = site_of(*log_, place, event_.begin);
    event_.begin = monotonic_ns();
  }
}

void call_frame::end(call_id call, const role_values& values, const call_schema& schema,
                     std::int64_t status) noexcept {
  const kept_errno kept;
  static_cast<void>(call);
  event_.duration = monotonic_ns() - event_.begin;
  event_.status = static_cast<std::int32_t>(status);
  for (std::size_t index = 0; index < schema.count; ++index) {
    event_.values[index] = values[schema.roles[index]];
  }
  auto* const slot = log_->events.reserve();
  if (slot == nullptr) {
    log_->dropped.fetch_add(1, std::memory_order_relaxed);
    process_recorder()->hurry();
    return;
  }
  *slot = event_;
  if (log_->events.commit() > log_->events.capacity / 2) {
    process_recorder()->hurry();
  }
}

}  // namespace berth::interpose
