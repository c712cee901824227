// SPDX-License-Identifier: Apache-2.0
// Input that contradicts itself: neither side is believed, and that is said.
#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

const std::vector<std::string>& input_advice() {
  static const std::vector<std::string> lines{
      "Give output of one machine at one time: that of several machines goes into several calls "
      "of berth doctor."};
  return lines;
}

check_result of_one_field(const machine::contradiction& one) {
  check_result result{.verdict = verdict::unknown};
  std::string said;
  for (const auto& claim : one.claims) {
    said += fmt::format("{}{}", said.empty() ? "" : " or ", claim.value);
    result.evidence.push_back({claim.field, claim.value, claim.source});
  }
  result.headline = fmt::format("sources disagree on {}: {}; none is believed", one.field, said);
  result.fix = input_advice();
  return result;
}

check_result of_many_fields(const machine::survey& seen) {
  check_result result{.verdict = verdict::unknown};
  result.headline = fmt::format(
      "sources disagree on {} fields, {} for one; none is believed. The input may be of several "
      "machines",
      seen.contradictions.size(), seen.contradictions.front().field);
  for (const auto& one : seen.contradictions) {
    for (const auto& claim : one.claims) {
      result.evidence.push_back({claim.field, claim.value, claim.source});
    }
  }
  result.fix = input_advice();
  return result;
}

}  // namespace

void check_contradictions(const machine::survey& seen, std::vector<check_result>& results) {
  constexpr std::size_t few = 3;
  if (seen.contradictions.size() > few) {
    results.push_back(of_many_fields(seen));
    return;
  }
  for (const auto& one : seen.contradictions) {
    results.push_back(of_one_field(one));
  }
}

}  // namespace berth::diagnose
