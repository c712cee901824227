// SPDX-License-Identifier: Apache-2.0
// What a site wants of its machines, beyond that nothing is broken: "link=gen4x16", "gpus=8",
// "acs-redirect=normal". For health scripts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "diagnose/checks/check.hpp"
#include "machine/survey.hpp"

namespace berth::diagnose {

struct requirement {
  std::string name;    // of the table in requirements.cpp, or the id of a check
  std::string wanted;  // as it was given, and is valid
};

// @errors usage: no NAME=VALUE, a name that is none, a value that the name does not take
[[nodiscard]] result<requirement> parse_requirement(std::string_view text);
// One a line; what stands behind # is a remark. @errors usage with the number of the line
[[nodiscard]] result<std::vector<requirement>> parse_requirements(std::string_view text,
                                                                  const std::string& file);

enum class fulfilment : std::uint8_t {
  met,
  failed,
  unknown,  // the input does not tell, which is no fulfilment
};

[[nodiscard]] std::string_view to_string(fulfilment value) noexcept;

struct requirement_result {
  requirement what;
  fulfilment is = fulfilment::unknown;
  std::string found;  // what there is instead, one clause
};

[[nodiscard]] requirement_result examine(const requirement& what, const machine::survey& seen,
                                         const checkup& found);

}  // namespace berth::diagnose
