// SPDX-License-Identifier: Apache-2.0
// From which size on staging wins on a machine, and how it is best done there: what the plan goes
// by.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "berth/types.hpp"
#include "berth/units.hpp"
#include "transfer/slot_copy.hpp"

namespace berth::transfer {

// How copies of at least `from` bytes are staged.
struct staging_rule {
  bytes_t from = 0;
  unsigned threads = 0;  // the caller included; 0: not staged, the runtime is as fast
  bytes_t first_block = 0;
  bytes_t largest_block = 0;
  bytes_t piece = 0;
  slot_store store = slot_store::ordinary;  // to the device: how the ring is written
  unsigned losses = 0;  // processes, one behind the other, that found the runtime as fast
  friend bool operator==(const staging_rule&, const staging_rule&) = default;
};

struct copy_profile {
  std::vector<staging_rule> to_device;  // by ascending size
  std::vector<staging_rule> to_host;
  provenance known = provenance::unknown;
  std::string source;  // where the rules come from

  // The rule for a copy of that size; null where the runtime is to do it.
  [[nodiscard]] const staging_rule* rule_for(direction way, bytes_t bytes) const noexcept;
  // Below this no copy is staged in either direction.
  [[nodiscard]] bytes_t smallest_staged() const noexcept;

  friend bool operator==(const copy_profile&, const copy_profile&) = default;
};

// For pages that need care (fresh or of a file) other blocks are better: see plan.cpp.

// The shipped rules, for so many threads. Measured on an H200 (docs/performance.md).
[[nodiscard]] copy_profile nominal_profile(unsigned threads);
// Stages nothing.
[[nodiscard]] copy_profile empty_profile();

// As a JSON file. Errors of the reader: input_malformed, input_out_of_range, with the place.
[[nodiscard]] std::string to_json(const copy_profile& profile);
[[nodiscard]] result<copy_profile> parse_copy_profile(std::string_view text,
                                                      std::string_view where);

// Where the profile of a machine is kept: below $XDG_CACHE_HOME/berth or ~/.cache/berth; nothing
// where neither is known. `key` says which machine.
[[nodiscard]] std::optional<std::string> profile_path(std::string_view key);
// Nothing where there is none, or none that can be used.
[[nodiscard]] std::optional<copy_profile> load_profile(const std::string& path);
// Whole or not at all. Failure changes nothing but the next start's time.
bool save_profile(const std::string& path, const copy_profile& profile) noexcept;

}  // namespace berth::transfer
