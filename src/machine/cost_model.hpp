// SPDX-License-Identifier: Apache-2.0
// What moving bytes costs.
//
// figure   a number, how it is known and where it comes from
// path     source, engine and destination of a copy, with the traits that change its speed
// cost     time by size: `time = a + bytes / b`, with a and b allowed to change by size
//
// A copy has two times. *Device time* is what the engine works, as a profiler reports a copy's
// duration. The *call overhead* is what a synchronous call takes on the host beyond that:
// submission and wake-up. The sum is what a host clock sees around hipMemcpy or cudaMemcpy.
//
// Rates count each copied byte once, also for copies inside a device (where many tools count the
// read and the write).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth::machine {

// A number with its origin. The unit stands in the name of whatever holds it.
struct figure {
  double value = 0;
  provenance known = provenance::unknown;
  std::string source;
};

// What changes the speed of a path, from the weakest influence to the strongest: a lookup that must
// leave traits out leaves out the weakest first.
enum class trait : std::uint8_t {
  bidirectional = 1U << 0U,   // the opposite direction of the same link is busy too
  write_combined = 1U << 1U,  // host memory is write-combined
  huge_pages = 1U << 2U,      // host memory is on huge pages
  best_engine = 1U << 3U,     // the DMA engine that faces this link, where the choice matters
  numa_remote = 1U << 4U,     // host memory is on another NUMA node than the GPU
  file_mapped = 1U << 5U,     // the host source is a mapping of a file
  fresh_pages = 1U << 6U,     // host pages that were never touched
};

// A set of traits.
class trait_set {
public:
  constexpr trait_set() noexcept = default;
  constexpr trait_set(trait one) noexcept  // NOLINT: implicit by design
      : bits_(static_cast<std::uint8_t>(one)) {}
  constexpr trait_set(std::initializer_list<trait> all) noexcept {
    for (const trait one : all) {
      bits_ = static_cast<std::uint8_t>(bits_ | static_cast<std::uint8_t>(one));
    }
  }

  [[nodiscard]] static constexpr trait_set from_bits(std::uint8_t bits) noexcept {
    trait_set made;
    made.bits_ = bits;
    return made;
  }
  [[nodiscard]] constexpr std::uint8_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  [[nodiscard]] constexpr bool has(trait one) const noexcept {
    return (bits_ & static_cast<std::uint8_t>(one)) != 0;
  }
  [[nodiscard]] constexpr trait_set with(trait one) const noexcept {
    return from_bits(static_cast<std::uint8_t>(bits_ | static_cast<std::uint8_t>(one)));
  }
  // What is in this set and not in the other.
  [[nodiscard]] constexpr trait_set without(trait_set other) const noexcept {
    return from_bits(static_cast<std::uint8_t>(bits_ & ~other.bits_));
  }
  friend constexpr bool operator==(trait_set, trait_set) noexcept = default;

private:
  std::uint8_t bits_ = 0;
};

[[nodiscard]] std::string_view to_string(trait value) noexcept;
[[nodiscard]] std::optional<trait> parse_trait(std::string_view text) noexcept;
// "fresh_pages, numa_remote"; empty for none. Strongest first.
[[nodiscard]] std::string to_string(trait_set value);

// Source kind and place, engine, destination kind and place.
struct path {
  direction way = direction::unknown;
  // Kind of the host end. For copies without a host end it is `device`; for host_to_host the kind
  // of either end.
  memory_kind host = memory_kind::unknown;
  engine by = engine::unknown;
  trait_set traits = {};
  // How many of the units that carry the copy: blocks of a kernel copy, threads of a CPU copy,
  // direct links between two peers. Nothing: as many as the runtime would take.
  std::optional<std::uint32_t> parallelism = std::nullopt;

  friend bool operator==(const path&, const path&) noexcept = default;
};

// "host_to_device pageable dma (fresh_pages)", for messages.
[[nodiscard]] std::string to_string(const path& value);

// Time by size: straight lines through knots, and beyond the last knot at a constant slope.
// Never falls with size.
class cost {
public:
  struct knot {
    bytes_t bytes;
    double ns;
  };
  // The line that holds at one size: time = a + bytes / b. `a` is negative where the rate falls
  // with size; `b` is infinite where the time does not depend on the size.
  struct segment {
    double a_ns;
    double b_gb_per_s;
  };

  // time = a_ns + bytes / b_gb_per_s. Needs a_ns >= 0 and b_gb_per_s > 0.
  [[nodiscard]] static cost linear(double a_ns, double b_gb_per_s);
  // The same time for every size. Needs ns >= 0.
  [[nodiscard]] static cost constant(double ns);
  // Through observed sizes and times. Beyond the last it goes on at that observation's own rate.
  // Below the first: along the line of the first two, or in proportion to the size where that line
  // would pass below zero. Needs `valid_knots`.
  [[nodiscard]] static cost through(std::vector<knot> observed);

  // Not empty, sizes ascend, times are finite, not negative and do not fall.
  [[nodiscard]] static bool valid_knots(const std::vector<knot>& observed) noexcept;

  [[nodiscard]] double nanoseconds(bytes_t bytes) const noexcept;
  // bytes / time at that size; 0 for no time.
  [[nodiscard]] double gb_per_s(bytes_t bytes) const noexcept;
  [[nodiscard]] segment segment_at(bytes_t bytes) const noexcept;
  // The rate that large copies approach; infinite for a constant cost.
  [[nodiscard]] double large_gb_per_s() const noexcept;
  // The part that depends on the size takes `factor` times as long; what a copy of no bytes takes
  // stays. Needs factor > 0.
  [[nodiscard]] cost with_rate_divided_by(double factor) const;
  // `ns` more at each size. What would fall below zero becomes zero.
  [[nodiscard]] cost shifted(double ns) const;

  [[nodiscard]] const std::vector<knot>& knots() const noexcept { return knots_; }

private:
  cost(std::vector<knot> knots, double tail_ns_per_byte) noexcept
      : knots_(std::move(knots)), tail_ns_per_byte_(tail_ns_per_byte) {}

  std::vector<knot> knots_;  // the first is at 0 bytes
  double tail_ns_per_byte_;
};

}  // namespace berth::machine
