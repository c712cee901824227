// SPDX-License-Identifier: Apache-2.0
// Reads what `berth bandwidth --format json` has written.
#pragma once

#include <string_view>

#include "berth/result.hpp"
#include "machine/bandwidth.hpp"

namespace berth::machine {

// Figures without times stay so; verdicts are not read: they are made anew. `file` is for messages.
// @errors input_empty, input_malformed and input_out_of_range, with file, line and what is wrong
// there
[[nodiscard]] result<bandwidth_results> try_parse_bandwidth(std::string_view text,
                                                            std::string_view file);

}  // namespace berth::machine
