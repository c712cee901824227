// SPDX-License-Identifier: Apache-2.0
// The seed's bits. The same on every machine, which the standard library's distributions are not.
#pragma once

#include <cmath>
#include <cstdint>

namespace berth::runtime::sim {

class random_bits {
public:
  explicit random_bits(std::uint64_t seed) noexcept : state_(seed) {}

  // SplitMix64 (Steele, Lea, Flood 2014).
  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  // In [0, 1).
  double fraction() noexcept { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
  // In [0, below). Pre: below > 0.
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }
  // Spread evenly over orders of magnitude, in [least, most). Pre: 0 < least < most.
  double log_uniform(double least, double most) noexcept {
    return least * std::exp(fraction() * std::log(most / least));
  }

private:
  std::uint64_t state_;
};

}  // namespace berth::runtime::sim
