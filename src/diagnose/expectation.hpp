// SPDX-License-Identifier: Apache-2.0
// How long a copy should take on the machine that a trace comes from.
//
// The basis is, in this order: the machine's profile where one is given; the published or measured
// figures of the GPU's model; the pinned copies of the trace itself; nothing. An expectation says
// which it is, and a time that has no basis is unknown.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "berth/types.hpp"
#include "berth/units.hpp"
#include "diagnose/joined_machine.hpp"
#include "machine/profile.hpp"
#include "trace/trace.hpp"

namespace berth::diagnose {

// How the host end of a copy is meant: what it is, or what it should be.
enum class host_end : std::uint8_t { pinned, pageable };

class expectation {
public:
  // `profile` may be null: then the model of the trace's first device decides, with the link that
  // the machine has where one is known (`on`, which may be null too).
  expectation(const trace::trace& events, const machine::machine_profile* profile,
              const joined_machine* on = nullptr);

  // Device time in ns of a copy between host and device; nothing where it has no basis.
  [[nodiscard]] std::optional<double> time_ns(direction way, host_end end,
                                              bytes_t bytes) const noexcept;
  // The rate that large copies should reach, in GB/s.
  [[nodiscard]] std::optional<double> rate(direction way, host_end end) const noexcept;
  [[nodiscard]] provenance known(direction way, host_end end) const noexcept;
  // "the NVIDIA H200's figures", "the pinned copies of this trace", "nothing known of this
  // machine".
  [[nodiscard]] const std::string& basis() const noexcept { return basis_; }
  // What is known of the machine beyond that; null where the trace's own copies are the basis, or
  // nothing is.
  [[nodiscard]] const machine::machine_profile* profile() const noexcept {
    return profile_ ? &*profile_ : nullptr;
  }

private:
  struct answer {
    machine::cost time;
    provenance known;
  };
  [[nodiscard]] const std::optional<answer>& at(direction way, host_end end) const noexcept;
  void take_from(machine::machine_profile profile);
  [[nodiscard]] bool take_from_machine(const joined_machine& on, std::uint32_t device);
  void take_from_pinned_copies(const trace::trace& events);

  std::array<std::optional<answer>, 4> answers_;  // by direction and host end
  std::string basis_;
  std::optional<machine::machine_profile> profile_;
};

}  // namespace berth::diagnose
