// SPDX-License-Identifier: Apache-2.0
#include "conformance/watchdog.hpp"

#include <utility>

namespace berth::conformance {

watchdog::watchdog(std::chrono::milliseconds limit,
                   std::function<void(const std::string&)> on_expiry)
    : limit_(limit), on_expiry_(std::move(on_expiry)), thread_([this] { watch(); }) {}

watchdog::~watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void watchdog::begin(std::string name) {
  {
    const std::lock_guard lock(mutex_);
    name_ = std::move(name);
    until_ = std::chrono::steady_clock::now() + limit_;
  }
  changed_.notify_one();
}

void watchdog::end() {
  const std::lock_guard lock(mutex_);
  name_.clear();
}

void watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (name_.empty()) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() >= until_) {
      on_expiry_(name_);
      name_.clear();
    } else {
      // A copy: a new case may move the original while this waits.
      const auto until = until_;
      changed_.wait_until(lock, until);
    }
  }
}

}  // namespace berth::conformance
