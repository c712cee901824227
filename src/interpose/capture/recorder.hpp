// SPDX-License-Identifier: Apache-2.0
// Records one process: gives each thread its log, empties the logs into the file from a thread of
// its own, and ends the file. The program's threads never wait for it, except where the program
// forks or ends.
//
// Locks. `drain_` is held while logs are emptied and blocks are written; never while the loader's
// lock may be wanted (a thread that holds that one, in dlopen, may fork or end). What is mapped is
// therefore asked for before `drain_` is taken, under `modules_lock_`. Order: start_lock_,
// modules_lock_, drain_. Signals are blocked while any of them is held: handlers may fork and exit.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/capture/clock.hpp"
#include "interpose/capture/coverage.hpp"
#include "interpose/capture/device_log.hpp"
#include "interpose/capture/devices.hpp"
#include "interpose/capture/event_encoder.hpp"
#include "interpose/capture/modules.hpp"
#include "interpose/capture/settings.hpp"
#include "interpose/capture/thread_log.hpp"
#include "interpose/capture/trace_file.hpp"

namespace berth::interpose {

// Where records of devices come from: the profiling interface of a runtime.
class device_source {
public:
  device_source() = default;
  device_source(const device_source&) = delete;
  device_source& operator=(const device_source&) = delete;
  device_source(device_source&&) = delete;
  device_source& operator=(device_source&&) = delete;
  virtual ~device_source() = default;
  // In the recorder's thread, and in the one that ends the recording: perhaps at the same time.
  // What has finished goes to recorder::devices().
  virtual void deliver() noexcept = 0;
  // For coverage: "cupti", "none: why".
  [[nodiscard]] virtual const char* state() const noexcept = 0;
};

class recorder {
public:
  explicit recorder(const settings& how) noexcept;
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;
  recorder(recorder&&) = delete;
  recorder& operator=(recorder&&) = delete;
  // Ends the recording.
  ~recorder();

  [[nodiscard]] const settings& how() const noexcept { return how_; }

  [[nodiscard]] tick_source clock() const noexcept { return clock_; }

  // A GPU runtime is in use: from now on there is a file. Cheap when it has begun.
  void begin() noexcept;
  // The calling thread's log; null where there is no memory for one, or nothing is recorded. The
  // caller keeps it, until release_log at the thread's end.
  [[nodiscard]] thread_log* acquire_log() noexcept;
  static void release_log(thread_log& log) noexcept;
  // An event of a thread that has got no log.
  void note_without_log() noexcept { without_log_.fetch_add(1, std::memory_order_relaxed); }
  // Whether copies, launches and waits are recorded now; allocations always are.
  [[nodiscard]] bool in_window() const noexcept {
    return in_window_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_recording() const noexcept {
    return phase_.load(std::memory_order_relaxed) == phase::recording;
  }
  // The log is half full.
  void hurry() noexcept;
  // For a signal handler: recording stops, or goes on.
  void toggle_window() noexcept { toggled_.fetch_add(1, std::memory_order_relaxed); }

  // How a call of that interface has reached the recorder. Cheap when it is known already.
  void note_reached(api which, reached_by how) noexcept {
    auto& known = reached_[static_cast<std::size_t>(which)][static_cast<std::size_t>(how)];
    if (!known.load(std::memory_order_relaxed)) {
      known.store(true, std::memory_order_relaxed);
    }
  }
  // The devices of an interface, once; true for the first that asks.
  [[nodiscard]] bool wants_devices(api which) noexcept {
    auto& known = devices_known_[static_cast<std::size_t>(which)];
    return !known.load(std::memory_order_relaxed) && !known.exchange(true);
  }
  void set_devices(api which, const known_devices& found) noexcept;
  // The program has got a function of that name that is not recorded: of a second copy of a
  // runtime, or of a form that spec/ lacks. `name` is one of spec/'s.
  void note_missed(const char* name) noexcept;
  void set_device_source(device_source* source) noexcept { source_.store(source); }
  [[nodiscard]] device_log& devices() noexcept { return devices_; }

  // Writes what there is.
  void flush() noexcept;
  // Writes all, and the end. Nothing is recorded afterwards.
  void end(const char* reason) noexcept;

  // Around fork.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

private:
  enum class phase : std::uint8_t { idle, recording, ended };
  static constexpr std::size_t most_logs = 1024;

  static void* run_drainer(void* self);
  void drain_until_end() noexcept;
  void wait_for_work() noexcept;
  void await_drainer() const noexcept;
  [[nodiscard]] bool wants_window() const noexcept;
  void update_window() noexcept;
  [[nodiscard]] bool start() noexcept;

  // What must be asked for while drain_ is not held.
  struct surroundings {
    mapped_runtimes runtimes;
  };
  void look_around(surroundings& around) noexcept;

  // Under drain_. What is mapped was asked for before.
  void drain_all(const surroundings& around) noexcept;
  void drain_stacks(thread_log& log) noexcept;
  void drain_events(thread_log& log) noexcept;
  void drain_devices() noexcept;
  void note_dropped(thread_log& log) noexcept;
  void write_process() noexcept;
  void write_calls() noexcept;
  void write_modules() noexcept;
  [[nodiscard]] const known_devices& known_facts() const noexcept;
  void write_coverage(const surroundings& around) noexcept;
  void write_window(window_edge edge) noexcept;
  void write_end(const char* reason) noexcept;

  settings how_;
  tick_source clock_;
  std::atomic<phase> phase_{phase::idle};
  std::atomic<bool> in_window_{true};
  std::atomic<std::uint32_t> toggled_{0};
  std::uint64_t began_ = 0;  // the process, or this part of it after a fork
  bool window_is_on_ = true;

  pthread_mutex_t start_lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t drain_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<std::uint32_t> work_{0};  // futex: 1 when there is some
  pthread_t drainer_{};
  bool has_drainer_ = false;

  std::array<std::atomic<thread_log*>, most_logs> logs_{};
  std::atomic<std::size_t> log_count_{0};
  std::atomic<std::uint64_t> without_log_{0};  // events of threads that got none

  trace_file file_;
  tick_scale scale_;
  std::uint64_t events_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint32_t coverage_written_ = 0;  // its checksum
  own_memory pairs_memory_;             // under drain_: the program's threads may have small stacks
  sigset_t signals_before_fork_{};      // under start_lock_
  bool fork_has_modules_ = false;
  // What is mapped, as a block's payload: filled without drain_, under modules_lock_.
  pthread_mutex_t modules_lock_ = PTHREAD_MUTEX_INITIALIZER;
  own_memory modules_memory_;
  std::size_t modules_bytes_ = 0;
  std::uint64_t modules_seen_ = 0;  // the loader's count of changes

  std::array<std::array<std::atomic<bool>, 4>, 2> reached_{};
  static constexpr std::size_t most_missed = 16;
  std::array<std::atomic<const char*>, most_missed> missed_{};
  std::atomic<device_source*> source_{nullptr};

  device_log devices_;
  std::array<std::atomic<bool>, 2> devices_known_{};
  // Written once, before the flag is set; read by the drainer behind it.
  std::array<known_devices, 2> device_facts_{};
  std::array<std::atomic<bool>, 2> devices_ready_{};
};

}  // namespace berth::interpose
