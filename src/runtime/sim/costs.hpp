// SPDX-License-Identifier: Apache-2.0
// What things cost on the simulated machine: the model's profile, and for what a model lacks a
// figure of another machine, so that nothing is free. All in nanoseconds.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "machine/model.hpp"
#include "machine/profile.hpp"

namespace berth::runtime::sim {

// Device time of one copy, in two parts: only the second is slowed by others on the same link.
struct copy_cost {
  double fixed_ns = 0;
  double flow_ns = 0;
  double gb_per_s = 0;      // alone
  engine by = engine::dma;  // who carries it
  double call_ns = 0;       // host time of a synchronous call beyond the device time
};

class costs {
public:
  explicit costs(machine::machine_profile profile);

  // The traits may be unknown to the model, the path may not exist in it: then the next best.
  [[nodiscard]] copy_cost copy(const machine::path& where, bytes_t bytes);

  [[nodiscard]] double operation_ns(machine::operation what, bytes_t bytes,
                                    machine::trait_set traits = {});
  // The model's figure, else the default.
  [[nodiscard]] double quantity_or(machine::quantity what, double otherwise) const;

  [[nodiscard]] double submit_ns() const noexcept { return submit_ns_; }
  [[nodiscard]] double launch_ns() const noexcept { return launch_ns_; }
  [[nodiscard]] double memory_gb_per_s() const noexcept { return memory_gb_per_s_; }
  // Both directions of the host link together; 0: no limit beyond each direction's own.
  [[nodiscard]] double bidirectional_gb_per_s() const noexcept { return bidirectional_gb_per_s_; }
  [[nodiscard]] double peer_bidirectional_gb_per_s() const noexcept {
    return peer_bidirectional_gb_per_s_;
  }
  [[nodiscard]] double slowdown_beside_dma() const noexcept { return beside_dma_; }
  [[nodiscard]] double slowdown_beside_kernel_copy() const noexcept { return beside_kernel_copy_; }
  [[nodiscard]] unsigned engines_per_direction() const noexcept { return engines_per_direction_; }

  // CPU copies by `threads` at once: rate of all together.
  [[nodiscard]] double cpu_copy_gb_per_s(unsigned threads);

private:
  [[nodiscard]] const machine::path_match* find(const machine::path& where);

  machine::machine_profile profile_;
  std::unordered_map<std::uint64_t, std::optional<machine::path_match>> known_;
  double submit_ns_ = 0;
  double launch_ns_ = 0;
  double memory_gb_per_s_ = 0;
  double bidirectional_gb_per_s_ = 0;
  double peer_bidirectional_gb_per_s_ = 0;
  double beside_dma_ = 1;
  double beside_kernel_copy_ = 1;
  unsigned engines_per_direction_ = 1;
};

}  // namespace berth::runtime::sim
