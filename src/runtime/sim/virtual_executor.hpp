// SPDX-License-Identifier: Apache-2.0
// Workers on the virtual clock. Each has its own time, which its work moves on (driver::charge);
// steps run when their time has come and a CPU is free, on whichever thread lets time pass.
#pragma once

#include <memory>
#include <vector>

#include "runtime/executor.hpp"
#include "runtime/sim/scheduler.hpp"

namespace berth::runtime::sim {

class virtual_executor final : public executor, public scheduler::agenda {
public:
  // The scheduler must outlive it.
  virtual_executor(scheduler& of, unsigned cpus);
  ~virtual_executor() override;
  virtual_executor(const virtual_executor&) = delete;
  virtual_executor& operator=(const virtual_executor&) = delete;
  virtual_executor(virtual_executor&&) = delete;
  virtual_executor& operator=(virtual_executor&&) = delete;

  [[nodiscard]] std::unique_ptr<worker> start(step what) override;
  bool wait_until(const std::function<bool()>& done) override;

  [[nodiscard]] ticks next() const override;
  void run_due(scheduler::lock& held, ticks now) override;

  // Workers whose step is under way at that time: they share the memory's bandwidth.
  [[nodiscard]] unsigned busy_at(ticks when) const noexcept;

private:
  struct agent;
  class agent_handle;

  void run(scheduler::lock& held, const std::shared_ptr<agent>& one);
  void stop(const std::shared_ptr<agent>& one) noexcept;
  void wake(agent& one) noexcept;
  [[nodiscard]] ticks start_of(const agent& one) const;

  scheduler& of_;
  std::vector<std::shared_ptr<agent>> agents_;
  std::vector<ticks> cpu_free_at_;
};

}  // namespace berth::runtime::sim
