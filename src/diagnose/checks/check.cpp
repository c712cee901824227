// SPDX-License-Identifier: Apache-2.0
// The table of checks, and the sum of what they say.
#include "diagnose/checks/check.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

constexpr std::array all_checks{
    check{"contradictory-input", "Sources that contradict each other", check_contradictions},
    check{"device-access", "Access to the GPUs' device files", check_device_access},
    check{"visible-devices", "GPUs that are hidden or renumbered", check_visible_devices},
    check{"link-below-capability", "The link between GPU and host", check_host_link},
    check{"xnack", "Managed memory that migrates (XNACK)", check_xnack},
    check{"large-bar", "How much GPU memory the host can address", check_large_bar},
    check{"address-reach", "Addresses that GPUs can reach", check_address_reach},
    check{"process-numa", "Process and GPU on NUMA nodes", check_process_numa},
    check{"gpu-numa-order", "Order of GPUs and of NUMA nodes", check_gpu_order},
    check{"acs-redirect", "Peer traffic redirected by ACS", check_acs_redirect},
    check{"iommu", "Mode of the IOMMU", check_iommu},
    check{"peer-access", "Direct access between GPUs", check_peer_access},
    check{"hives", "GPUs joined by fast links", check_hives},
    check{"link-weights", "What weights and hops mean", check_link_weights},
    check{"copy-engines", "Copy engines switched off or steered", check_copy_engines},
    check{"logged-copies", "Engines that a log shows at work", check_logged_copies},
    check{"measured-rates", "Rates that were measured", check_measured_rates},
    check{"memory-limits", "Limits on memory", check_memory_limits},
    check{"numa-balancing", "Automatic NUMA balancing", check_numa_balancing},
    check{"huge-pages", "Transparent huge pages", check_huge_pages},
    check{"cpu-governor", "Clock policy of the CPUs", check_governor},
};

std::size_t count_of(const checkup& all, verdict which) {
  return static_cast<std::size_t>(std::ranges::count(all.results, which, &check_result::verdict));
}

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string headline_of(const checkup& all, const machine::survey& seen) {
  const auto faults = count_of(all, verdict::fault);
  const auto limits = count_of(all, verdict::limit);
  const auto unknown = count_of(all, verdict::unknown);
  std::string text = faults > 0 ? plural(faults, "fault", "faults") : std::string("No fault found");
  if (limits > 0) {
    text += fmt::format(", {}", plural(limits, "limit of this platform or its settings",
                                       "limits of this platform or its settings"));
  }
  if (unknown > 0) {
    text += fmt::format(", {} that cannot be told from this input", unknown);
  }
  if (seen.machine.gpus.empty()) {
    text += "; no GPU was seen";
  }
  return text;
}

void sum_up(checkup& all, const machine::survey& seen) {
  std::ranges::stable_sort(all.results, std::ranges::greater{}, &check_result::verdict);
  all.worst = all.results.empty() ? verdict::normal : all.results.front().verdict;
  all.headline = headline_of(all, seen);
}

}  // namespace

std::string_view to_string(verdict value) noexcept {
  constexpr std::array<std::string_view, 4> names{"normal", "unknown", "limit", "fault"};
  return names[static_cast<std::size_t>(value)];
}

std::span<const check> checks() noexcept {
  return all_checks;
}

const check* find_check(std::string_view id) noexcept {
  const auto* const found = std::ranges::find(all_checks, id, &check::id);
  return found == all_checks.end() ? nullptr : &*found;
}

checkup check_machine(const machine::survey& seen) {
  checkup all;
  for (const auto& one : all_checks) {
    const auto before = all.results.size();
    one.evaluate(seen, all.results);
    for (auto index = before; index < all.results.size(); ++index) {
      all.results[index].check = one.id;
    }
  }
  if (all.results.empty() && seen.kind == machine::survey_kind::pasted && seen.sources.empty()) {
    all.worst = verdict::unknown;
    all.headline = "Nothing in the input describes a machine";
    return all;
  }
  sum_up(all, seen);
  return all;
}

void add_tried_xnack(const machine::survey& tried, checkup& into, const machine::survey& seen) {
  auto result = tried_xnack(tried);
  result.check = "xnack";
  into.results.push_back(std::move(result));
  sum_up(into, seen);
}

}  // namespace berth::diagnose
