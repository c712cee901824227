// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// Each copy once, by its largest gain: two findings about one copy do not save twice. What is not
// about copies (calls, page faults) saves time of its own. Copies of different findings may run
// side by side, so the span is a limit too, unless one finding alone is above it with host time.
std::int64_t combined_saving(const workload& work, const std::vector<finding>& findings) {
  std::unordered_map<std::uint32_t, std::int64_t> best;
  std::int64_t largest = 0;
  std::int64_t sum = 0;
  for (const auto& found : findings) {
    const auto saved = found.saving ? found.saving->time_ns : 0;
    largest = std::max(largest, saved);
    sum += found.gains.empty() ? std::min(saved, work.totals().span_ns) : 0;
    for (const auto& [copy, time] : found.gains) {
      auto& known = best[copy];
      known = std::max(known, time);
    }
  }
  for (const auto& [copy, time] : best) {
    sum += time;
  }
  // The gains of each copy are rounded down: together they may miss a finding's saving by that.
  return std::max(largest, std::min(sum, work.totals().span_ns));
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

std::string without_host_copies(const workload& work) {
  if (work.copies().empty()) {
    return "No copies in this trace: nothing to gain here.";
  }
  if (work.totals().without_time > 0) {
    return "The times of these copies were not recorded: nothing can be said of what they cost.";
  }
  const auto copies = work.copies();
  return std::any_of(
             copies.begin(), copies.end(),
             [](const copy& which) { return which.details->direction == direction::unknown; })
             ? "The trace does not say which way its copies go: nothing can be said of them."
             : "No copies between host and GPU in this trace: nothing to gain here.";
}

// How the copies between host and device stand where no rule objects.
std::string all_is_well(const workload& work) {
  const auto host_copies = select(work, [](const copy&) { return true; });
  if (host_copies.empty()) {
    const auto untimed = select_with_untimed(work, [](const copy&) { return true; }).size();
    return untimed == 0 ? without_host_copies(work)
                        : fmt::format(
                              "{} between host and GPU, of which nobody has measured how "
                              "long they take: nothing can be said of what they cost.",
                              copies_of(untimed));
  }
  const auto total = sum_of(work, host_copies);
  const auto share = work.share_of_span(total.wall_ns);
  const auto pinned =
      select(work, [](const copy& which) { return is_page_locked(which.host_kind()); });
  const bool are_pinned =
      !pinned.empty() && sum_of(work, pinned).working_ns >= total.working_ns / 10 * 9;
  const bool at_rate = at_link_rate(work, host_copies);
  if (!are_pinned && !at_rate) {
    return fmt::format("Copies between host and GPU take {} of the span: {}.", percent(share),
                       share < material_share
                           ? "nothing worth changing"
                           : "nothing in this trace says that they could take less");
  }
  const std::string_view state = !are_pinned ? "run at the link's rate"
                                 : at_rate   ? "are pinned and at the link's rate"
                                             : "are pinned";
  if (work.totals().copy_beside_kernels_ns * 2 > work.totals().copy_busy_ns) {
    return fmt::format("Copies {}, and run beside kernels: nothing to gain.", state);
  }
  return fmt::format("Copies {}, and take {} of the span: {}.", state, percent(share),
                     at_rate ? "nothing to gain" : "nothing worth changing");
}

// A GPU that idles is not always waiting for its copies.
std::string idle_remark(const workload& work) {
  constexpr double idle = 0.5;
  const auto& totals = work.totals();
  if (totals.span_ns <= 0 || totals.copies.empty() || !totals.has_device_times()) {
    return {};
  }
  const auto busy = work.share_of_span(totals.busy_ns) / totals.devices;
  return busy < idle
             ? fmt::format(" The GPU idles {} of the span, but not in copies.", percent(1 - busy))
             : std::string();
}

std::string verdict_of(const workload& work, const std::vector<finding>& findings) {
  if (findings.empty() || findings.front().severity == severity::note) {
    if (work.totals().devices == 0) {
      return "No GPU activity in this trace: nothing can be said of copies.";
    }
    return all_is_well(work) + idle_remark(work);
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

bool has_latency_bound_rates(const totals& shown) {
  return std::any_of(shown.copies.begin(), shown.copies.end(), [](const copy_group& group) {
    const auto with_bytes = group.count - group.without_bytes;
    return with_bytes > 0 && group.bytes / with_bytes <= tiny_bytes;
  });
}

// Of copies whose time no device has told.
std::string note_on_times(const totals& shown) {
  if (shown.timed_by_calls > 0) {
    auto note = fmt::format(
        "Device times {}were not recorded: times of copies are how long the calls blocked",
        shown.has_device_times() ? fmt::format("of {} copies ", shown.timed_by_calls) : "");
    return shown.without_time == 0
               ? note
               : fmt::format("{}; {} more have no time at all", note, shown.without_time);
  }
  return shown.without_time == 0
             ? std::string()
             : fmt::format("{} copies have no time: their calls did not wait for them",
                           shown.without_time);
}

std::vector<std::string> notes_of(const workload& work, const std::vector<finding>& findings) {
  std::vector<std::string> notes;
  if (auto note = note_on_times(work.totals()); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (has_latency_bound_rates(work.totals())) {
    notes.push_back(
        fmt::format("A rate of copies of {} or less shows the fixed cost of a copy, not the link.",
                    format_bytes(tiny_bytes)));
  }
  if (const auto* const given = work.machine_as_given(); given != nullptr && !given->fits()) {
    notes.push_back(fmt::format("The machine was left aside: {}.", given->mismatch()));
  }
  const bool has_places = std::any_of(findings.begin(), findings.end(),
                                      [](const finding& one) { return !one.places.empty(); });
  const bool has_functions = std::any_of(work.copies().begin(), work.copies().end(),
                                         [](const copy& one) { return one.place.is_known(); });
  // Our own recordings have facts, and no Python stacks whatever the profiler is told.
  const auto& about = work.events().about;
  if (has_places && !has_functions && about.framework == "PyTorch" && about.facts.empty()) {
    notes.emplace_back(
        "The trace has no Python stacks: record with profile(..., with_stack=True) to see the "
        "lines that copy.");
  }
  return notes;
}

}  // namespace

diagnosis diagnose(const trace::trace& events, const machine::machine_profile* profile,
                   const machine::survey* seen) {
  const workload work(events, profile, seen);
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
  result.saving_ns = combined_saving(work, result.findings);
  result.verdict = verdict_of(work, result.findings);
  result.notes = notes_of(work, result.findings);
  return result;
}

}  // namespace berth::diagnose
