// SPDX-License-Identifier: Apache-2.0
#include "diagnose/expectation.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/statistics.hpp"
#include "diagnose/checks/values.hpp"
#include "machine/catalogue.hpp"

namespace berth::diagnose {
namespace {

// Copies below this are bound by fixed costs and say nothing of a link's rate.
constexpr bytes_t rate_bound_bytes = mib;
constexpr std::size_t enough_samples = 3;
// The fixed part of a DMA copy as devices report it; the exact value matters for small copies only.
constexpr double fixed_ns = 1000.0;

constexpr std::array directions{direction::host_to_device, direction::device_to_host};
constexpr std::array ends{host_end::pinned, host_end::pageable};

std::size_t slot(direction way, host_end end) noexcept {
  return (way == direction::device_to_host ? 2U : 0U) + (end == host_end::pageable ? 1U : 0U);
}

std::uint32_t first_device(const trace::trace& events) {
  return events.about.devices.empty() ? 0 : events.about.devices.front().index;
}

}  // namespace

expectation::expectation(const trace::trace& events, const machine::machine_profile* profile,
                         const joined_machine* on) {
  if (profile != nullptr) {
    take_from(*profile);
    basis_ = fmt::format("the profile of machine '{}'", profile->name());
    return;
  }
  if (on != nullptr && on->fits() && take_from_machine(*on, first_device(events))) {
    return;
  }
  if (!events.about.devices.empty()) {
    const auto& name = events.about.devices.front().name;
    if (const auto* const model = machine::find_by_device_name(name)) {
      take_from(machine::nominal_profile(*model));
      basis_ = fmt::format("figures of the model {}, not measured on this machine", model->title);
      return;
    }
  }
  take_from_pinned_copies(events);
}

void expectation::take_from(machine::machine_profile profile) {
  for (const auto way : directions) {
    for (const auto end : ends) {
      const auto kind = end == host_end::pinned ? memory_kind::pinned : memory_kind::pageable;
      if (const auto match = profile.lookup({.way = way, .host = kind})) {
        answers_[slot(way, end)] = answer{match->device_time, match->known};
      }
    }
  }
  profile_ = std::move(profile);
}

bool expectation::take_from_machine(const joined_machine& on, std::uint32_t device) {
  const auto link = on.link_of(device);
  if (on.model() != nullptr) {
    take_from(machine::nominal_profile(*on.model(), link.value_or(machine::pcie_link{})));
    basis_ = link ? fmt::format(
                        "figures of the model {} at this machine's link ({}), not measured on it",
                        on.model()->title, link_text(*link))
                  : fmt::format("figures of the model {}, not measured on this machine",
                                on.model()->title);
    return true;
  }
  auto generic = link ? machine::generic_profile(*link->generation, *link->width) : std::nullopt;
  if (!generic) {
    return false;
  }
  take_from(*std::move(generic));
  basis_ = fmt::format("what a link like this machine's ({}) gives, not measured on it",
                       link_text(*link));
  return true;
}

void expectation::take_from_pinned_copies(const trace::trace& events) {
  std::array<std::vector<double>, 4> rates;
  for (trace::row index = 0; index < events.size(); ++index) {
    if (events.kind(index) != trace::event_kind::copy || events.duration(index) <= 0 ||
        events.details(index)->time != trace::timing::device) {
      continue;
    }
    const auto& details = *events.details(index);
    // The time of a call has more in it than the copy.
    if (details.time != trace::timing::device || events.status(index) != 0) {
      continue;
    }
    if (details.bytes.value_or(0) >= rate_bound_bytes && is_page_locked(details.host_kind())) {
      rates[slot(details.direction, host_end::pinned)].push_back(
          gb_per_s(*details.bytes, std::chrono::nanoseconds(events.duration(index))));
    }
  }
  for (const auto way : directions) {
    const auto& samples = rates[slot(way, host_end::pinned)];
    if (samples.size() >= enough_samples) {
      answers_[slot(way, host_end::pinned)] = answer{
          machine::cost::linear(fixed_ns, *statistics::median(samples)), provenance::measured};
      basis_ = "the pinned copies of this trace";
    }
  }
  if (basis_.empty()) {
    basis_ = "nothing: the trace names no GPU that berth knows and has too few pinned copies";
  }
}

const std::optional<expectation::answer>& expectation::at(direction way,
                                                          host_end end) const noexcept {
  static const std::optional<answer> none;
  const bool known_way = way == direction::host_to_device || way == direction::device_to_host;
  return known_way ? answers_[slot(way, end)] : none;
}

std::optional<double> expectation::time_ns(direction way, host_end end,
                                           bytes_t bytes) const noexcept {
  const auto& found = at(way, end);
  return found ? std::optional(found->time.nanoseconds(bytes)) : std::nullopt;
}

std::optional<double> expectation::rate(direction way, host_end end) const noexcept {
  const auto& found = at(way, end);
  return found ? std::optional(found->time.large_gb_per_s()) : std::nullopt;
}

provenance expectation::known(direction way, host_end end) const noexcept {
  const auto& found = at(way, end);
  return found ? found->known : provenance::unknown;
}

}  // namespace berth::diagnose
