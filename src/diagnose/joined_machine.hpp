// SPDX-License-Identifier: Apache-2.0
// The machine that a trace was made on, as the rules ask it: what is known of the GPUs of the
// trace.
//
// A runtime numbers the GPUs that it sees, which may be some of the machine's. Where it is not sure
// which GPU a device of the trace is, only what all that it may be have in common is an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/model.hpp"
#include "machine/profile.hpp"
#include "machine/survey.hpp"
#include "trace/trace.hpp"

namespace berth::diagnose {

class joined_machine {
public:
  // Keeps pointers to both.
  joined_machine(const trace::trace& events, const machine::survey& seen);

  // False where the trace's GPUs are none of the machine's: then nothing is known of any.
  [[nodiscard]] bool fits() const noexcept { return mismatch_.empty(); }
  // Why it does not fit; empty where it does.
  [[nodiscard]] const std::string& mismatch() const noexcept { return mismatch_; }

  [[nodiscard]] const machine::survey& seen() const noexcept { return *seen_; }
  // Positions in the machine of the GPUs that this device of the trace may be.
  [[nodiscard]] std::vector<std::size_t> gpus_of(std::uint32_t device) const;
  [[nodiscard]] std::optional<machine::pcie_link> link_of(std::uint32_t device) const;
  [[nodiscard]] std::optional<std::uint32_t> node_of(std::uint32_t device) const;
  [[nodiscard]] machine::xnack_ability xnack_of(std::uint32_t device) const;
  // Of the catalogue: that of the trace's first device, or of all GPUs of the machine where the
  // trace names none that berth knows. Null for others.
  [[nodiscard]] const machine::model* model() const noexcept { return model_; }

private:
  [[nodiscard]] bool is_alike(const machine::gpu& gpu) const;

  const trace::trace* events_;
  const machine::survey* seen_;
  const machine::model* model_ = nullptr;
  machine::vendor made_by_ = machine::vendor::unknown;
  std::string mismatch_;
};

}  // namespace berth::diagnose
