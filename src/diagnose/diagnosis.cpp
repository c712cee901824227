// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// Each copy once, by its largest gain: two findings about one copy do not save twice.
std::int64_t combined_saving(const std::vector<finding>& findings) {
  std::unordered_map<std::uint32_t, std::int64_t> best;
  for (const auto& found : findings) {
    for (const auto& [copy, time] : found.gains) {
      auto& known = best[copy];
      known = std::max(known, time);
    }
  }
  std::int64_t sum = 0;
  for (const auto& [copy, time] : best) {
    sum += time;
  }
  return sum;
}

bool weighs_more(const finding& a, const finding& b) {
  if (a.severity != b.severity) {
    return a.severity > b.severity;
  }
  const auto time = [](const finding& which) { return which.saving ? which.saving->time_ns : 0; };
  return time(a) > time(b);
}

std::string saving_words(const workload& work, const saving& saved) {
  return fmt::format("{} {} of {}", saved.bound == bound::at_most ? "at most" : "about",
                     milliseconds(saved.time_ns), milliseconds(work.totals().span_ns));
}

// How the copies between host and device stand where no rule objects.
std::string all_is_well(const workload& work) {
  const auto host_copies = select(work, [](const copy&) { return true; });
  if (work.copies().empty()) {
    return "No copies in this trace: nothing to gain here.";
  }
  if (host_copies.empty()) {
    return "No copies between host and GPU in this trace: nothing to gain here.";
  }
  const auto total = sum_of(work, host_copies);
  const auto pinned =
      select(work, [](const copy& which) { return is_page_locked(which.host_kind()); });
  const auto pinned_time = sum_of(work, pinned).duration_ns;
  const auto share = work.share_of_span(total.duration_ns);
  if (pinned_time * 10 < total.duration_ns * 9) {
    return fmt::format("Copies between host and GPU take {} of the span: nothing worth changing.",
                       percent(share));
  }
  const auto found = gains_against(work, pinned, host_end::pinned);
  const bool at_link_rate = found.known > 0 && static_cast<double>(found.expected_ns) >=
                                                   link_rate_ratio * static_cast<double>(pinned_time);
  const auto beside = work.totals().copy_beside_kernels_ns;
  return fmt::format("Copies are pinned{}{}: nothing to gain.",
                     at_link_rate ? " and at the link's rate" : "",
                     beside * 2 > work.totals().copy_busy_ns
                         ? ", and run beside kernels"
                         : fmt::format(", and take {} of the span", percent(share)));
}

std::string verdict_of(const workload& work, const std::vector<finding>& findings) {
  if (findings.empty() || findings.front().severity == severity::note) {
    if (work.totals().devices == 0) {
      return "No GPU activity in this trace: nothing can be said of copies.";
    }
    return all_is_well(work);
  }
  const auto& first = findings.front();
  std::string text = first.headline;
  if (first.saving && first.saving->time_ns > 0) {
    text += fmt::format(" The fix would save {}.", saving_words(work, *first.saving));
  }
  const auto more = std::count_if(findings.begin() + 1, findings.end(), [](const finding& other) {
    return other.severity != severity::note;
  });
  if (more > 0) {
    text += fmt::format(" {} more {} below.", more, more == 1 ? "finding" : "findings");
  }
  return text;
}

}  // namespace

diagnosis diagnose(const trace::trace& events, const machine::machine_profile* profile) {
  const workload work(events, profile);
  diagnosis result;
  result.totals = work.totals();
  result.expectation_basis = work.expected().basis();
  for (const auto& one : rules()) {
    one.evaluate(work, result.findings);
  }
  std::stable_sort(result.findings.begin(), result.findings.end(), weighs_more);
  if (!result.findings.empty()) {
    result.worst = result.findings.front().severity;
  }
  result.saving_ns = combined_saving(result.findings);
  result.verdict = verdict_of(work, result.findings);
  return result;
}

}  // namespace berth::diagnose
