// SPDX-License-Identifier: Apache-2.0
// What a rule concludes: one finding, with its evidence, its cost, and what the fix would save.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth::diagnose {

enum class severity : std::uint8_t {
  note,    // worth knowing; nothing to repair
  advice,  // time can be gained
  fault,   // something is wrong and costs much
};

[[nodiscard]] std::string_view to_string(severity value) noexcept;

enum class unit : std::uint8_t { count, bytes, nanoseconds, gb_per_s, share };

// One figure with its name and how it is known: "rate reached", 6.83 GB/s, measured.
struct measure {
  std::string name;
  double value;
  diagnose::unit unit;
  provenance known = provenance::measured;
};

enum class counted : std::uint8_t { copies, calls };

// Copies, or other calls, of one place in the program, together.
struct place {
  std::string where;  // "aten::to at train.py(12): step"
  std::uint64_t count;
  std::optional<bytes_t> bytes;  // unknown if that of any is
  std::int64_t time_ns;
  counted what = counted::copies;
};

enum class bound : std::uint8_t { about, at_most };

// What the fix would save.
struct saving {
  std::int64_t time_ns;
  diagnose::bound bound;
  provenance known;
  std::string basis;  // what the figure rests on, one clause
};

// How much one copy would gain; `copy` is its index in the workload. Findings may name the same
// copy: whoever adds savings up takes each copy once.
struct gain {
  std::uint32_t copy;
  std::int64_t time_ns;
};

struct finding {
  std::string_view rule;  // "pageable-copies"
  diagnose::severity severity;
  std::string headline;  // one sentence with figures
  std::vector<measure> evidence;
  std::vector<place> places;               // by falling time
  std::int64_t lost_ns;                    // what the copies or calls take beyond what they should
  std::optional<diagnose::saving> saving;  // nothing: cannot be computed from what is known
  std::vector<std::string> fix;            // one or two lines in the program's own terms
  std::vector<gain> gains;
};

}  // namespace berth::diagnose
