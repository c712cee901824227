// SPDX-License-Identifier: Apache-2.0
// Renderings of the report model.
#pragma once

#include <cstdint>
#include <string>

#include "report/model.hpp"

namespace berth::report {

enum class colour : std::uint8_t { off, on };

// For people at a terminal: at most 100 columns, verdict first, a line feed at the end.
[[nodiscard]] std::string to_text(const document& shown, colour colours);

// For programs: one object; numbers are numbers and names carry units. docs/json-report.md
// describes the members; `schema_version` grows when one changes its meaning.
[[nodiscard]] std::string to_json(const document& shown);

}  // namespace berth::report
