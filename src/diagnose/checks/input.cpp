// SPDX-License-Identifier: Apache-2.0
// Input that contradicts itself: neither side is believed, and that is said.
#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {

void check_contradictions(const machine::survey& seen, std::vector<check_result>& results) {
  for (const auto& one : seen.contradictions) {
    check_result result{.verdict = verdict::unknown};
    std::string said;
    for (const auto& claim : one.claims) {
      said += fmt::format("{}{}", said.empty() ? "" : " or ", claim.value);
      result.evidence.push_back({claim.field, claim.value, claim.source});
    }
    result.headline = fmt::format("sources disagree on {}: {}; none is believed", one.field, said);
    result.fix = {
        "Give output of one machine at one time: pieces of several machines go into "
        "several calls of berth doctor."};
    results.push_back(std::move(result));
  }
}

}  // namespace berth::diagnose
