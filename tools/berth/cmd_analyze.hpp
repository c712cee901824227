// SPDX-License-Identifier: Apache-2.0
// `berth analyze`: traces of profilers in, diagnosis out.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli.hpp"

namespace berth::cli {

enum class analyze_check : std::uint8_t { off, on };

struct analyze_options {
  std::vector<std::string> files;
  output_format format = output_format::text;
  std::string output;  // a file; empty for standard output
  analyze_check check = analyze_check::off;
  // The machine that the traces were made on: texts or one bundle. None: it is not known.
  std::vector<std::string> machine = {};
  std::string profile = {};  // a machine file: what copies cost there; empty: the GPU's model
};

// The exit status: done, fault_found with `check`, unusable where a file could not be read whole.
// `in` is what "-" stands for among the machine's files.
[[nodiscard]] exit_status run_analyze(const analyze_options& options, std::istream& in,
                                      const streams& io);

}  // namespace berth::cli
