// SPDX-License-Identifier: Apache-2.0
// Waiting for something that usually comes within microseconds, without a CPU for what does not.
#pragma once

#include <chrono>
#include <thread>

namespace berth::transfer {

class backoff {
public:
  // Waits a little; longer the longer nothing has come.
  void wait() {
    const auto now = std::chrono::steady_clock::now();
    if (since_ == std::chrono::steady_clock::time_point{}) {
      since_ = now;
    }
    const auto waited = now - since_;
    if (waited < spinning) {
      for (int count = 0; count < pauses; ++count) {
        relax();
      }
    } else if (waited < yielding) {
      std::this_thread::yield();
    } else if (waited < napping) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }
  // It has come.
  void reset() { since_ = {}; }

  // Tells the CPU that this thread spins.
  static void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");  // NOLINT(hicpp-no-assembler)
#endif
  }

private:
  static constexpr std::chrono::microseconds spinning{30};
  static constexpr std::chrono::microseconds yielding{1'000};
  static constexpr std::chrono::milliseconds napping{50};
  static constexpr int pauses = 8;

  std::chrono::steady_clock::time_point since_{};
};

}  // namespace berth::transfer
