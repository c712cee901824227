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
#include "interpose/capture/fix_gate.hpp"
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
pid_t recorded_process = 0;
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
  recorded_process = ::getpid();
  is_forked = true;
  own_log = nullptr;
  refused = 0;
  // The parent's log is nobody's here: the thread's end must not give back one that another has.
  ::pthread_setspecific(thread_end, nullptr);
  device_times_begun.store(true);  // devices cannot be used in the child of a fork
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

constexpr auto is_about_memory = [] {
  std::array<bool, call_count> found{};
  for (std::size_t index = 1; index < call_count; ++index) {
    found[index] = changes_memory(static_cast<call_id>(index));
  }
  return found;
}();

// Small copies and launches come by the million: of their sites, one in so many is looked at.
constexpr std::uint32_t one_in = 64;

constexpr auto allocates = [] {
  std::array<bool, call_count> found{};
  for (std::size_t index = 1; index < call_count; ++index) {
    found[index] = is_allocation(static_cast<call_id>(index));
  }
  return found;
}();

bool wants_site(thread_log& log, const settings& how, call_id call, std::uint64_t bytes) noexcept {
  switch (how.sites) {
    case call_sites::off:
      return false;
    case call_sites::all:
      return true;
    case call_sites::automatic:
      break;
  }
  return bytes >= least_looked_at || allocates[static_cast<std::size_t>(call)] ||
         log.sampled++ % one_in == 0;
}

}  // namespace

recorder* process_recorder() noexcept {
  return the_recorder.load(std::memory_order_acquire);
}

void start_process() noexcept {
  answer_check();
  start_fixing();
  const auto how = settings_of_environment();
  if (!how.records() || process_recorder() != nullptr) {
    return;
  }
  recorded_process = ::getpid();
  if (::pthread_key_create(&thread_end, end_thread) != 0) {
    return;  // the program has taken all of them
  }
  the_recorder.store(new (recorder_memory.data()) recorder(how));
  ::pthread_atfork(prepare_fork, parent_forked, child_forked);
  watch_signal(how.toggle_signal);
}

void begin_device_times(api which) noexcept {
  auto* const own = process_recorder();
  if (own == nullptr || which != api::cuda || own->how().times == device_times::off ||
      recorded_process != ::getpid()) {
    return;
  }
  const kept_errno kept;
  own->begin();
  if (!own->is_recording() || device_times_begun.exchange(true)) {
    return;
  }
  auto* const source = new (cupti_memory.data()) cupti_source(*own);
  {
    ++depth;  // calls that CUPTI makes are nobody's
    source->begin();
    --depth;
  }
  own->set_device_source(source);
  cupti.store(source);
  // Runs before what the driver has registered to end itself, which was before this.
  std::atexit([] {
    if (auto* const known = cupti.load()) {  // none in the child of a fork
      known->end();
    }
  });
}

void yield_device_times() noexcept {
  if (auto* const source = cupti.load()) {
    source->stand_aside();
  }
  device_times_begun.store(true);
}

void adopt_device_buffers(buffer_callbacks& callbacks) noexcept {
  if (auto* const source = cupti.load()) {
    source->adopt(callbacks);
  }
}

void end_process(const char* reason) noexcept {
  auto* const own = process_recorder();
  // The child of a vfork shares this memory, but is not this process.
  if (own == nullptr || recorded_process != ::getpid()) {
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

call_scope::call_scope(call_id call) noexcept {
  auto* const to = process_recorder();
  is_outermost_ = depth++ == 0;
  if (!is_outermost_ || to == nullptr) {
    return;
  }
  const bool is_needed_later = is_about_memory[static_cast<std::size_t>(call)];
  if (!is_needed_later && !to->in_window()) {
    return;
  }
  const kept_errno kept;
  auto* const log = log_of_thread(*to);
  if (!to->is_recording()) {
    return;
  }
  if (log == nullptr) {
    to->note_without_log();
    return;
  }
  log_ = log;
  event_ = log->events.reserve();
  if (event_ == nullptr) {
    log->dropped.fetch_add(1, std::memory_order_release);
    to->hurry();
    return;
  }
  event_->call = call;
  to->note_reached(row_of(call).api, reached_by::called);
}

void call_scope::leave() const noexcept {
  --depth;
}

void call_scope::look(const host_range& host, std::uint64_t bytes,
                      const call_place& place) noexcept {
  auto& event = *event_;
  const auto& to = *process_recorder();
  const auto& how = to.how();
  event.pages = host_pages::unknown;
  event.host_node = -1;
  event.stack = 0;
  event.has_content = false;
  event.is_fixed = false;
  if (host.bytes >= least_looked_at) {
    const kept_errno kept;
    look_at(host, event);
  }
  if (how.contents == contents::hashed && host.is_source && host.is_whole && host.bytes > 0) {
    const kept_errno kept;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument of the call
    const auto hash = sample_hash(reinterpret_cast<const void*>(host.first), host.bytes);
    event.content = hash.value_or(0);
    event.has_content = hash.has_value();
  }
  if (wants_site(*log_, how, event.call, bytes)) {
    const kept_errno kept;
    event.stack = site_of(*log_, place, to.clock());
  }
  event.begin = read_ticks(to.clock());
}

void call_scope::end(std::int64_t status) noexcept {
  auto* const to = process_recorder();
  event_->duration = read_ticks(to->clock()) - event_->begin;
  event_->status = static_cast<std::int32_t>(status);
  const auto which = row_of(event_->call).api;
  if (log_->events.commit() > decltype(log_->events)::capacity / 2) {
    const kept_errno kept;
    to->hurry();
  }
  if (status == 0 && to->wants_devices(which)) {
    const kept_errno kept;
    to->set_devices(which, ask_for_devices(which));
  }
}

}  // namespace berth::interpose
