// SPDX-License-Identifier: Apache-2.0
// How much of a GPU's memory the host, and peers, can address: the size of its BAR.
#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

using machine::setting_state;

// Some memory is the firmware's own, so a full BAR may be a little smaller than the memory.
constexpr double full_share = 0.9;

bool is_full(const machine::gpu& gpu) {
  return static_cast<double>(*gpu.bar) >= full_share * static_cast<double>(*gpu.memory);
}

struct bars {
  std::vector<std::size_t> full;
  std::vector<std::size_t> small;
  std::vector<std::size_t> untold;
};

bars sorted_by_bar(const machine::survey& seen) {
  bars sorted;
  const auto& gpus = seen.machine.gpus;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    const auto& gpu = gpus[position];
    if (gpu.integrated == setting_state::on) {
      continue;  // the host addresses that memory anyway
    }
    auto& into = !gpu.bar || !gpu.memory ? sorted.untold
                 : is_full(gpu)          ? sorted.full
                                         : sorted.small;
    into.push_back(position);
  }
  return sorted;
}

check_result small_bar(const machine::survey& seen, const std::vector<std::size_t>& positions) {
  const auto& first = seen.machine.gpus[positions.front()];
  const bool is_amd = first.made_by == machine::vendor::amd;
  check_result result{.verdict = is_amd ? verdict::fault : verdict::limit};
  result.gpus = indices_of(seen, positions);
  result.headline =
      fmt::format("{}: the host can address {} of {} GPU memory; {}", gpu_names(result.gpus),
                  format_bytes(*first.bar), format_bytes(*first.memory),
                  is_amd ? "peers cannot reach it, and the CPU not all of it"
                         : "usual for desktop cards; peer access and GPUDirect need more");
  for (const auto position : positions) {
    const auto& gpu = seen.machine.gpus[position];
    result.evidence.push_back(
        evidence_of(seen, gpu_field(position, "bar"), format_bytes(*gpu.bar)));
    result.evidence.push_back(
        evidence_of(seen, gpu_field(position, "memory"), format_bytes(*gpu.memory)));
  }
  result.confirm = fmt::format("sudo lspci -vv -s {} | grep -E 'Region|BAR'",
                               first.pci_address.empty() ? "ADDRESS" : first.pci_address);
  result.fix = {
      "Turn on \"Above 4G Decoding\" and \"Resizable BAR\" (large BAR) in the firmware's "
      "setup; virtual machines need 64-bit MMIO space that is large enough."};
  return result;
}

}  // namespace

void check_large_bar(const machine::survey& seen, std::vector<check_result>& results) {
  const auto sorted = sorted_by_bar(seen);
  if (!sorted.small.empty()) {
    results.push_back(small_bar(seen, sorted.small));
  }
  if (!sorted.full.empty()) {
    const auto all = indices_of(seen, sorted.full);
    results.push_back(
        {.headline = fmt::format("{}: the host can address all GPU memory ({})", gpu_names(all),
                                 format_bytes(*seen.machine.gpus[sorted.full.front()].memory)),
         .evidence = {evidence_of(seen, gpu_field(sorted.full.front(), "bar"),
                                  format_bytes(*seen.machine.gpus[sorted.full.front()].bar))},
         .gpus = all});
  }
  if (!sorted.untold.empty()) {
    const auto all = indices_of(seen, sorted.untold);
    results.push_back({.verdict = verdict::unknown,
                       .headline = fmt::format("{}: the size of the BAR, or of the memory, is not "
                                               "in the input",
                                               gpu_names(all)),
                       .confirm = "sudo lspci -vv | grep -E 'VGA|Display|accelerators|Region'",
                       .gpus = all});
  }
}

}  // namespace berth::diagnose
