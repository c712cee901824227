// SPDX-License-Identifier: Apache-2.0
// GPUs and each other: who reaches whom, by which links, and what stands in between.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

using machine::iommu_mode;
using machine::link_kind;
using machine::pci_port;
using machine::setting_state;

bool is_virtual_machine(const machine::survey& seen) {
  return seen.machine.set.virtual_machine == setting_state::on;
}

std::string_view fast_name(const machine::survey& seen) {
  return count_gpus(seen, machine::vendor::amd) > 0 ? "xGMI" : "NVLink";
}

// GPUs, or GPUs that an excerpt does not show, may want to reach each other.
bool may_have_peers(const machine::survey& seen) {
  return seen.machine.gpus.size() > 1 ||
         (seen.machine.gpus.empty() && seen.kind == machine::survey_kind::pasted);
}

struct redirecting_port {
  std::string field;
  std::string address;
  pci_port port;
};

// Each once, though several GPUs may lie below. A card's own switch has only its own GPU below.
std::vector<redirecting_port> redirecting_ports(const machine::survey& seen) {
  std::vector<redirecting_port> found;
  std::set<std::string> met;
  for (std::size_t position = 0; position < seen.machine.gpus.size(); ++position) {
    const auto& way = seen.machine.gpus[position].pci_path;
    for (std::size_t at = 0; at < way.size(); ++at) {
      if (way[at].acs_redirect == setting_state::on && met.insert(way[at].address).second) {
        found.push_back({gpu_field(position, fmt::format("pci_path[{}].acs_redirect", at)),
                         way[at].address, way[at].port});
      }
    }
  }
  for (std::size_t index = 0; index < seen.machine.pci_devices.size(); ++index) {
    const auto& device = seen.machine.pci_devices[index];
    if (seen.machine.gpus.empty() && device.acs_redirect == setting_state::on) {
      found.push_back({fmt::format("pci_devices[{}].acs_redirect", index),
                       device.address.empty() ? "a bridge without address" : device.address,
                       device.port});
    }
  }
  return found;
}

enum class redirect_seen : std::uint8_t { untold, none, some };

redirect_seen redirect_of(const machine::survey& seen, const std::vector<redirecting_port>& ports) {
  if (!ports.empty() || seen.machine.set.acs_redirect == setting_state::on) {
    return redirect_seen::some;
  }
  const bool looked =
      seen.machine.set.acs_redirect == setting_state::off ||
      std::ranges::any_of(seen.machine.gpus, [](const machine::gpu& gpu) {
        return std::ranges::any_of(gpu.pci_path, [](const machine::pci_device& device) {
          return device.acs_redirect == setting_state::off;
        });
      });
  return looked ? redirect_seen::none : redirect_seen::untold;
}

// A redirect at root ports alone changes no path where the IOMMU translates nothing.
bool is_harmless(const machine::survey& seen, const std::vector<redirecting_port>& ports) {
  const auto mode = seen.machine.set.iommu;
  return (mode == iommu_mode::off || mode == iommu_mode::passthrough) && !ports.empty() &&
         std::ranges::all_of(
             ports, [](const redirecting_port& one) { return one.port == pci_port::root_port; });
}

std::string addresses_of(const std::vector<redirecting_port>& ports) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t index = 0; index < std::min(shown, ports.size()); ++index) {
    text += fmt::format("{}{}", index == 0 ? "" : ", ", ports[index].address);
  }
  return ports.size() > shown ? fmt::format("{} and {} more", text, ports.size() - shown) : text;
}

check_result redirected(const machine::survey& seen, const std::vector<redirecting_port>& ports) {
  check_result result{.confirm = "sudo lspci -vvv | grep -i acsctl"};
  for (const auto& one : ports) {
    result.evidence.push_back(evidence_of(seen, one.field, "on"));
  }
  if (ports.empty()) {
    result.evidence.push_back(evidence_of(seen, "settings.acs_redirect", "on"));
  }
  const auto where = ports.empty() ? std::string("PCIe bridges") : addresses_of(ports);
  if (!may_have_peers(seen) || (!seen.machine.gpus.empty() && !has_pcie_peers(seen))) {
    result.headline = fmt::format(
        "ACS redirect is on at {}, and no GPUs here exchange data over "
        "PCIe: it costs nothing",
        where);
    return result;
  }
  if (is_virtual_machine(seen)) {
    result.verdict = verdict::limit;
    result.headline = fmt::format(
        "ACS redirect is on at {}, as a virtual machine's host needs it; "
        "peer traffic over PCIe goes through the root complex",
        where);
    return result;
  }
  if (is_harmless(seen, ports)) {
    result.headline = fmt::format(
        "ACS redirect is on at root ports only ({}), and the IOMMU does "
        "not translate: peer traffic goes through the root complex anyway",
        where);
    return result;
  }
  result.verdict = verdict::fault;
  result.headline = fmt::format(
      "ACS redirect is on at {}: requests between GPUs go up to the root "
      "complex and through the IOMMU; peer copies are slow, or hang",
      where);
  result.fix = {
      "Turn ACS off in the firmware's setup where the machine runs no virtual machines, "
      "and boot with iommu=pt.",
      "Until the next boot, for each bridge: sudo setpci -s ADDRESS ECAP_ACS+6.w=0000"};
  return result;
}

check_result translated(const machine::survey& seen) {
  check_result result{.confirm =
                          "cat /proc/cmdline; cat /sys/kernel/iommu_groups/*/type | sort | "
                          "uniq -c"};
  result.evidence.push_back(evidence_of(seen, "settings.iommu", "translated"));
  const bool instinct = std::ranges::any_of(seen.machine.gpus, is_instinct);
  const bool radeon_only = count_gpus(seen, machine::vendor::amd) > 0 && !instinct &&
                           std::ranges::none_of(seen.machine.gpus, [](const machine::gpu& gpu) {
                             return gpu.isa.empty();
                           });
  const std::string fix =
      "Boot with iommu=pt (AMD hosts: amd_iommu=on iommu=pt; Intel hosts: "
      "intel_iommu=on iommu=pt).";
  if (radeon_only || is_virtual_machine(seen)) {
    result.headline = radeon_only ? "the IOMMU translates, which is the recommended mode for Radeon"
                                  : "the IOMMU that this virtual machine sees translates";
  } else if (may_have_peers(seen) && (seen.machine.gpus.empty() || has_pcie_peers(seen))) {
    result.verdict = verdict::fault;
    result.headline =
        "the IOMMU translates each access of the GPUs: peer copies over PCIe are "
        "slow, fail or hang";
    result.fix = {fix};
  } else {
    result.verdict = instinct ? verdict::limit : verdict::normal;
    result.headline =
        "the IOMMU translates each access to host memory; no GPUs exchange data "
        "over PCIe here, so the cost is small";
    result.fix = {fix};
  }
  return result;
}

// Sets of GPUs, by position, that fast links join directly or through others.
std::vector<std::vector<std::size_t>> joined_sets(const machine::survey& seen,
                                                  const std::vector<gpu_pair>& pairs) {
  const auto& gpus = seen.machine.gpus;
  std::vector<std::size_t> set_of(gpus.size());
  std::iota(set_of.begin(), set_of.end(), std::size_t{0});
  for (const auto& pair : pairs) {
    const auto& a = gpus[pair.first];
    const auto& b = gpus[pair.second];
    if (is_fast(pair) || (a.hive && b.hive && *a.hive == *b.hive && *a.hive != 0)) {
      std::ranges::replace(set_of, std::size_t{set_of[pair.second]},
                           std::size_t{set_of[pair.first]});
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> by_set;
  for (std::size_t position = 0; position < set_of.size(); ++position) {
    by_set[set_of[position]].push_back(position);
  }
  std::vector<std::vector<std::size_t>> sets;
  for (auto& [ignored, members] : by_set) {
    sets.push_back(std::move(members));
  }
  return sets;
}

std::string sets_text(const machine::survey& seen,
                      const std::vector<std::vector<std::size_t>>& sets) {
  std::string text;
  for (const auto& members : sets) {
    text += fmt::format("{}{}", text.empty() ? "" : " | ", gpu_names(indices_of(seen, members)));
  }
  return text;
}

bool knows_links(const machine::survey& seen, const std::vector<gpu_pair>& pairs) {
  return std::ranges::any_of(pairs, [](const gpu_pair& pair) { return pair.joined.has_value(); }) ||
         std::ranges::any_of(seen.machine.gpus,
                             [](const machine::gpu& gpu) { return gpu.hive.has_value(); });
}

void cite_links(const machine::survey& seen, check_result& result) {
  std::map<link_kind, std::size_t> first;
  for (std::size_t index = 0; index < seen.machine.links.size(); ++index) {
    const auto& link = seen.machine.links[index];
    const bool between_gpus =
        link.from.kind == machine::place_kind::gpu && link.to.kind == machine::place_kind::gpu;
    if (between_gpus && first.emplace(link.kind, index).second) {
      result.evidence.push_back(evidence_of(seen, fmt::format("links[{}].kind", index),
                                            std::string(to_string(link.kind))));
    }
  }
}

// Why two GPUs may have no way to each other, from what is known of them.
std::string reason_of_no_access(const machine::survey& seen, const gpu_pair& pair) {
  for (const auto position : {pair.first, pair.second}) {
    const auto& gpu = seen.machine.gpus[position];
    if (gpu.bar && gpu.memory && *gpu.bar < *gpu.memory / 2) {
      return fmt::format("only {} of GPU {}'s {} can be addressed from outside (large BAR)",
                         format_bytes(*gpu.bar), gpu.index, format_bytes(*gpu.memory));
    }
  }
  if (seen.machine.set.iommu == iommu_mode::translated) {
    return "the IOMMU translates, and the driver then offers no peer access over PCIe";
  }
  return "the kernel may lack CONFIG_HSA_AMD_P2P, CONFIG_PCI_P2PDMA or CONFIG_DMABUF_MOVE_NOTIFY, "
         "or the chipset forbids it";
}

// Whether a path that is not told of is not there: the compute driver of AMD lists all. Pasted
// excerpts, NVIDIA's library and input that contradicts itself leave some out.
bool tells_of_absence(const machine::survey& seen) {
  return seen.kind != machine::survey_kind::pasted && seen.contradictions.empty() &&
         count_gpus(seen, machine::vendor::nvidia) == 0;
}

struct weight_meaning {
  std::uint32_t weight;
  std::string_view meaning;
};
constexpr std::array weight_meanings{
    weight_meaning{13, "two parts of one socket"},
    weight_meaning{15, "one xGMI step"},
    weight_meaning{30, "two xGMI steps"},
    weight_meaning{45, "three xGMI steps"},
    weight_meaning{20, "PCIe to the host"},
    weight_meaning{40, "PCIe up and down within one NUMA node (20 + 20)"},
    weight_meaning{41, "two sockets"},
    weight_meaning{52, "PCIe and the link between sockets (20 + 32)"},
    weight_meaning{72, "PCIe up, across sockets, and down (20 + 32 + 20)"},
};

std::string meaning_of(std::uint32_t weight) {
  const auto* const known = std::ranges::find(weight_meanings, weight, &weight_meaning::weight);
  return known == weight_meanings.end() ? fmt::format("{}: as the firmware tells", weight)
                                        : fmt::format("{}: {}", weight, known->meaning);
}

}  // namespace

void check_acs_redirect(const machine::survey& seen, std::vector<check_result>& results) {
  const auto ports = redirecting_ports(seen);
  switch (redirect_of(seen, ports)) {
    case redirect_seen::some:
      results.push_back(redirected(seen, ports));
      return;
    case redirect_seen::none:
      results.push_back({.headline =
                             "no bridge redirects peer traffic; other ACS bits, as SrcValid, "
                             "do no harm"});
      return;
    case redirect_seen::untold:
      break;
  }
  if (seen.machine.gpus.size() > 1 && has_pcie_peers(seen) && !is_virtual_machine(seen)) {
    results.push_back({.verdict = verdict::unknown,
                       .headline =
                           "whether bridges redirect peer traffic (ACS) is not in the input; "
                           "reading it takes root",
                       .confirm = "sudo lspci -vvv | grep -i acsctl"});
  }
}

void check_iommu(const machine::survey& seen, std::vector<check_result>& results) {
  switch (seen.machine.set.iommu) {
    case iommu_mode::translated:
      if (!seen.machine.gpus.empty() || seen.kind == machine::survey_kind::pasted) {
        results.push_back(translated(seen));
      }
      return;
    case iommu_mode::off:
    case iommu_mode::passthrough:
      if (!seen.machine.gpus.empty()) {
        const auto mode = std::string(to_string(seen.machine.set.iommu));
        results.push_back(
            {.headline = seen.machine.set.iommu == iommu_mode::off
                             ? "the IOMMU is off: nothing stands between GPUs and memory"
                             : "the IOMMU passes accesses through untranslated (iommu=pt)",
             .evidence = {evidence_of(seen, "settings.iommu", mode)}});
      }
      return;
    case iommu_mode::unknown:
      break;
  }
  if (seen.machine.gpus.size() > 1 && has_pcie_peers(seen)) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = "the mode of the IOMMU is not in the input",
                       .confirm = "cat /proc/cmdline; cat /sys/kernel/iommu_groups/*/type | sort | "
                                  "uniq -c"});
  }
}

void check_peer_access(const machine::survey& seen, std::vector<check_result>& results) {
  auto pairs = pairs_of(seen);
  std::erase_if(pairs, [&](const gpu_pair& pair) {
    return seen.machine.gpus[pair.first].made_by != seen.machine.gpus[pair.second].made_by;
  });
  if (pairs.empty()) {
    return;
  }
  if (std::ranges::none_of(pairs, [](const gpu_pair& pair) { return pair.joined.has_value(); })) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = "whether GPUs reach each other directly is not in the input",
                       .confirm = "rocm-smi --showtopoaccess, or nvidia-smi topo -p2p r"});
    return;
  }
  std::vector<const gpu_pair*> missing;
  for (const auto& pair : pairs) {
    if (!pair.joined) {
      missing.push_back(&pair);
    }
  }
  if (!missing.empty() && !tells_of_absence(seen)) {
    results.push_back(
        {.verdict = verdict::unknown,
         .headline = fmt::format("the input tells of a path for {} of {} pairs of GPUs",
                                 pairs.size() - missing.size(), pairs.size()),
         .confirm = "rocm-smi --showtopoaccess, or nvidia-smi topo -p2p r"});
    return;
  }
  if (missing.empty()) {
    check_result result{
        .headline =
            pairs.size() == 1
                ? std::string("the two GPUs have a path to each other")
                : fmt::format("each of {} pairs of GPUs has a path to each other", pairs.size())};
    cite_links(seen, result);
    results.push_back(std::move(result));
    return;
  }
  const auto& first = *missing.front();
  results.push_back(
      {.verdict = verdict::limit,
       .headline =
           fmt::format("{} of {} pairs of GPUs have no direct path, GPU {} and GPU {} for "
                       "one: their copies go through host memory; {}",
                       missing.size(), pairs.size(), seen.machine.gpus[first.first].index,
                       seen.machine.gpus[first.second].index, reason_of_no_access(seen, first)),
       .confirm = "rocm-smi --showtopoaccess, or nvidia-smi topo -p2p r",
       .fix = {"Large BAR on, iommu=pt, ACS redirect off, and a kernel with CONFIG_HSA_AMD_P2P."}});
}

void check_hives(const machine::survey& seen, std::vector<check_result>& results) {
  const auto pairs = pairs_of(seen);
  if (pairs.empty() || !knows_links(seen, pairs)) {
    return;
  }
  const auto sets = joined_sets(seen, pairs);
  check_result result;
  cite_links(seen, result);
  const auto name = fast_name(seen);
  const auto untold = std::ranges::count_if(pairs, [](const gpu_pair& pair) {
    return pair.joined && pair.joined->kind == link_kind::unknown;
  });
  if (sets.size() > 1 && untold > 0) {
    result.verdict = verdict::unknown;
    result.evidence.clear();
    result.headline = fmt::format(
        "of {} of {} pairs of GPUs it is not known whether xGMI, NVLink or PCIe joins them", untold,
        pairs.size());
    result.confirm = "rocm-smi --showtopotype, or nvidia-smi topo -m";
  } else if (sets.size() == 1) {
    result.headline = fmt::format("{} joins all {} GPUs", name, seen.machine.gpus.size());
  } else if (sets.size() == seen.machine.gpus.size()) {
    result.headline = fmt::format(
        "no {} between GPUs: they reach each other over PCIe, as is usual "
        "without a bridge",
        name);
  } else {
    result.verdict = verdict::limit;
    result.headline = fmt::format(
        "{} groups of GPUs: {}. Within a group {} carries the data, between groups "
        "PCIe and the hosts' links do, which is several times slower",
        sets.size(), sets_text(seen, sets), name);
    result.confirm = count_gpus(seen, machine::vendor::amd) > 0 ? "rocm-smi --showtopotype"
                                                                : "nvidia-smi topo -m";
    result.fix = {
        "Keep ranks that exchange much within one group; two groups are how such "
        "machines are built."};
  }
  results.push_back(std::move(result));
}

void check_link_weights(const machine::survey& seen, std::vector<check_result>& results) {
  std::set<std::uint32_t> weights;
  bool has_hops = false;
  check_result result;
  for (std::size_t index = 0; index < seen.machine.links.size(); ++index) {
    const auto& link = seen.machine.links[index];
    has_hops = has_hops || link.hops.has_value();
    if (link.weight && *link.weight > 0 && weights.insert(*link.weight).second) {
      result.evidence.push_back(evidence_of(seen, fmt::format("links[{}].weight", index),
                                            fmt::format("{}", *link.weight)));
    }
  }
  if (weights.empty() && !has_hops) {
    return;
  }
  for (const auto weight : weights) {
    result.headline +=
        fmt::format("{}{}", result.headline.empty() ? "weights count cost, not speed: " : "; ",
                    meaning_of(weight));
  }
  if (has_hops) {
    result.headline += fmt::format(
        "{}hops are not physical steps: 1 is the GPUs' own fabric, however "
        "many links, 2 the same NUMA node over PCIe, 3 and 4 across nodes",
        result.headline.empty() ? "" : ". ");
  }
  results.push_back(std::move(result));
}

}  // namespace berth::diagnose
