// SPDX-License-Identifier: Apache-2.0
// `berth doctor`: a machine in, live or as text or a bundle, and what is wrong with it out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli.hpp"
#include "report/doctor.hpp"

namespace berth::cli {

enum class doctor_check : std::uint8_t { off, on };

enum class doctor_action : std::uint8_t {
  examine,
  show_affinity,
  gather,   // into `gather_into`
  compare,  // two files
};

enum class xnack_trial : std::uint8_t { off, on };

struct doctor_options {
  std::vector<std::string> files;  // texts, "-", or one bundle; none: this machine
  std::string root;                // a folder in the place of /; empty for this machine
  doctor_action action = doctor_action::examine;
  std::string gather_into;
  output_format format = output_format::text;
  std::string output;  // a file; empty for standard output
  doctor_check check = doctor_check::off;
  std::vector<std::string> required;         // NAME=VALUE, with `check`
  std::string required_file;                 // the same, one a line; empty for none
  xnack_trial try_xnack = xnack_trial::off;  // of this machine
  report::unread_lines unread = report::unread_lines::counted;
};

// The exit status: done, fault_found with `check` (also where a
// requirement is not met), unusable where an input could not be read or
// nothing of a machine is in it. `in` is what "-" stands for.
[[nodiscard]] exit_status run_doctor(const doctor_options& options, std::istream& in,
                                     const streams& io);

}  // namespace berth::cli
