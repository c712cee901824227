// SPDX-License-Identifier: Apache-2.0
// Starting a program in this one's place and waiting for its end: what `berth run` and
// `berth emulate` share.
//
// A signal that ends the program must not end us before it, since files are to be removed and a
// report is to be written afterwards. So whoever starts a program holds the signals first; they are
// released only while the program runs, and are then passed on to it.
#pragma once

#include <signal.h>

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "berth/result.hpp"
#include "core/descriptor.hpp"

namespace berth::program {

// A variable of the environment.
struct variable {
  std::string name;
  std::string value;
  friend bool operator==(const variable&, const variable&) = default;
};

struct start_request {
  std::vector<std::string> words;     // its name or path, then its arguments
  std::vector<variable> environment;  // set for it, besides what is there
  std::string pid_variable;           // of the environment: its own process id; empty: none
  std::vector<int> passed_signals;    // passed on to it, besides SIGTERM and SIGHUP
};

// How a program has ended: by its exit status or by a signal.
struct ending {
  int exit_status = 0;
  int signal = 0;  // 0: none

  // As a shell tells it: 128 and the signal's number for a program that a signal has ended.
  [[nodiscard]] int shell_status() const noexcept {
    return signal != 0 ? 128 + signal : exit_status;
  }
};

// Keeps SIGINT, SIGQUIT, SIGTERM and SIGHUP waiting while it lives; and those that only a program
// knows what to do with (SIGUSR1 and the like), which are gone afterwards.
class held_signals {
public:
  held_signals() noexcept;
  held_signals(const held_signals&) = delete;
  held_signals& operator=(const held_signals&) = delete;
  ~held_signals();

  void release() const noexcept { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  void hold_again() const noexcept { ::pthread_sigmask(SIG_SETMASK, &held_, nullptr); }
  // What is held, as a set.
  [[nodiscard]] static sigset_t all() noexcept;

private:
  sigset_t before_{};
  sigset_t held_{};
};

// While it lives, one of the held signals calls `tidy` and then ends this process as if it had not
// been held. For long work while signals are held; threads that are started meanwhile hold them
// too.
class held_signals_watch {
public:
  explicit held_signals_watch(std::function<void()> tidy);
  held_signals_watch(const held_signals_watch&) = delete;
  held_signals_watch& operator=(const held_signals_watch&) = delete;
  ~held_signals_watch();

private:
  void watch(const std::function<void()>& tidy) const;

  descriptor signals_;
  descriptor stop_;
  std::thread watcher_;
};

// Blocks until the program has ended; it has our standard input, output and error. Interrupts from
// the terminal reach it, and it decides; SIGTERM and SIGHUP are passed on to it.
// @errors usage for a program that cannot be started
[[nodiscard]] result<ending> run(const start_request& request, const held_signals& signals);

// The names of our own environment that begin so.
[[nodiscard]] std::vector<std::string> names_with(std::string_view prefix);

// The value of a variable of our own environment; empty if there is none.
[[nodiscard]] std::string environment(const char* name);

// A value for LD_PRELOAD: these libraries, in this order, and then what our own has.
[[nodiscard]] std::string preload_list(std::span<const std::filesystem::path> libraries);

// Where a library of ours may be.
struct library_name {
  std::string_view file;       // "libberth_preload.so"
  const char* variable;        // of the environment: says where it is
  std::string_view installed;  // its path where it was installed; empty: nowhere
};

// Where the variable says, beside this program, in ../lib, or where it was installed.
// @errors file_unreadable
[[nodiscard]] result<std::filesystem::path> find_library(const library_name& name);

}  // namespace berth::program
