// SPDX-License-Identifier: Apache-2.0
// The host memory that a driver has registered. HIP's own account of it can't be relied on: HIP 5.2
// registers a range a second time, takes page-locked memory for registered and gives it up, and
// ends the process for an address that is not the start of a range. So the driver asks here first.
//
// Words
//   range   host memory that was registered at once
//   phase   a range is entered before HIP registers it and removed after HIP has unregistered it,
//   so
//           that no lock is held meanwhile and of two callers only one gets to HIP
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include "berth/units.hpp"

namespace berth::runtime::hip {

enum class registration_phase : std::uint8_t { entering, held, leaving };

struct registration {
  std::uintptr_t start = 0;
  bytes_t bytes = 0;
  registration_phase phase = registration_phase::entering;
};

// For any thread.
class registrations {
public:
  // Enters a range in phase `entering`. Where one overlaps, gives that one and enters nothing.
  // `bytes` is not 0; a range that passes the end of the numbers ends there.
  [[nodiscard]] std::optional<registration> enter(const void* memory, bytes_t bytes);
  // HIP has registered the range that starts here.
  void hold(const void* memory);
  // Takes a held range over for unregistering. False for an address that no held range starts at.
  [[nodiscard]] bool take(const void* memory);
  // Forgets the range that starts here, in any phase.
  void remove(const void* memory);

  // The range that an address lies in, if HIP has registered it.
  [[nodiscard]] std::optional<registration> find(const void* address) const;

private:
  mutable std::shared_mutex lock_;
  std::map<std::uintptr_t, registration> by_start_;
};

}  // namespace berth::runtime::hip
