// SPDX-License-Identifier: Apache-2.0
// Ends the program when a case does not end: a wait that never returns cannot be taken back, but
// the failure can name the case. Everything that ended before has been reported by then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace berth::conformance {

class watchdog {
public:
  // `on_expiry(name)` runs on the watchdog's thread when a case has run for longer than `limit`.
  watchdog(std::chrono::milliseconds limit, std::function<void(const std::string&)> on_expiry);
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  watchdog(watchdog&&) = delete;
  watchdog& operator=(watchdog&&) = delete;
  ~watchdog();

  void begin(std::string name);
  void end();

private:
  void watch();

  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> on_expiry_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;  // empty: no case runs
  std::chrono::steady_clock::time_point until_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace berth::conformance
