// SPDX-License-Identifier: Apache-2.0
// Copies over a link that is less than what the GPU's model has: lanes that are lost, or a slot
// with no more. Needs the machine beside the trace. What is lost is the difference between what
// this link and the model's own give, for copies that the link limits; those that the CPU limits
// lose nothing.
#include <algorithm>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"
#include "machine/catalogue.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

// What berth doctor says of the link of the GPU.
std::optional<check_result> doctor_on_link(const joined_machine& on, std::uint32_t device) {
  const auto positions = on.gpus_of(device);
  std::vector<check_result> all;
  check_host_link(on.seen(), all);
  std::optional<check_result> worst;
  for (auto& one : all) {
    const bool concerns = std::ranges::any_of(positions, [&](std::size_t position) {
      const auto index = on.seen().machine.gpus[position].index;
      return std::ranges::find(one.gpus, index) != one.gpus.end();
    });
    if (concerns && (!worst || one.verdict > worst->verdict)) {
      worst = std::move(one);
    }
  }
  return worst;
}

host_end end_of(const copy& which) {
  return is_pageable(which.host_kind()) ? host_end::pageable : host_end::pinned;
}

// What the copy would take less at the model's own link.
std::optional<double> time_at_full_link(const workload& work, const machine::machine_profile& full,
                                        const copy& which) {
  const auto way = which.details->direction;
  const auto bytes = *which.details->bytes;
  const auto end = end_of(which);
  const auto match = full.lookup(
      {.way = way, .host = end == host_end::pinned ? memory_kind::pinned : memory_kind::pageable});
  const auto here = work.expected().time_ns(way, end, bytes);
  if (!match || !here) {
    return std::nullopt;
  }
  const auto working = static_cast<double>(which.working_ns());
  const auto limited = std::min(*here, working);
  return working - std::max(0.0, limited - match->device_time.nanoseconds(bytes));
}

}  // namespace

void find_link_limit(const workload& work, std::vector<finding>& findings) {
  const auto* const on = work.machine();
  const auto& devices = work.events().about.devices;
  const auto device = devices.empty() ? 0 : devices.front().index;
  const auto link = on != nullptr ? on->link_of(device) : std::nullopt;
  if (!link || on->model() == nullptr || on->model()->hardware.gpus.size() != 1) {
    return;
  }
  const auto own = on->model()->hardware.gpus.front().host_link;
  const auto has = machine::pcie_gb_per_s(*link);
  const auto could = machine::pcie_gb_per_s(own);
  if (!has || !could || *has >= *could) {
    return;
  }
  const auto chosen = select(work, [](const copy& which) {
    return which.details->bytes && !is_tiny(which) && !is_fixed(which);
  });
  const auto full = machine::nominal_profile(*on->model());
  auto found = gains_to(work, chosen,
                        [&](const copy& which) { return time_at_full_link(work, full, which); });
  const auto doctor = doctor_on_link(*on, device);
  if (work.share_of_span(found.total_ns) < small_share || !doctor) {
    return;
  }
  const bool is_fault = doctor->verdict == verdict::fault;
  auto evidence = evidence_of(sum_of(work, chosen));
  evidence.push_back({"link", *has, unit::gb_per_s, provenance::nominal});
  evidence.push_back({"link of the model", *could, unit::gb_per_s, provenance::nominal});
  finding result{
      .rule = "link-limit",
      .severity = !is_fault                                           ? severity::note
                  : work.share_of_span(found.total_ns) >= fault_share ? severity::fault
                                                                      : severity::advice,
      .headline = fmt::format(
          "Copies go over a link of {} where the {} has {}: about {} of their time is the link's. "
          "berth doctor calls it a {}.",
          link_text(*link), on->model()->title, link_text(own), milliseconds(found.total_ns),
          to_string(doctor->verdict)),
      .evidence = std::move(evidence),
      .places = places_of(work, chosen),
      .lost_ns = found.total_ns,
      .saving = std::nullopt,
      .fix = doctor->fix,
      .gains = {}};
  if (is_fault) {
    result.saving = saving{found.total_ns, bound::about, provenance::modelled,
                           fmt::format("the model's own link, {}", link_text(own))};
    result.gains = std::move(found.each);
  }
  findings.push_back(std::move(result));
}

}  // namespace berth::diagnose
