// SPDX-License-Identifier: Apache-2.0
// The clocks of recordings. Files have CLOCK_MONOTONIC in nanoseconds. Around a call, where two
// looks at the clock are most of what recording costs, the processor's own counter is read, where
// it runs at one rate and the system itself goes by it; what it says is turned into nanoseconds
// later.
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace berth::interpose {

[[nodiscard]] inline std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

enum class tick_source : std::uint8_t { monotonic, processor };

// What this machine allows. Reads a file.
[[nodiscard]] tick_source find_tick_source() noexcept;

[[nodiscard]] inline std::uint64_t read_ticks(tick_source from) noexcept {
#if defined(__x86_64__)
  if (from == tick_source::processor) {
    return __rdtsc();
  }
#endif
  static_cast<void>(from);
  return monotonic_ns();
}

// From ticks to nanoseconds, by two moments at which both clocks were read. The system may steer
// its clock, so the moments are renewed again and again.
class tick_scale {
public:
  explicit tick_scale(tick_source from) noexcept;
  // From now on by the last moment and this one. The first time it may wait a millisecond: before,
  // the rate is not known.
  void renew() noexcept;
  [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t ticks) const noexcept;
  [[nodiscard]] std::uint64_t duration(std::uint64_t ticks) const noexcept;

private:
  struct moment {
    std::uint64_t ticks;
    std::uint64_t ns;
  };
  [[nodiscard]] moment now() const noexcept;

  tick_source from_;
  moment last_;
  double ns_per_tick_ = 0;  // 0: not known yet
};

}  // namespace berth::interpose
