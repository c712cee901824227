// SPDX-License-Identifier: Apache-2.0
// Claims about a machine, and what becomes of those that disagree.
#include "machine/survey.hpp"

#include <algorithm>
#include <utility>

namespace berth::machine {
namespace {

template <typename Items>
auto of_field(Items& items, std::string_view field) {
  return std::ranges::find_if(items, [&](const auto& item) { return item.field == field; });
}

}  // namespace

const claim* survey::claim_of(std::string_view field) const noexcept {
  const auto found = of_field(claims, field);
  return found == claims.end() ? nullptr : &*found;
}

bool surveyor::may_set(const std::string& field, const std::string& printed, bool is_set,
                       bool is_same) {
  claim said{.field = field, .value = printed, .source = source_};
  if (const auto known = of_field(survey_->contradictions, field);
      known != survey_->contradictions.end()) {
    known->claims.push_back(std::move(said));
    return false;
  }
  if (!is_set) {
    survey_->claims.push_back(std::move(said));
    return true;
  }
  if (is_same) {
    return false;
  }
  contradiction between{.field = field, .claims = {}};
  const auto earlier = of_field(survey_->claims, field);
  if (earlier != survey_->claims.end()) {
    between.claims.push_back(std::move(*earlier));
    survey_->claims.erase(earlier);
  }
  between.claims.push_back(std::move(said));
  survey_->contradictions.push_back(std::move(between));
  return false;
}

bool surveyor::is_contradicted(std::string_view field) const noexcept {
  return of_field(survey_->contradictions, field) != survey_->contradictions.end();
}

void surveyor::problem(std::string what) {
  survey_->problems.push_back({.source = source_, .what = std::move(what)});
}

}  // namespace berth::machine
