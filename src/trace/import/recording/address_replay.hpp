// SPDX-License-Identifier: Apache-2.0
// What lay at an address when a call used it: the allocations, registrations and frees of all
// threads, replayed in order of time.
//
// An allocation counts from its call's end, a free from its begin. Calls that failed change
// nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"
#include "trace/import/recording/content.hpp"
#include "trace/import/recording/operations.hpp"

namespace berth::trace::recording {

// One allocation, registration or mapping.
struct known_range {
  std::uint64_t begin = 0;
  bytes_t size = 0;
  memory_kind kind = memory_kind::unknown;
  std::optional<std::uint32_t> device;
};

// Ranges of addresses, disjoint: what is put in replaces what it overlaps.
class address_space {
public:
  void put(const known_range& range);
  void erase_within(std::uint64_t begin, bytes_t size);
  // Only what begins there.
  void erase_at(std::uint64_t begin) { ranges_.erase(begin); }
  // Null where nothing is known to be.
  [[nodiscard]] const known_range* find(std::uint64_t address) const;

private:
  std::map<std::uint64_t, known_range> ranges_;
};

// The ranges that an event's addresses lay in.
struct touched {
  std::optional<known_range> destination;  // also of what is filled, freed, advised
  std::optional<known_range> source;
};

class replayed {
public:
  // `operations`: of each call of the content.
  replayed(const content& recorded, const std::vector<operation>& operations);
  [[nodiscard]] const touched& of(std::size_t event) const noexcept;

private:
  void replay(const content& recorded, const std::vector<operation>& operations, std::size_t index);

  address_space space_;
  std::vector<std::uint32_t> slots_;  // of each event; 0: touches nothing
  std::vector<touched> touched_{1};
};

}  // namespace berth::trace::recording
