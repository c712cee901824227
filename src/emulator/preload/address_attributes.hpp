// SPDX-License-Identifier: Apache-2.0
// What a program has told the driver about ranges of ordinary memory (managed memory, on a driver
// with HMM): where it prefers to live, who may access it. Recorded and answered; no page moves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "emulator/machine_spec.hpp"
#include "emulator/preload/kfd_abi.hpp"

namespace berth::emulator {

class address_attributes {
public:
  using values = std::span<kfd::svm_attribute_value>;

  void set(std::uint64_t start, std::uint64_t bytes, values attributes);
  // Answers in place, with the kernel's rules: what the whole range has in common, else undefined;
  // of accesses the weakest.
  void get(std::uint64_t start, std::uint64_t bytes, values attributes, xnack_mode xnack) const;

  // How far a device may access ordinary memory from here; 0 where it may not.
  [[nodiscard]] std::uint64_t accessible(std::uint64_t address) const;

private:
  struct entry {
    std::uint32_t preferred = kfd::svm_location_undefined;
    std::uint32_t prefetch = kfd::svm_location_undefined;
    std::uint32_t flags = kfd::svm_default_flags;
    std::uint32_t granularity = kfd::svm_default_granularity;
    std::map<std::uint32_t, kfd::svm_attribute> access;  // by the driver's id of a device
  };

  static void apply(entry& to, const kfd::svm_attribute_value& attribute);
  void split_at(std::uint64_t address);
  [[nodiscard]] std::vector<const entry*> overlapping(std::uint64_t start, std::uint64_t end) const;

  struct range {
    std::uint64_t end;
    entry what;
  };
  mutable std::shared_mutex lock_;
  std::map<std::uint64_t, range> ranges_;  // by start; disjoint
};

}  // namespace berth::emulator
