// SPDX-License-Identifier: Apache-2.0
// Who runs the host side of background work (the workers of the copy engine): real threads, or the
// simulator, where the virtual clock decides when each worker goes on.
//
//   worker   something that is called again and again, a step at a time. Steps of one worker never
//            overlap; steps of different workers may.
//   step     a bounded piece of work: copy a block, look whether an event has come. It must not
//            block, neither on a lock that another step holds for long nor on the GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace berth::runtime {

// What a step says about the next one.
enum class step_outcome : std::uint8_t {
  again,     // there is more to do
  poll,      // waits for the GPU: call again shortly
  sleep,     // nothing to do before wake()
  finished,  // never call again
};

class executor {
public:
  using step = std::function<step_outcome()>;

  // One worker; destroying it stops it, after the step that runs, if any.
  class worker {
  public:
    worker() = default;
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    worker(worker&&) = delete;
    worker& operator=(worker&&) = delete;
    virtual ~worker() = default;
    // Calls the step soon, also if it has just said `sleep`. Any thread.
    virtual void wake() noexcept = 0;
  };

  executor() = default;
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;
  executor(executor&&) = delete;
  executor& operator=(executor&&) = delete;
  virtual ~executor() = default;

  // Pre: the executor outlives the worker. The first step comes soon, without wake().
  [[nodiscard]] virtual std::unique_ptr<worker> start(step what) = 0;

  // Blocks until `done` says so; workers go on meanwhile. False where nothing is left that could
  // ever make it true (only an executor with its own clock can know that).
  virtual bool wait_until(const std::function<bool()>& done) = 0;
};

}  // namespace berth::runtime
