// SPDX-License-Identifier: Apache-2.0
// The way into libberth_fix.so. The one place with state that all calls share: a library that was
// opened by a preloaded one has nobody to hand it anything.
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "interpose/fix/copier.hpp"
#include "interpose/fix/decision.hpp"

namespace berth::interpose::fix {
namespace {

// So many failures, one behind the other, are no accident.
constexpr unsigned most_failures = 16;
// How long the process' end waits for copies of threads that still run.
constexpr std::chrono::seconds farewell{2};

enum class phase : std::uint8_t { unopened, opening, open, unusable };

struct slot {
  std::atomic<fix::phase> phase{phase::unopened};
  std::unique_ptr<copier> of;  // written before phase says `open`
};

// Never destroyed: calls may come as long as the process lives.
struct process_state {
  std::array<slot, 2> runtimes;
  const pid_t owner = ::getpid();
  std::atomic<unsigned> users{0};
  std::atomic<unsigned> failures{0};  // in a row
  std::atomic<bool> has_ended{false};
  std::atomic<bool> engines_have_ended{false};
};

process_state& the_process() {
  static auto* const state = new process_state;  // NOLINT: see above
  return *state;
}

// Early: the child of a fork must not find it half made.
__attribute__((constructor)) void begin_library() noexcept {
  static_cast<void>(the_process());
}

// A thread that is cancelled or asked to end must not leave a copy half done.
class uncancelled {
public:
  uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }
  ~uncancelled() { ::pthread_setcancelstate(former_, nullptr); }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;
  uncancelled(uncancelled&&) = delete;
  uncancelled& operator=(uncancelled&&) = delete;

private:
  int former_ = PTHREAD_CANCEL_ENABLE;
};

class user {
public:
  explicit user(std::atomic<unsigned>& count) noexcept : count_(count) { count_.fetch_add(1); }
  ~user() { count_.fetch_sub(1); }
  user(const user&) = delete;
  user& operator=(const user&) = delete;
  user(user&&) = delete;
  user& operator=(user&&) = delete;

private:
  std::atomic<unsigned>& count_;
};

// Also before the runtimes' own ends at the process' end: they were registered earlier.
void end_engines() noexcept {
  auto& process = the_process();
  if (process.owner != ::getpid()) {
    return;
  }
  process.has_ended.store(true);
  const auto deadline = std::chrono::steady_clock::now() + farewell;
  while (process.users.load() > 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (process.engines_have_ended.exchange(true)) {
    return;
  }
  for (auto& one : process.runtimes) {
    if (one.phase.load() == phase::open) {
      one.of->end();
    }
  }
}

void give_back_rings() noexcept {
  auto& process = the_process();
  if (process.owner != ::getpid()) {
    return;
  }
  const user counted(process.users);
  if (process.has_ended.load()) {
    return;
  }
  for (auto& one : process.runtimes) {
    if (one.phase.load() == phase::open) {
      one.of->give_back();
    }
  }
}

void open_slot(slot& one, runtime of, const char* library) {
  one.of = copier::open(of, library);
  if (one.of == nullptr) {
    one.phase.store(phase::unusable);
    return;
  }
  static const bool is_registered = std::atexit(end_engines) == 0;
  static_cast<void>(is_registered);
  one.phase.store(phase::open);
}

// Null and why, or the runtime's copier.
copier* find_copier(process_state& process, runtime of, const char* library, pass& why) {
  auto& one = process.runtimes.at(static_cast<std::size_t>(of));
  auto seen = phase::unopened;
  if (one.phase.compare_exchange_strong(seen, phase::opening)) {
    open_slot(one, of, library);
    seen = one.phase.load();
  }
  if (seen != phase::open) {
    why = seen == phase::opening ? pass::opening : pass::no_engine;
    return nullptr;
  }
  if (one.of->library() != library) {
    why = pass::other_runtime;
    return nullptr;
  }
  return one.of.get();
}

outcome copy(process_state& process, const request& what) {
  const auto why = judge_call({.of = what.of,
                               .bytes = what.bytes,
                               .stream = what.stream,
                               .is_own_process = process.owner == ::getpid(),
                               .has_ended = process.has_ended.load()});
  if (why != pass::none) {
    return {.why = why};
  }
  const user counted(process.users);
  if (process.has_ended.load()) {
    return {.why = pass::ended};
  }
  outcome how;
  auto* const found = find_copier(process, what.of, what.library, how.why);
  if (found == nullptr) {
    return how;
  }
  how = found->copy(what);
  if (how.why != pass::failed) {
    process.failures.store(0, std::memory_order_relaxed);
  } else if (process.failures.fetch_add(1) + 1 >= most_failures) {
    process.has_ended.store(true);
  }
  return how;
}

bool handle_pinned(process_state& process, pinned_request& what) {
  if (process.owner != ::getpid()) {
    return false;
  }
  const user counted(process.users);
  if (process.has_ended.load()) {
    return false;
  }
  pass why = pass::none;
  auto* const found = find_copier(process, what.of, what.library, why);
  return found != nullptr && found->handle_pinned(what);
}

}  // namespace
}  // namespace berth::interpose::fix

extern "C" __attribute__((visibility("default"))) void berth_fix_copy(
    const berth::interpose::fix::request* what, berth::interpose::fix::outcome* how) noexcept {
  using namespace berth::interpose::fix;  // NOLINT: a function of the C interface
  const uncancelled whole;
  try {
    *how = what->version == interface_version && what->library != nullptr
               ? copy(the_process(), *what)
               : outcome{.why = pass::no_library};
  } catch (...) {
    *how = {.why = pass::failed};
  }
}

extern "C" __attribute__((visibility("default"))) void berth_fix_end() noexcept {
  berth::interpose::fix::end_engines();
}

extern "C" __attribute__((visibility("default"))) void berth_fix_give_back() noexcept {
  const berth::interpose::fix::uncancelled whole;
  berth::interpose::fix::give_back_rings();
}

extern "C" __attribute__((visibility("default"))) bool berth_fix_pinned(
    berth::interpose::fix::pinned_request* what) noexcept {
  using namespace berth::interpose::fix;  // NOLINT: a function of the C interface
  const uncancelled whole;
  try {
    return what->version == interface_version && what->library != nullptr &&
           handle_pinned(the_process(), *what);
  } catch (...) {
    return false;
  }
}
