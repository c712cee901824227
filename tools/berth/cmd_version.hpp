// SPDX-License-Identifier: Apache-2.0
// `berth version`: the version, the GPU runtimes of this machine, which of them is used, and why
// each other is not.
#pragma once

#include <string>
#include <vector>

#include "cli.hpp"
#include "runtime/open.hpp"

namespace berth::cli {

struct version_options {
  output_format format = output_format::text;
};

// What is shown: each runtime once, in the order of choice.
struct version_report {
  std::string choice;  // "cuda is the first that works", or why there is none
  std::vector<runtime::candidate> runtimes;
};

// Looks at all runtimes of this machine (a second or two) and at BERTH_RUNTIME.
// Errors: usage for a BERTH_RUNTIME that names no runtime.
[[nodiscard]] result<version_report> survey_version();

// At most 100 columns.
[[nodiscard]] std::string version_text_of(const version_report& shown, report::colour colours);
// One object; numbers are numbers and names carry units; null for what the runtime does not tell.
[[nodiscard]] std::string version_json_of(const version_report& shown);

// The exit status: done, also where there is no GPU; wrong_usage for BERTH_RUNTIME.
[[nodiscard]] exit_status run_version(const version_options& options, const streams& io);

}  // namespace berth::cli
