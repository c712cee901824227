// SPDX-License-Identifier: Apache-2.0
// No signal of the program is handled in the recorder's critical places: its handlers may fork,
// exit or call the GPU runtime. And writing past the limit of files' sizes raises SIGXFSZ, which
// must never arrive.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace berth::interpose {

class no_signals {
public:
  no_signals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former_);
    had_one_ = is_pending();
  }
  ~no_signals() {
    if (!had_one_ && is_pending()) {
      sigset_t one;
      ::sigemptyset(&one);
      ::sigaddset(&one, SIGXFSZ);
      const timespec at_once{};
      ::sigtimedwait(&one, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &former_, nullptr);
  }
  no_signals(const no_signals&) = delete;
  no_signals& operator=(const no_signals&) = delete;
  no_signals(no_signals&&) = delete;
  no_signals& operator=(no_signals&&) = delete;

private:
  static bool is_pending() noexcept {
    sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGXFSZ) == 1;
  }

  sigset_t former_{};
  bool had_one_ = false;
};

}  // namespace berth::interpose
