// SPDX-License-Identifier: Apache-2.0
// What AMD's compute driver (KFD) publishes: its nodes, their memory, and the links between them.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "machine/hardware_facts.hpp"
#include "topology/live_reader.hpp"

namespace berth::topology {
namespace {

using machine::link_kind;
namespace kfd = machine::kfd;
using machine::place;
using machine::place_kind;
using machine::setting_state;

constexpr std::string_view kfd_nodes = "/sys/class/kfd/kfd/topology/nodes";

constexpr std::uint64_t xgmi_weight_per_hop = 15;
constexpr std::uint64_t most_vendor = 0xffff;

setting_state state_of(bool on) {
  return on ? setting_state::on : setting_state::off;
}

class kfd_reader {
public:
  explicit kfd_reader(reading& in) : in_(&in) {}

  void read() {
    const std::string folder(kfd_nodes);
    const auto nodes = in_->numbered(folder);
    for (const auto node : nodes) {
      const auto id = in_->number(of(node) + "/gpu_id");
      if (!id) {
        continue;
      }
      (*id == 0 ? hosts_ : devices_).push_back(node);
    }
    place_hosts();
    for (const auto node : devices_) {
      read_gpu(node);
    }
    for (const auto& [node, where] : places_) {
      read_links(node, "io_links");
      read_links(node, "p2p_links");
    }
    for (const auto node : devices_) {
      closest_host(node);
    }
    if (!nodes.empty()) {
      in_->seen.sources.push_back(folder);
    }
  }

private:
  static std::string of(std::uint32_t node) { return fmt::format("{}/{}", kfd_nodes, node); }

  // The driver numbers the host's nodes in the order of the kernel's.
  void place_hosts() {
    auto& known = in_->seen.machine.numa_nodes;
    const bool are_new = known.empty();
    if (!are_new && known.size() != hosts_.size() && !hosts_.empty()) {
      in_->say.reading(std::string(kfd_nodes));
      in_->say.problem(fmt::format(
          "it has {} nodes of CPUs where the kernel has {} NUMA nodes, so which is which is not "
          "known; the links to them are left out",
          hosts_.size(), known.size()));
      return;
    }
    for (std::size_t index = 0; index < hosts_.size(); ++index) {
      if (are_new) {
        auto& node = known.emplace_back();
        node.id = static_cast<std::uint32_t>(index);
        const auto bytes = memory_of(hosts_[index], {kfd::heap_system});
        if (bytes.total != 0) {
          in_->say.says(fmt::format("numa_nodes[{}].memory", index), node.memory, bytes.total,
                        fmt::format("{} bytes", bytes.total));
        }
      }
      places_[hosts_[index]] = {place_kind::numa_node, known[index].id};
    }
  }

  struct memory_found {
    bytes_t total = 0;
    bool visible = false;
  };

  memory_found memory_of(std::uint32_t node, std::initializer_list<std::uint64_t> heaps) {
    memory_found found;
    const auto folder = of(node) + "/mem_banks";
    for (const auto bank : in_->numbered(folder)) {
      const auto values = in_->table(fmt::format("{}/{}/properties", folder, bank));
      if (!values) {
        continue;
      }
      const auto heap = value_of(*values, "heap_type");
      const auto size = value_of(*values, "size_in_bytes");
      if (std::ranges::find(heaps, heap) == heaps.end()) {
        continue;
      }
      if (size >= (1ULL << 50U)) {
        in_->say.problem(fmt::format("{} bytes is no size that memory has; left out", size));
        continue;
      }
      found.total += size;
      found.visible = found.visible || heap == kfd::heap_visible;
    }
    return found;
  }

  void read_gpu(std::uint32_t node) {
    const auto values = in_->table(of(node) + "/properties");
    if (!values) {
      return;
    }
    auto& gpus = in_->seen.machine.gpus;
    const auto index = gpus.size();
    places_[node] = {place_kind::gpu, static_cast<std::uint32_t>(index)};
    auto& gpu = gpus.emplace_back();
    gpu.index = static_cast<std::uint32_t>(index);
    in_->pci_folders.emplace_back();
    read_identity(gpu, *values);
    read_abilities(gpu, *values);
    read_hive(gpu, *values);
    read_memory(gpu, node);
  }

  void read_identity(machine::gpu& gpu, const properties& values) {
    auto& say = in_->say;
    const auto vendor = value_of(values, "vendor_id");
    const auto device = value_of(values, "device_id");
    if (vendor == 0x1002) {
      say.says(gpu_field(gpu.index, "made_by"), gpu.made_by, machine::vendor::amd, "amd");
    }
    if (vendor != 0 && vendor <= most_vendor && device <= most_vendor) {
      say.says(gpu_field(gpu.index, "pci_vendor_id"), gpu.pci_vendor_id, vendor,
               fmt::format("{:#06x}", vendor));
      say.says(gpu_field(gpu.index, "pci_device_id"), gpu.pci_device_id, device,
               fmt::format("{:#06x}", device));
    }
    if (values.contains("location_id")) {
      const auto address =
          pci_address_of(value_of(values, "domain"), value_of(values, "location_id"));
      say.says(gpu_field(gpu.index, "pci_address"), gpu.pci_address, address, address);
    }
    const auto isa = isa_of(value_of(values, "gfx_target_version"));
    if (isa.empty()) {
      return;
    }
    say.says(gpu_field(gpu.index, "isa"), gpu.isa, isa, isa);
    if (const auto can = machine::xnack_ability_of(isa); can != machine::xnack_ability::unknown) {
      say.says(gpu_field(gpu.index, "xnack_can"), gpu.xnack_can, can, std::string(to_string(can)));
    }
  }

  void read_abilities(machine::gpu& gpu, const properties& values) {
    auto& say = in_->say;
    if (const auto per_unit = value_of(values, "simd_per_cu"); per_unit != 0) {
      const auto units = value_of(values, "simd_count") / per_unit;
      if (units > 0 && units < 4096) {
        say.says(gpu_field(gpu.index, "compute_units"), gpu.compute_units, units,
                 fmt::format("{}", units));
      } else {
        say.problem(fmt::format("{} compute units; left out", units));
      }
    }
    if (values.contains("num_sdma_engines")) {
      const auto count = value_of(values, "num_sdma_engines");
      say.says(gpu_field(gpu.index, "dma_engines"), gpu.dma_engines, count,
               fmt::format("{}", count));
    }
    if (values.contains("num_sdma_xgmi_engines")) {
      const auto count = value_of(values, "num_sdma_xgmi_engines");
      say.says(gpu_field(gpu.index, "xgmi_engines"), gpu.xgmi_engines, count,
               fmt::format("{}", count));
    }
    if (values.contains("capability")) {
      const auto bits = value_of(values, "capability");
      const auto coherent = state_of((bits & kfd::coherent_host_bit) != 0);
      say.says(gpu_field(gpu.index, "coherent_host_access"), gpu.coherent_host_access, coherent,
               std::string(to_string(coherent)));
      read_hmm((bits & kfd::svm_bit) != 0);
    }
  }

  // One device that can is enough to know that kernel and driver can.
  void read_hmm(bool here) {
    auto& hmm = in_->seen.machine.set.hmm;
    if (hmm == setting_state::unknown) {
      in_->say.says("settings.hmm", hmm, state_of(here), here ? "on" : "off");
    } else if (here) {
      hmm = setting_state::on;
      for (auto& claim : in_->seen.claims) {
        claim.value = claim.field == "settings.hmm" ? "on" : claim.value;
      }
    }
  }

  // Hives are numbered as they come: the driver's own number is one of the hardware.
  void read_hive(machine::gpu& gpu, const properties& values) {
    const auto id = value_of(values, "hive_id");
    if (id == 0) {
      return;
    }
    auto& hives = in_->hives;
    auto found = std::ranges::find(hives, id);
    if (found == hives.end()) {
      found = hives.insert(hives.end(), id);
    }
    const auto number = static_cast<std::uint64_t>(found - hives.begin()) + 1;
    in_->say.says(gpu_field(gpu.index, "hive"), gpu.hive, number, fmt::format("{}", number));
  }

  void read_memory(machine::gpu& gpu, std::uint32_t node) {
    const auto found = memory_of(node, {kfd::heap_visible, kfd::heap_private});
    if (found.total == 0) {
      return;
    }
    in_->say.says(gpu_field(gpu.index, "memory"), gpu.memory, found.total,
                  fmt::format("{} bytes", found.total));
  }

  void read_links(std::uint32_t node, std::string_view kind) {
    const auto folder = fmt::format("{}/{}", of(node), kind);
    for (const auto number : in_->numbered(folder)) {
      const auto values = in_->table(fmt::format("{}/{}/properties", folder, number));
      if (values) {
        read_link(*values);
      }
    }
  }

  void read_link(const properties& values) {
    const auto from = places_.find(static_cast<std::uint32_t>(value_of(values, "node_from")));
    const auto to = places_.find(static_cast<std::uint32_t>(value_of(values, "node_to")));
    if (from == places_.end() || to == places_.end() || from == to) {
      if (hosts_placed()) {
        in_->say.problem(
            fmt::format("a link between the nodes {} and {}, which are not both known; "
                        "left out",
                        value_of(values, "node_from"), value_of(values, "node_to")));
      }
      return;
    }
    const auto kind = kfd::link_kind_of(value_of(values, "type"), from->second, to->second);
    const auto index = link_between(from->second, to->second, kind);
    auto& link = in_->seen.machine.links[index];
    const auto field = fmt::format("links[{}].", index);
    in_->say.says(field + "kind", link.kind, kind, std::string(to_string(kind)));
    const auto weight = value_of(values, "weight");
    if (weight != 0 && weight < (1U << 16U)) {
      in_->say.says(field + "weight", link.weight, weight, fmt::format("{}", weight));
    }
    if (kind == link_kind::xgmi && from->second.kind == place_kind::gpu &&
        to->second.kind == place_kind::gpu) {
      read_xgmi(link, field, values);
    }
  }

  void read_xgmi(machine::link& link, const std::string& field, const properties& values) {
    const auto weight = value_of(values, "weight");
    if (weight != 0 && weight % xgmi_weight_per_hop == 0) {
      const auto hops = weight / xgmi_weight_per_hop;
      in_->say.says(field + "hops", link.hops, hops, fmt::format("{}", hops));
    }
    const auto found =
        kfd::xgmi_links_of(value_of(values, "min_bandwidth"), value_of(values, "max_bandwidth"),
                           in_->seen.machine.gpus[link.from.id].isa);
    if (!found) {
      return;
    }
    in_->say.says(field + "count", link.count, found->count, fmt::format("{}", found->count));
    if (found->gb_per_s) {
      in_->say.says(field + "nominal_gb_per_s", link.nominal_gb_per_s, *found->gb_per_s,
                    fmt::format("{} GB/s", *found->gb_per_s));
    }
  }

  [[nodiscard]] bool hosts_placed() const {
    return std::ranges::all_of(hosts_, [&](auto node) { return places_.contains(node); });
  }

  std::size_t link_between(const place& a, const place& b, link_kind kind) {
    auto& links = in_->seen.machine.links;
    const auto found = std::ranges::find_if(links, [&](const machine::link& one) {
      return ((one.from == a && one.to == b) || (one.from == b && one.to == a)) && one.kind == kind;
    });
    if (found != links.end()) {
      return static_cast<std::size_t>(found - links.begin());
    }
    auto& added = links.emplace_back();
    added.from = a;
    added.to = b;
    return links.size() - 1;
  }

  // The host's node that the link of least weight leads to; none where two are as close.
  void closest_host(std::uint32_t node) {
    const auto where = places_.find(node);
    if (where == places_.end()) {
      return;
    }
    const machine::link* closest = nullptr;
    bool shared = false;
    for (const auto& link : in_->seen.machine.links) {
      const bool leads = link.from == where->second || link.to == where->second;
      const bool to_host =
          link.from.kind == place_kind::numa_node || link.to.kind == place_kind::numa_node;
      if (!leads || !to_host || !link.weight) {
        continue;
      }
      shared = closest != nullptr && *closest->weight == *link.weight;
      if (closest == nullptr || *link.weight < *closest->weight) {
        closest = &link;
      }
    }
    if (closest == nullptr || shared) {
      return;
    }
    const auto host =
        closest->from.kind == place_kind::numa_node ? closest->from.id : closest->to.id;
    auto& gpu = in_->seen.machine.gpus[where->second.id];
    in_->say.reading(of(node) + "/io_links");
    in_->say.says(gpu_field(gpu.index, "numa_node"), gpu.numa_node, host, fmt::format("{}", host));
  }

  reading* in_;
  std::vector<std::uint32_t> hosts_;
  std::vector<std::uint32_t> devices_;
  std::map<std::uint32_t, place> places_;  // of the driver's nodes
};

}  // namespace

void read_kfd(reading& in) {
  kfd_reader(in).read();
}

}  // namespace berth::topology
