// SPDX-License-Identifier: Apache-2.0
// PCI: each GPU, and every bridge between it and the host. A graphics card may have a switch of its
// own, whose inner link is not the card's link to the host, so the whole way up is read.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "core/text.hpp"
#include "machine/catalogue.hpp"
#include "machine/hardware_facts.hpp"
#include "topology/live_reader.hpp"

namespace berth::topology {
namespace {

using machine::pci_port;
using machine::setting_state;

constexpr std::string_view pci_devices = "/sys/bus/pci/devices";
constexpr std::uint32_t amd_id = 0x1002;
constexpr std::uint32_t nvidia_id = 0x10de;

// Cards of several names have these: which it is, the id does not tell.
constexpr std::array<std::uint32_t, 4> shared_ids = {0x66a1, 0x66af, 0x73bf, 0x744c};

std::uint32_t unsigned_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t index = 0; index < size && at + index < bytes.size(); ++index) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + index]))
             << (8 * index);
  }
  return value;
}

// The PCI Express capability in a configuration space; 0 for none, or where only its begin could
// be read.
std::size_t express_capability(std::string_view config) {
  constexpr std::size_t first_pointer = 0x34;
  constexpr std::uint32_t express = 0x10;
  auto at = unsigned_at(config, first_pointer, 1);
  for (int hops = 0; hops < 48 && at >= 0x40 && at + 4 <= config.size(); ++hops) {
    if (unsigned_at(config, at, 1) == express) {
      return at;
    }
    at = unsigned_at(config, at + 1, 1);
  }
  return 0;
}

pci_port port_of(std::string_view config) {
  const auto at = express_capability(config);
  if (at == 0) {
    return pci_port::unknown;
  }
  switch ((unsigned_at(config, at + 2, 2) >> 4U) & 0xfU) {
    case 0:
    case 1:
    case 9:
      return pci_port::endpoint;
    case 4:
      return pci_port::root_port;
    case 5:
      return pci_port::upstream;
    case 6:
      return pci_port::downstream;
    case 7:
    case 8:
      return pci_port::bridge;
    default:
      return pci_port::unknown;
  }
}

// Access Control Services: whether requests to peers are sent up. Nothing where it can't be seen.
setting_state redirect_of(std::string_view config) {
  constexpr std::size_t extended = 0x100;
  constexpr std::uint32_t access_control = 0x000d;
  constexpr std::uint32_t request_redirect = 1U << 2U;
  if (config.size() < 4096) {
    return setting_state::unknown;
  }
  std::size_t at = extended;
  for (int hops = 0; hops < 64 && at >= extended && at + 8 <= config.size(); ++hops) {
    const auto header = unsigned_at(config, at, 4);
    if ((header & 0xffffU) == access_control) {
      return (unsigned_at(config, at + 6, 2) & request_redirect) != 0 ? setting_state::on
                                                                      : setting_state::off;
    }
    at = header >> 20U;
  }
  return setting_state::off;
}

// The devices on a real path, the GPU's own first.
std::vector<std::string> way_up(std::string folder) {
  std::vector<std::string> way;
  while (true) {
    const auto slash = folder.rfind('/');
    if (slash == std::string::npos || !is_pci_address(std::string_view(folder).substr(slash + 1))) {
      return way;
    }
    way.push_back(folder);
    folder.erase(slash);
  }
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// In a way up from an endpoint, ports of switches come in pairs below the root port.
pci_port port_by_place(std::size_t position, std::size_t count) {
  if (position == 0) {
    return pci_port::endpoint;
  }
  if (position + 1 == count) {
    return pci_port::root_port;
  }
  const bool are_pairs = count % 2 == 0;
  if (!are_pairs) {
    return pci_port::bridge;
  }
  return position % 2 == 1 ? pci_port::downstream : pci_port::upstream;
}

std::string print_link(const machine::pcie_link& link) {
  return fmt::format("{} x{}", link.generation ? fmt::format("gen {}", *link.generation) : "gen ?",
                     link.width ? fmt::format("{}", *link.width) : "?");
}

std::optional<std::uint32_t> lower(std::optional<std::uint32_t> a, std::optional<std::uint32_t> b) {
  if (!a || !b) {
    return a ? a : b;
  }
  return std::min(*a, *b);
}

enum class link_fault : std::uint8_t { told, expected };

class pci_reader {
public:
  explicit pci_reader(reading& in) : in_(&in) {}

  void read() {
    for (const auto& name : in_->names(std::string(pci_devices))) {
      if (is_pci_address(name)) {
        consider(name);
      }
    }
    if (found_) {
      in_->seen.sources.emplace_back(pci_devices);
    }
  }

private:
  void consider(const std::string& address) {
    const auto folder = in_->real(fmt::format("{}/{}", pci_devices, address));
    if (!folder) {
      return;
    }
    const auto kind = in_->number(*folder + "/class");
    const auto maker = in_->number(*folder + "/vendor");
    if (!kind || !maker || (*maker != amd_id && *maker != nvidia_id)) {
      return;
    }
    const auto base = *kind >> 16;
    if (base != 0x03 && base != 0x12) {
      return;
    }
    found_ = true;
    auto& gpus = in_->seen.machine.gpus;
    bool known = false;
    for (std::size_t index = 0; index < gpus.size(); ++index) {
      if (gpus[index].pci_address == address) {
        read_gpu(index, *folder);
        known = true;
      }
    }
    if (!known) {
      add_gpu(address, *folder, static_cast<std::uint32_t>(*maker));
    }
  }

  void add_gpu(const std::string& address, const std::string& folder, std::uint32_t maker) {
    auto& gpus = in_->seen.machine.gpus;
    auto& gpu = gpus.emplace_back();
    gpu.index = static_cast<std::uint32_t>(gpus.size() - 1);
    in_->pci_folders.emplace_back();
    const auto made_by = maker == amd_id ? machine::vendor::amd : machine::vendor::nvidia;
    in_->say.reading(folder + "/vendor");
    in_->say.says(gpu_field(gpu.index, "made_by"), gpu.made_by, made_by,
                  std::string(to_string(made_by)));
    in_->say.says(gpu_field(gpu.index, "pci_vendor_id"), gpu.pci_vendor_id, maker,
                  fmt::format("{:#06x}", maker));
    in_->say.reading(folder);
    in_->say.says(gpu_field(gpu.index, "pci_address"), gpu.pci_address, address, address);
    if (made_by == machine::vendor::nvidia) {
      in_->say.says(gpu_field(gpu.index, "xnack"), gpu.xnack, setting_state::inapplicable,
                    "inapplicable");
    }
    read_gpu(gpu.index, folder);
  }

  void read_gpu(std::size_t index, const std::string& folder) {
    in_->pci_folders[index] = folder;
    read_ids(index, folder);
    read_state(index, folder);
    read_way(index, folder);
    read_memory(index, folder);
    read_numa_node(index, folder);
    read_partitions(index, folder);
    read_name(index, folder);
  }

  machine::gpu& gpu_at(std::size_t index) { return in_->seen.machine.gpus[index]; }

  void read_ids(std::size_t index, const std::string& folder) {
    if (const auto id = in_->number(folder + "/device"); id && *id >= 0 && *id <= 0xffff) {
      in_->say.says(gpu_field(index, "pci_device_id"), gpu_at(index).pci_device_id, *id,
                    fmt::format("{:#06x}", *id));
    }
  }

  void read_state(std::size_t index, const std::string& folder) {
    auto& gpu = gpu_at(index);
    if (const auto power = in_->text(folder + "/power/runtime_status"); power && !power->empty()) {
      const auto asleep = *power == "suspended" ? setting_state::on : setting_state::off;
      in_->say.says(gpu_field(index, "asleep"), gpu.asleep, asleep, std::string(to_string(asleep)));
    }
    if (const auto physical = in_->real(folder + "/physfn")) {
      in_->say.reading(folder + "/physfn");
      in_->say.says(gpu_field(index, "virtual_function"), gpu.virtual_function, setting_state::on,
                    "on");
    } else if (in_->text(folder + "/sriov_totalvfs")) {
      in_->say.says(gpu_field(index, "virtual_function"), gpu.virtual_function, setting_state::off,
                    "off");
    }
  }

  void read_way(std::size_t index, const std::string& folder) {
    const auto way = way_up(folder);
    for (std::size_t position = 0; position < way.size(); ++position) {
      read_device(index, position, way[position], way.size());
    }
    read_host_link(index);
  }

  void read_device(std::size_t index, std::size_t position, const std::string& folder,
                   std::size_t count) {
    auto& gpu = gpu_at(index);
    auto& device = gpu.pci_path.emplace_back();
    device.address = last_part(folder);
    const auto field = gpu_field(index, fmt::format("pci_path[{}].", position));
    if (const auto vendor = in_->number(folder + "/vendor"); vendor && *vendor > 0) {
      in_->say.says(field + "vendor_id", device.vendor_id, *vendor,
                    fmt::format("{:#06x}", *vendor));
    }
    if (const auto id = in_->number(folder + "/device"); id && *id >= 0) {
      in_->say.says(field + "device_id", device.device_id, *id, fmt::format("{:#06x}", *id));
    }
    read_port(field, device, folder, port_by_place(position, count),
              position == 0 && gpu.asleep == setting_state::on);
    // A virtual function has no link of its own, and a sleeping device none at all.
    const bool has_none = position == 0 && (gpu.virtual_function == setting_state::on ||
                                            gpu.asleep == setting_state::on);
    const auto fault = has_none ? link_fault::expected : link_fault::told;
    read_link(field + "trained", device.trained, folder + "/current_link_", fault);
    read_link(field + "capable", device.capable, folder + "/max_link_", fault);
  }

  // Reading the configuration of a sleeping device would wake it.
  void read_port(const std::string& field, machine::pci_device& device, const std::string& folder,
                 pci_port by_place, bool is_asleep) {
    const auto config = is_asleep ? std::nullopt : in_->bytes(folder + "/config");
    const auto by_config = config ? port_of(*config) : pci_port::unknown;
    const auto port = by_config == pci_port::unknown ? by_place : by_config;
    if (by_config == pci_port::unknown) {
      in_->say.reading(folder);
    }
    in_->say.says(field + "port", device.port, port, std::string(to_string(port)));
    if (!config) {
      return;
    }
    const auto redirect = redirect_of(*config);
    if (redirect != setting_state::unknown) {
      in_->say.says(field + "acs_redirect", device.acs_redirect, redirect,
                    std::string(to_string(redirect)));
    }
  }

  void read_link(const std::string& field, machine::pcie_link& link, const std::string& prefix,
                 link_fault fault) {
    if (const auto speed = in_->text(prefix + "speed"); speed && !speed->starts_with("Unknown")) {
      const auto words = text::words(*speed);
      const auto known = words.empty() ? std::nullopt : machine::pcie_generation_of(words[0]);
      if (known) {
        in_->say.says(field + ".generation", link.generation, *known,
                      fmt::format("gen {}", *known));
      } else if (fault == link_fault::told) {
        in_->say.problem(fmt::format("\"{}\" is no speed that PCIe has; left out", *speed));
      }
    }
    // 0 and 255 are what ports without a link, as those of virtual machines, have.
    if (const auto width = in_->number(prefix + "width")) {
      if (*width > 0 && machine::is_pcie_width(static_cast<std::uint64_t>(*width))) {
        in_->say.says(field + ".width", link.width, *width, fmt::format("x{}", *width));
      } else if (fault == link_fault::told) {
        in_->say.problem(fmt::format("width x{} is none that PCIe has; left out", *width));
      }
    }
  }

  // The link between the card and its slot: of the outermost device of the card, which is the GPU
  // itself or the upper end of the switch on the card.
  void read_host_link(std::size_t index) {
    auto& gpu = gpu_at(index);
    auto& way = gpu.pci_path;
    if (way.empty()) {
      return;
    }
    std::size_t outer = 0;
    while (outer + 1 < way.size() && way[outer + 1].vendor_id == amd_id &&
           gpu.made_by == machine::vendor::amd && way[outer + 1].port != pci_port::root_port) {
      ++outer;
    }
    const auto& card = way[outer];
    in_->say.reading(fmt::format("{}/{}", pci_devices, card.address));
    auto can = card.capable;
    if (outer + 1 < way.size()) {
      can.generation = lower(can.generation, way[outer + 1].capable.generation);
      can.width = lower(can.width, way[outer + 1].capable.width);
    }
    says_link(gpu_field(index, "host_link"), gpu.host_link, can);
    says_link(gpu_field(index, "trained_link"), gpu.trained_link, card.trained);
  }

  void says_link(const std::string& field, machine::pcie_link& link,
                 const machine::pcie_link& value) {
    if (value.generation) {
      in_->say.says(field + ".generation", link.generation, *value.generation, print_link(value));
    }
    if (value.width) {
      in_->say.says(field + ".width", link.width, *value.width, print_link(value));
    }
  }

  void read_memory(std::size_t index, const std::string& folder) {
    auto& gpu = gpu_at(index);
    // Where the compute driver has told, it may be of one partition of the device.
    const auto total = in_->number(folder + "/mem_info_vram_total");
    if (total && *total > 0 && !gpu.memory) {
      in_->say.says(gpu_field(index, "memory"), gpu.memory, *total,
                    fmt::format("{} bytes", *total));
    }
    const auto region = largest_region(folder);
    if (region && region->start > 0) {
      in_->say.says(gpu_field(index, "bar_address"), gpu.bar_address, region->start,
                    fmt::format("{:#x}", region->start));
    }
    read_dma_bits(index, folder);
    auto visible = in_->number(folder + "/mem_info_vis_vram_total");
    if (!visible && region) {
      in_->say.reading(folder + "/resource");
      visible = static_cast<std::int64_t>(region->size);
    }
    if (!visible || *visible <= 0) {
      return;
    }
    auto bar = static_cast<bytes_t>(*visible);
    if (gpu.memory) {
      bar = std::min(bar, *gpu.memory);
    }
    in_->say.says(gpu_field(index, "bar"), gpu.bar, bar, fmt::format("{} bytes", bar));
  }

  void read_dma_bits(std::size_t index, const std::string& folder) {
    constexpr std::int64_t most_bits = 64;
    if (const auto bits = in_->number(folder + "/dma_mask_bits");
        bits && *bits >= 16 && *bits <= most_bits) {
      in_->say.says(gpu_field(index, "dma_bits"), gpu_at(index).dma_bits, *bits,
                    fmt::format("{}", *bits));
    }
  }

  struct region {
    std::uint64_t start;
    std::uint64_t size;
  };

  // Of the first six lines of "resource", "start end flags": the largest prefetchable memory.
  std::optional<region> largest_region(const std::string& folder) {
    constexpr std::uint64_t memory_flag = 0x200;
    constexpr std::uint64_t prefetchable_flag = 0x2000;
    constexpr std::size_t regions = 6;
    const auto text = in_->text(folder + "/resource");
    if (!text) {
      return std::nullopt;
    }
    region largest{0, 0};
    const auto lines = lines_of(*text);
    for (std::size_t index = 0; index < std::min(regions, lines.size()); ++index) {
      const auto words = text::words(lines[index]);
      if (words.size() != 3) {
        continue;
      }
      const auto start = parse_number(words[0]);
      const auto end = parse_number(words[1]);
      const auto flags = parse_number(words[2]).value_or(0);
      const bool counts = (flags & memory_flag) != 0 && (flags & prefetchable_flag) != 0;
      if (counts && start && end && *end > *start && *end - *start >= largest.size) {
        largest = {*start, *end - *start + 1};
      }
    }
    constexpr std::uint64_t most = 1ULL << 50U;
    return largest.size > 0 && largest.size < most ? std::optional(largest) : std::nullopt;
  }

  void read_numa_node(std::size_t index, const std::string& folder) {
    const auto node = in_->number(folder + "/numa_node");
    if (!node || *node == -1) {  // the firmware does not tell
      return;
    }
    const auto& nodes = in_->seen.machine.numa_nodes;
    const bool exists =
        std::ranges::any_of(nodes, [&](const auto& one) { return std::cmp_equal(one.id, *node); });
    if (*node < 0 || *node >= 1024 || (!nodes.empty() && !exists)) {
      in_->say.problem(fmt::format("there is no NUMA node {}; left out", *node));
      return;
    }
    in_->say.says(gpu_field(index, "numa_node"), gpu_at(index).numa_node, *node,
                  fmt::format("{}", *node));
  }

  void read_partitions(std::size_t index, const std::string& folder) {
    auto& gpu = gpu_at(index);
    if (const auto name = in_->text(folder + "/current_compute_partition");
        name && !name->empty()) {
      in_->say.says(gpu_field(index, "compute_partition"), gpu.compute_partition, *name, *name);
    }
    if (const auto name = in_->text(folder + "/current_memory_partition"); name && !name->empty()) {
      in_->say.says(gpu_field(index, "memory_partition"), gpu.memory_partition, *name, *name);
    }
  }

  void read_name(std::size_t index, const std::string& folder) {
    auto& gpu = gpu_at(index);
    if (const auto name = in_->text(folder + "/product_name"); name && !name->empty()) {
      in_->say.says(gpu_field(index, "title"), gpu.title, *name, *name);
      if (const auto* const known = machine::find_by_device_name(*name)) {
        in_->say.says(gpu_field(index, "model"), gpu.model, known->name, known->name);
      }
    }
    if (gpu.model.empty() && gpu.pci_device_id) {
      in_->say.reading(folder + "/device");
      name_by_id(index);
    }
  }

  void name_by_id(std::size_t index) {
    auto& gpu = gpu_at(index);
    if (std::ranges::find(shared_ids, *gpu.pci_device_id) != shared_ids.end()) {
      return;
    }
    for (const auto& model : machine::catalogue()) {
      if (model.kind != machine::model_kind::gpu || model.hardware.gpus.empty()) {
        continue;
      }
      const auto& made = model.hardware.gpus.front();
      if (made.pci_vendor_id != gpu.pci_vendor_id || made.pci_device_id != gpu.pci_device_id) {
        continue;
      }
      in_->say.says(gpu_field(index, "model"), gpu.model, model.name, model.name);
      if (gpu.title.empty() && !model.device_names.empty()) {
        in_->say.says(gpu_field(index, "title"), gpu.title, model.device_names.front(),
                      model.device_names.front());
      }
      if (made.integrated != setting_state::unknown) {
        in_->say.says(gpu_field(index, "integrated"), gpu.integrated, made.integrated,
                      std::string(to_string(made.integrated)));
      }
      return;
    }
  }

  reading* in_;
  bool found_ = false;
};

}  // namespace

void read_pci(reading& in) {
  pci_reader(in).read();
}

}  // namespace berth::topology
