// SPDX-License-Identifier: Apache-2.0
// Workers as real threads, on the CPUs that they are given. A worker that has just worked looks for
// more for a moment before it sleeps, so that the next copy of a series need not wake it.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/executor.hpp"

namespace berth::transfer {

class thread_executor final : public runtime::executor {
public:
  // `alert_for`: at most so long does a worker without work look for more before it sleeps.
  explicit thread_executor(std::chrono::nanoseconds alert_for) : alert_for_(alert_for) {}

  // Where the workers that are started from now on may run; empty: anywhere. Not while one is
  // started.
  void place_on(std::vector<int> cpus) { cpus_ = std::move(cpus); }

  // Throws std::system_error where no thread can be had.
  [[nodiscard]] std::unique_ptr<worker> start(step what) override;
  bool wait_until(const std::function<bool()>& done) override;

private:
  std::vector<int> cpus_;
  std::chrono::nanoseconds alert_for_;
};

}  // namespace berth::transfer
