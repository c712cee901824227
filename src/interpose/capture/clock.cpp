// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace berth::interpose {
namespace {

// Shorter stretches tell little of the rate.
constexpr std::int64_t least_stretch_ns = 1'000'000;

#if defined(__x86_64__)
bool has_invariant_counter() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x8000'0007U, &a, &b, &c, &d) != 0 && (d & (1U << 8U)) != 0;
}

// The kernel does not use a counter that it has seen to drift between processors.
bool is_the_systems_clock() noexcept {
  std::array<char, 16> name{};
  const int file = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                          O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const auto length = ::read(file, name.data(), name.size());
  ::close(file);
  return length > 0 &&
         std::string_view(name.data(), static_cast<std::size_t>(length)).starts_with("tsc");
}
#endif

}  // namespace

tick_source find_tick_source() noexcept {
#if defined(__x86_64__)
  if (has_invariant_counter() && is_the_systems_clock()) {
    return tick_source::processor;
  }
#endif
  return tick_source::monotonic;
}

tick_scale::tick_scale(tick_source from) noexcept : from_(from), last_(now()) {}

// The pair between whose readings the least time has passed.
tick_scale::moment tick_scale::now() const noexcept {
  moment best{};
  std::uint64_t least = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto before = read_ticks(from_);
    const auto ns = monotonic_ns();
    const auto after = read_ticks(from_);
    if (after - before < least) {
      least = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

void tick_scale::renew() noexcept {
  if (from_ == tick_source::monotonic) {
    return;
  }
  auto next = now();
  while (ns_per_tick_ == 0 && next.ns < last_.ns + std::uint64_t{least_stretch_ns}) {
    const timespec rest{.tv_sec = 0, .tv_nsec = least_stretch_ns};
    ::nanosleep(&rest, nullptr);
    next = now();
  }
  if (next.ns < last_.ns + std::uint64_t{least_stretch_ns} || next.ticks <= last_.ticks) {
    return;
  }
  ns_per_tick_ =
      static_cast<double>(next.ns - last_.ns) / static_cast<double>(next.ticks - last_.ticks);
  last_ = next;
}

std::uint64_t tick_scale::nanoseconds(std::uint64_t ticks) const noexcept {
  if (from_ == tick_source::monotonic) {
    return ticks;
  }
  const auto passed = static_cast<double>(static_cast<std::int64_t>(ticks - last_.ticks));
  return last_.ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(passed * ns_per_tick_));
}

std::uint64_t tick_scale::duration(std::uint64_t ticks) const noexcept {
  return from_ == tick_source::monotonic
             ? ticks
             : static_cast<std::uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
}

}  // namespace berth::interpose
