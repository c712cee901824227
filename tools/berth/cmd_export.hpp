// SPDX-License-Identifier: Apache-2.0
// `berth export`: a trace in a form that other programs open.
#pragma once

#include <string>

#include "cli.hpp"

namespace berth::cli {

struct export_options {
  std::string file;
  std::string output;  // a file; empty for standard output
};

// Writes the trace as Chrome Trace Event JSON. The exit status: done, or unusable where the trace
// could not be read whole or the output not be written.
[[nodiscard]] exit_status run_export(const export_options& options, const streams& io);

}  // namespace berth::cli
