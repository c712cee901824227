// SPDX-License-Identifier: Apache-2.0
// Whether GPUs can address what they are to read and write: each other's memory, which the firmware
// may have put too high, and host memory, of which there may be more than their addresses reach.
#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

using machine::iommu_mode;
using machine::setting_state;

std::optional<std::uint32_t> bits_of(const machine::gpu& gpu) {
  return gpu.dma_bits ? gpu.dma_bits : machine::dma_bits_of(gpu.isa);
}

// The first address that is out of reach; nothing where all 64 bits are used.
std::optional<std::uint64_t> end_of_reach(std::uint32_t bits) {
  return bits < 64 ? std::optional(std::uint64_t{1} << bits) : std::nullopt;
}

std::optional<bytes_t> host_memory(const machine::survey& seen) {
  bytes_t all = 0;
  for (const auto& node : seen.machine.numa_nodes) {
    if (node.memory) {
      all += std::min(*node.memory, std::numeric_limits<bytes_t>::max() - all);
    }
  }
  return all > 0 ? std::optional(all) : std::nullopt;
}

check_evidence bits_evidence(const machine::survey& seen, std::size_t position,
                             std::uint32_t bits) {
  const auto field = gpu_field(position, "dma_bits");
  auto evidence = evidence_of(seen, field, fmt::format("{}", bits));
  if (evidence.source.empty()) {
    evidence.source = fmt::format("what the driver sets for {}", seen.machine.gpus[position].isa);
  }
  return evidence;
}

check_result peer_too_high(const machine::survey& seen, std::size_t from, std::size_t to,
                           std::uint32_t bits) {
  const auto& target = seen.machine.gpus[to];
  check_result result{.verdict = verdict::fault};
  result.headline = fmt::format(
      "GPU {}'s memory is at {:#x}, and GPU {} reaches addresses of {} bits: it cannot be its "
      "peer, "
      "and copies between the two go through host memory",
      target.index, *target.bar_address, seen.machine.gpus[from].index, bits);
  result.evidence = {
      evidence_of(seen, gpu_field(to, "bar_address"), fmt::format("{:#x}", *target.bar_address)),
      bits_evidence(seen, from, bits)};
  result.confirm = "sudo lspci -vv | grep -E 'Region|prefetchable'";
  result.fix = {
      "Set the base or the limit of 64-bit MMIO in the firmware's setup lower (\"MMIO High Base\", "
      "\"MMIO High Size\"): GPU memory then comes to addresses that all GPUs reach."};
  result.gpus = {seen.machine.gpus[from].index, target.index};
  return result;
}

// The first of each GPU: one entry of the firmware moves all.
void check_peers(const machine::survey& seen, std::vector<check_result>& results) {
  const auto& gpus = seen.machine.gpus;
  for (std::size_t from = 0; from < gpus.size(); ++from) {
    const auto bits = bits_of(gpus[from]);
    const auto end = bits ? end_of_reach(*bits) : std::nullopt;
    if (!end) {
      continue;
    }
    for (std::size_t to = 0; to < gpus.size(); ++to) {
      const auto& target = gpus[to];
      const bool is_peer = from != to && target.made_by == gpus[from].made_by &&
                           target.integrated != setting_state::on;
      if (is_peer && target.bar_address && target.bar &&
          (*target.bar_address >= *end || *target.bar > *end - *target.bar_address)) {
        results.push_back(peer_too_high(seen, from, to, *bits));
        break;
      }
    }
  }
}

void check_host_memory(const machine::survey& seen, std::vector<check_result>& results) {
  const auto memory = host_memory(seen);
  std::optional<std::size_t> shortest;
  for (std::size_t position = 0; position < seen.machine.gpus.size(); ++position) {
    const auto bits = bits_of(seen.machine.gpus[position]);
    if (bits && (!shortest || *bits < *bits_of(seen.machine.gpus[*shortest]))) {
      shortest = position;
    }
  }
  const auto bits = shortest ? bits_of(seen.machine.gpus[*shortest]) : std::nullopt;
  const auto end = bits ? end_of_reach(*bits) : std::nullopt;
  if (!memory || !bits) {
    return;
  }
  const std::vector<check_evidence> evidence{bits_evidence(seen, *shortest, *bits)};
  if (!end || *memory <= *end) {
    results.push_back(
        {.headline = fmt::format("GPUs reach addresses of {} bits, which is enough for "
                                 "the host's {}",
                                 *bits, format_bytes(*memory)),
         .evidence = evidence});
    return;
  }
  const bool translated = seen.machine.set.iommu == iommu_mode::translated;
  results.push_back(
      {.verdict = translated ? verdict::normal : verdict::limit,
       .headline = fmt::format(
           "the host has {}, and GPU {} reaches addresses of {} bits ({}){}", format_bytes(*memory),
           seen.machine.gpus[*shortest].index, *bits, format_bytes(*end),
           translated ? ": the IOMMU gives it addresses that it reaches"
                      : ": memory above that is copied through bounce buffers of the kernel"),
       .evidence = evidence,
       .confirm = translated ? "" : "sudo dmesg | grep -iE 'swiotlb|DMA mask|amdgpu'",
       .fix = translated ? std::vector<std::string>{}
                         : std::vector<std::string>{"Let the IOMMU translate for this GPU (without "
                                                    "iommu=pt), or take memory near its node."}});
}

}  // namespace

void check_address_reach(const machine::survey& seen, std::vector<check_result>& results) {
  check_peers(seen, results);
  check_host_memory(seen, results);
}

}  // namespace berth::diagnose
