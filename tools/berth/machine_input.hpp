// SPDX-License-Identifier: Apache-2.0
// A machine from files: a bundle of berth doctor, or what tools printed.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "machine/survey.hpp"
#include "topology/paste.hpp"

namespace berth::cli {

inline constexpr std::string_view standard_input = "-";

// One bundle, or texts of one machine; "-" is `in`. What no reader understands is no error: the
// survey counts it. @errors file_unreadable; input_out_of_range; usage for a bundle among others;
// what opening a bundle gives
[[nodiscard]] result<machine::survey> read_machine_files(const std::vector<std::string>& files,
                                                         std::istream& in);

// A file's text, or that of `in` for "-". @errors file_unreadable, input_out_of_range
[[nodiscard]] result<topology::pasted_text> read_text_file(const std::string& file,
                                                           std::istream& in);

// Whether nothing in those files describes a machine, and the error that says so.
[[nodiscard]] bool describes_nothing(const machine::survey& seen);
[[nodiscard]] error nothing_described(const std::string& where);

}  // namespace berth::cli
