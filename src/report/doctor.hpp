// SPDX-License-Identifier: Apache-2.0
// What berth doctor prints: a machine, what the checks say of it, and where each value was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/checks/affinity.hpp"
#include "diagnose/checks/check.hpp"
#include "diagnose/checks/requirements.hpp"
#include "machine/survey.hpp"
#include "report/render.hpp"

namespace berth::report {

enum class unread_lines : std::uint8_t { counted, listed };

struct doctor_report {
  machine::survey seen;
  diagnose::checkup found;
  std::vector<diagnose::requirement_result> required = {};  // by the site, in the order given
  unread_lines unread = unread_lines::counted;
};

// For people at a terminal: at most 100 columns, verdict first, a line feed at the end.
[[nodiscard]] std::string to_text(const doctor_report& shown, colour colours);
// For programs: one object of schema "berth.doctor/1"; docs/doctor.md describes the members.
[[nodiscard]] std::string to_json(const doctor_report& shown);

[[nodiscard]] std::string to_text(const diagnose::affinity& shown, colour colours);
// Schema "berth.affinity/1".
[[nodiscard]] std::string to_json(const diagnose::affinity& shown);

// A value that two machines do not share; empty where one lacks it.
struct difference {
  std::string field;
  std::string first;
  std::string second;
};

struct comparison {
  std::string first;  // what the machines are called
  std::string second;
  std::vector<difference> differences;  // in the order of the first's claims, then the second's
};

// Of the claims of both, and of what the checks conclude.
[[nodiscard]] comparison compare(const doctor_report& first, const doctor_report& second);
[[nodiscard]] std::string to_text(const comparison& shown, colour colours);
// Schema "berth.comparison/1".
[[nodiscard]] std::string to_json(const comparison& shown);

}  // namespace berth::report
