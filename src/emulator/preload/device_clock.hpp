// SPDX-License-Identifier: Apache-2.0
// The time of the emulated devices. It passes only while a device works: a copy takes what the
// machine model says, whatever the emulation took, and the host's own time between two packets does
// not count. So device timestamps are the same in each run.
//
// All devices of a process share it, so that work which the host started after it had seen other
// work end is also later by device timestamps. It starts at the host's clock, with the first
// packet: AMD's runtime takes timestamps from before its own start for invalid.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace berth::emulator {

// 100 MHz, as AMD's devices count.
inline constexpr std::uint64_t ns_per_tick = 10;

class device_clock {
public:
  // Only the first call counts.
  void start_at(std::uint64_t moment_ns) noexcept {
    std::uint64_t not_started = 0;
    now_ns_.compare_exchange_strong(not_started, moment_ns, std::memory_order_relaxed);
  }
  // The latest moment that any engine has reached.
  [[nodiscard]] std::uint64_t now_ns() const noexcept {
    return now_ns_.load(std::memory_order_relaxed);
  }
  void reached(std::uint64_t moment_ns) noexcept {
    auto now = now_ns_.load(std::memory_order_relaxed);
    while (moment_ns > now &&
           !now_ns_.compare_exchange_weak(now, moment_ns, std::memory_order_relaxed)) {
    }
  }

  // When an engine last completed the signal whose value lies at this GPU address; 0 if none has.
  [[nodiscard]] std::uint64_t completed_ns(std::uint64_t value_address) const {
    const std::lock_guard hold(lock_);
    const auto found = completed_.find(value_address);
    return found == completed_.end() ? 0 : found->second;
  }
  void complete(std::uint64_t value_address, std::uint64_t moment_ns) {
    const std::lock_guard hold(lock_);
    completed_[value_address] = moment_ns;
  }

private:
  std::atomic<std::uint64_t> now_ns_{0};
  mutable std::mutex lock_;
  std::unordered_map<std::uint64_t, std::uint64_t> completed_;
};

}  // namespace berth::emulator
