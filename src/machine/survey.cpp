// SPDX-License-Identifier: Apache-2.0
// Claims about a machine, and what becomes of those that disagree.
#include "machine/survey.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::machine {
namespace {

constexpr std::size_t most_observations = 1 << 14;

template <typename Observation>
void keep(std::vector<Observation>& all, Observation one, const std::string& source) {
  if (all.size() < most_observations) {
    one.source = source;
    all.push_back(std::move(one));
  }
}

}  // namespace

const claim* survey::claim_of(std::string_view field) const noexcept {
  const auto found = std::ranges::find(claims, field, &claim::field);
  return found == claims.end() ? nullptr : &*found;
}

contradiction* surveyor::known_of(const std::string& field) {
  auto& all = survey_->contradictions;
  for (; looked_at_ < all.size(); ++looked_at_) {
    known_.emplace(all[looked_at_].field, looked_at_);
  }
  const auto found = known_.find(field);
  return found == known_.end() ? nullptr : &all[found->second];
}

bool surveyor::may_set(const std::string& field, const std::string& printed, bool is_set,
                       bool is_same) {
  claim said{.field = field, .value = printed, .source = source_};
  if (auto* const known = known_of(field)) {
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
  // Those that disagree mostly stand close to each other, so the last claims come first.
  auto& claims = survey_->claims;
  const auto earlier = std::find_if(claims.rbegin(), claims.rend(),
                                    [&](const claim& one) { return one.field == field; });
  if (earlier != claims.rend()) {
    between.claims.push_back(std::move(*earlier));
    claims.erase(std::next(earlier).base());
  }
  between.claims.push_back(std::move(said));
  survey_->contradictions.push_back(std::move(between));
  return false;
}

void surveyor::problem(std::string what) {
  survey_->problems.push_back({.source = source_, .what = std::move(what)});
}

void surveyor::measured(measured_rate one) {
  keep(survey_->rates, std::move(one), source_);
}

void surveyor::logged(logged_copies some) {
  keep(survey_->copies, std::move(some), source_);
}

}  // namespace berth::machine
