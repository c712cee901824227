// SPDX-License-Identifier: Apache-2.0
#include "diagnose/finding.hpp"

namespace berth::diagnose {

std::string_view to_string(severity value) noexcept {
  switch (value) {
    case severity::fault:
      return "fault";
    case severity::advice:
      return "advice";
    case severity::note:
      break;
  }
  return "note";
}

}  // namespace berth::diagnose
