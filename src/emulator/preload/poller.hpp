// SPDX-License-Identifier: Apache-2.0
// The one thread that runs the engines of all queues. A program rings a doorbell by writing to
// memory, which wakes nobody, so the poller looks: often while there is work, seldom when there is
// none. A call of the driver wakes it, because most programs that wait for a device make one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/preload/hardware_queue.hpp"

namespace berth::emulator {

class poller {
public:
  poller() = default;
  poller(const poller&) = delete;
  poller& operator=(const poller&) = delete;
  ~poller() = delete;  // its thread runs to the end of the process

  // Starts the thread with the first queue.
  void add(std::unique_ptr<hardware_queue> queue);
  // Waits for the current step at most, then destroys the queue. False if there is none.
  bool remove(std::uint32_t id);
  [[nodiscard]] bool has(std::uint32_t id);
  [[nodiscard]] bool empty();
  void wake();

private:
  [[noreturn]] void run();
  step_outcome step_all();

  std::mutex lock_;
  std::condition_variable woken_;
  bool wake_ = false;
  bool started_ = false;
  std::vector<std::unique_ptr<hardware_queue>> queues_;
};

}  // namespace berth::emulator
