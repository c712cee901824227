// SPDX-License-Identifier: Apache-2.0
// What berth run --fix has made of pageable copies: how long they took, which was measured, and how
// long the runtime's own copies of the same memory would have taken, which is estimated.
#include <algorithm>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

using trace::host_pages;

// Fresh and mapped pages have costs of their own, where the machine's are known.
machine::trait_set traits_of(const copy& which) {
  switch (which.details->pages) {
    case host_pages::fresh:
      return machine::trait::fresh_pages;
    case host_pages::of_file:
      return machine::trait::file_mapped;
    default:
      return {};
  }
}

std::optional<double> runtime_time(const workload& work, const copy& which) {
  const auto& details = *which.details;
  if (!details.bytes) {
    return std::nullopt;
  }
  const auto traits = traits_of(which);
  if (const auto* const profile = work.expected().profile();
      profile != nullptr && !traits.empty()) {
    const auto known = profile->expected_time(
        {.way = details.direction, .host = memory_kind::pageable, .traits = traits},
        *details.bytes);
    if (known && known->dropped.empty()) {
      return static_cast<double>(known->time.count());
    }
  }
  return work.expected().time_ns(details.direction, host_end::pageable, *details.bytes);
}

// Nothing where it is unknown for any of them: a sum of parts says nothing.
std::optional<double> runtime_time(const workload& work, const selection& chosen) {
  double sum = 0;
  for (const auto index : chosen) {
    const auto one = runtime_time(work, work.copies()[index]);
    if (!one) {
      return std::nullopt;
    }
    sum += *one;
  }
  return sum;
}

std::string headline_of(const workload& work, const selection& chosen, const sums& total,
                        const std::optional<double>& before) {
  const auto rate = total.working_rate();
  auto text = fmt::format(
      "{} {} went through berth's copy engine: {}{} (measured)", copies_of(total.count),
      main_direction(work, chosen) == direction::host_to_device ? "to the GPU" : "to the host",
      milliseconds(total.working_ns), rate ? ", " + format_rate(*rate) : "");
  if (before) {
    const auto before_ns = static_cast<std::int64_t>(*before);
    text += fmt::format("; by the runtime about {}{} (estimated)", milliseconds(before_ns),
                        before_ns > 0 ? ", " + format_rate(static_cast<double>(total.bytes) /
                                                           static_cast<double>(before_ns))
                                      : "");
  } else {
    text += "; what the runtime takes for them is not known of this machine";
  }
  return text + ".";
}

void find_fixed(const workload& work, direction way, std::vector<finding>& findings) {
  const auto chosen = select(
      work, [&](const copy& which) { return is_fixed(which) && which.details->direction == way; });
  if (chosen.empty()) {
    return;
  }
  const auto total = sum_of(work, chosen);
  const auto before = runtime_time(work, chosen);
  auto evidence = evidence_of(total);
  if (before) {
    evidence.push_back({"time by the runtime", *before, unit::nanoseconds, provenance::modelled});
  }
  findings.push_back(
      {.rule = "fixed-copies",
       .severity = severity::note,
       .headline = headline_of(work, chosen, total, before),
       .evidence = std::move(evidence),
       .places = places_of(work, chosen),
       .lost_ns = 0,
       .saving = std::nullopt,
       .fix =
           {"Nothing to do while it runs under berth run --fix; docs/fix.md says how to make the "
            "same change in the source. `berth run --ab` measures both."},
       .gains = {}});
}

}  // namespace

void find_fixed_copies(const workload& work, std::vector<finding>& findings) {
  find_fixed(work, direction::host_to_device, findings);
  find_fixed(work, direction::device_to_host, findings);
}

}  // namespace berth::diagnose
