// SPDX-License-Identifier: Apache-2.0
// What berth bandwidth prints: matrices, tables by size, and what is not as it should be.
#pragma once

#include <string>

#include "machine/bandwidth.hpp"
#include "report/render.hpp"

namespace berth::report {

// For people at a terminal: at most 100 columns, verdict first, a line feed at the end.
[[nodiscard]] std::string to_text(const machine::bandwidth_results& shown, colour colours);
// For programs: one object of schema "berth.bandwidth/1"; docs/bandwidth.md describes the members.
[[nodiscard]] std::string to_json(const machine::bandwidth_results& shown);
// One row a figure, with a header; rates in GB/s, times in ns.
[[nodiscard]] std::string to_csv(const machine::bandwidth_results& shown);

}  // namespace berth::report
