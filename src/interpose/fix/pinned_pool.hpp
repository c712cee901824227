// SPDX-License-Identifier: Apache-2.0
// Page-locked memory that the program has freed, kept for its next allocation of the same sort.
// Only books are kept here: whoever uses it makes the GPU's calls. A block is
//
//   in use   the program has it
//   kept     the program has freed it, and no device uses it any more
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "berth/units.hpp"

namespace berth::interpose::fix {

class pinned_pool {
public:
  // What two blocks must have in common for one to stand for the other.
  struct sort {
    int device = 0;           // that was current
    std::uint32_t call = 0;   // by which it was allocated
    std::uint64_t flags = 0;  // of the call
    bytes_t bytes = 0;        // exactly: addresses are asked for their range
    auto operator<=>(const sort&) const = default;
  };

  // Of what is kept at most.
  explicit pinned_pool(bytes_t budget) noexcept : budget_(budget) {}

  // A kept block, in use from now on. Null: there is none.
  [[nodiscard]] void* take(const sort& wanted);
  // The runtime has given this one.
  void note(void* memory, const sort& what);
  // Nothing for a block that is not in use, or was not noted.
  [[nodiscard]] std::optional<sort> find(void* memory) const;
  // From now on it is kept; false, and nothing has changed, where the budget does not allow it.
  [[nodiscard]] bool keep(void* memory);
  // The runtime gets it back.
  void forget(void* memory);
  // All that is kept: the runtime gets them back.
  [[nodiscard]] std::vector<void*> release();
  [[nodiscard]] bytes_t kept_bytes() const noexcept { return kept_bytes_; }

private:
  bytes_t budget_;
  bytes_t kept_bytes_ = 0;
  std::unordered_map<void*, sort> in_use_;
  std::map<sort, std::vector<void*>> kept_;
};

}  // namespace berth::interpose::fix
