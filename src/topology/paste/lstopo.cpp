// SPDX-License-Identifier: Apache-2.0
// lstopo's text: a tree by indentation. Which CPUs and NUMA node a GPU is close to follows from
// what it hangs below. Inside a job the GPUs have other numbers than outside, so where one address
// has several, the numbers say nothing.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::vendor;
using namespace std::string_view_literals;

constexpr std::size_t most_objects = 1 << 14;
constexpr std::size_t most_levels = 64;
constexpr std::size_t no_parent = SIZE_MAX;

constexpr std::array object_names = {
    "Machine"sv,     "Package"sv,   "Group"sv, "NUMANode"sv, "L5"sv,     "L4"sv,
    "L3"sv,          "L2"sv,        "L1"sv,    "Core"sv,     "PU"sv,     "Die"sv,
    "HostBridge"sv,  "PCIBridge"sv, "PCI"sv,   "GPU"sv,      "CoProc"sv, "Net"sv,
    "OpenFabrics"sv, "Block"sv,     "Misc"sv,  "MemCache"sv, "DMA"sv,    "Block(Disk)"sv};

struct object {
  std::size_t parent = no_parent;
  std::size_t indent = 0;
  std::uint32_t line = 0;
  std::optional<std::uint32_t> cpu;   // of a PU
  std::optional<std::uint32_t> node;  // of a NUMANode
  std::string address;                // of a PCI device
  bool is_open = true;                // nothing tells yet that it has no more children
};

struct device_number {
  std::string address;
  vendor made_by = vendor::unknown;
  std::optional<std::uint32_t> number;
  std::uint32_t line = 0;
};

// The operating system's number: of "PU P#65", "PU L#3 (P#65)".
std::optional<std::uint32_t> system_number(std::string_view text) {
  const auto at = text.find("P#");
  const auto number =
      at == std::string_view::npos ? std::nullopt : leading_number(text.substr(at + 2));
  return number && *number < (1U << 14U) ? std::optional(static_cast<std::uint32_t>(*number))
                                         : std::nullopt;
}

bool is_object(std::string_view text) {
  return std::ranges::any_of(object_names, [&](std::string_view name) {
    if (!text.starts_with(name)) {
      return false;
    }
    const auto rest = text.substr(name.size());
    return rest.empty() || rest.starts_with(" ") || rest.starts_with("(") ||
           rest.starts_with("d ") || rest.starts_with("i ") || rest.starts_with(":") ||
           leading_number(rest);
  });
}

class lstopo_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    const bool is_top = text.starts_with("Machine (") || text.starts_with("NUMANode ") ||
                        text.starts_with("Package L#") || text.starts_with("Package P#");
    const bool is_device = text.starts_with("PCI ") && !pci_of(text).empty();
    const bool is_core = text.starts_with("L2 ") && text.find("Core ") != std::string_view::npos;
    return (is_top || is_device || is_core) && takes(one);
  }

  bool takes(const line& one) override {
    const std::string_view text = one.text;
    if (!is_object(text) ||
        (text.find('#') == std::string_view::npos && text.find('(') == std::string_view::npos &&
         text.find('"') == std::string_view::npos && text != "HostBridge" && text != "PCIBridge" &&
         !text.starts_with("Group"))) {
      return false;
    }
    add(one);
    return true;
  }

  void breaks() override { way_.clear(); }

  void tells(writer& to) override {
    std::map<std::string, std::set<std::uint32_t>> numbers;
    std::map<std::pair<vendor, std::uint32_t>, std::set<std::string>> addresses;
    for (const auto& one : devices_) {
      if (one.number) {
        numbers[one.address].insert(*one.number);
        addresses[{one.made_by, *one.number}].insert(one.address);
      }
    }
    bool are_renumbered = false;
    for (const auto& one : devices_) {
      are_renumbered =
          are_renumbered || (one.number && (numbers[one.address].size() > 1 ||
                                            addresses[{one.made_by, *one.number}].size() > 1));
    }
    if (are_renumbered) {
      to.problem(
          "a GPU has several numbers in one text: jobs number those that they may use anew; the "
          "addresses are taken, and the numbers are not");
    }
    tell_nodes(to);
    tell_devices(to, are_renumbered);
  }

private:
  // "d1:00.0" of "PCI d1:00.0 (Display)".
  static std::string pci_of(std::string_view text) {
    const auto words = text::words(text);
    return words.size() < 2 ? std::string() : pci_address_in(words[1]);
  }

  void add(const line& one) {
    while (!way_.empty() && objects_[way_.back()].indent >= one.indent) {
      objects_[way_.back()].is_open = false;
      way_.pop_back();
    }
    if (objects_.size() >= most_objects || way_.size() >= most_levels) {
      return;
    }
    object made;
    made.parent = way_.empty() ? no_parent : way_.back();
    made.indent = one.indent;
    made.line = one.number;
    const std::string_view text = one.text;
    is_cpu_last_ = text.starts_with("PU ") || text.find("Core ") != std::string_view::npos;
    if (text.starts_with("PU ")) {
      made.cpu = system_number(text);
    } else if (text.starts_with("NUMANode")) {
      made.node = system_number(text);
    } else if (text.starts_with("PCI ")) {
      made.address = pci_of(text);
      last_pci_ = made.address;
    } else {
      add_device(text, one.number);
    }
    way_.push_back(objects_.size());
    objects_.push_back(std::move(made));
  }

  // GPU(RSMI) "rsmi4", GPU(NVML) "nvml0", CoProc(CUDA) "cuda0"
  void add_device(std::string_view text, std::uint32_t line) {
    const auto quote = text.find('"');
    if (last_pci_.empty() || quote == std::string_view::npos) {
      return;
    }
    const auto name = text.substr(quote + 1, text.find('"', quote + 1) - quote - 1);
    for (const auto& [prefix, made_by] :
         {std::pair("rsmi"sv, vendor::amd), std::pair("nvml"sv, vendor::nvidia),
          std::pair("cuda"sv, vendor::nvidia)}) {
      const auto number =
          name.starts_with(prefix) ? leading_number(name.substr(prefix.size())) : std::nullopt;
      // CUDA's numbers follow its own order.
      if (number && *number < 256) {
        devices_.push_back({.address = last_pci_,
                            .made_by = made_by,
                            .number = prefix == "cuda"
                                          ? std::nullopt
                                          : std::optional(static_cast<std::uint32_t>(*number)),
                            .line = line});
      }
    }
  }

  [[nodiscard]] bool is_below(std::size_t one, std::size_t top) const {
    while (one != no_parent && one != top) {
      one = objects_[one].parent;
    }
    return one == top;
  }

  // The CPUs below an object, if the text tells them all.
  [[nodiscard]] std::vector<std::uint32_t> cpus_below(std::size_t top) const {
    std::vector<std::uint32_t> cpus;
    if (objects_[top].is_open && is_cpu_last_) {
      return cpus;
    }
    for (std::size_t at = top; at < objects_.size() && is_below(at, top); ++at) {
      if (objects_[at].cpu) {
        cpus.push_back(*objects_[at].cpu);
      }
    }
    std::ranges::sort(cpus);
    const auto twice = std::ranges::unique(cpus);
    cpus.erase(twice.begin(), twice.end());
    return cpus;
  }

  // A NUMA node's CPUs are those below what it hangs on, unless several nodes do.
  void tell_nodes(writer& to) {
    std::map<std::size_t, std::size_t> nodes_of_parent;
    for (const auto& one : objects_) {
      if (one.node && one.parent != no_parent) {
        ++nodes_of_parent[one.parent];
      }
    }
    std::size_t told = 0;
    for (const auto& one : objects_) {
      constexpr std::size_t most_told = 1024;
      if (!one.node || one.parent == no_parent || nodes_of_parent[one.parent] != 1 ||
          ++told > most_told) {
        continue;
      }
      const auto cpus = cpus_below(one.parent);
      to.at(one.line);
      if (const auto id = to.numa_id(fmt::format("{}", *one.node)); id && !cpus.empty()) {
        to.cpus_of_node(*id, cpus);
      }
    }
  }

  void tell_devices(writer& to, bool are_renumbered) const {
    std::map<std::string, vendor> makers;
    for (const auto& one : devices_) {
      const auto [known, is_new] = makers.emplace(one.address, one.made_by);
      if (!is_new || makers.size() > 256) {
        continue;
      }
      to.at(one.line);
      std::optional<std::size_t> gpu;
      if (are_renumbered || !one.number) {
        const std::array names{
            gpu_name{.made_by = one.made_by, .index = {}, .address = one.address}};
        const auto found = to.gpus_at(names);
        gpu = found.empty() ? std::nullopt : std::optional(found.front());
      } else {
        gpu = to.gpu({.made_by = one.made_by, .index = one.number, .address = one.address});
      }
      if (gpu) {
        tell_place(to, *gpu, one.address);
      }
    }
  }

  void tell_place(writer& to, std::size_t gpu, const std::string& address) const {
    for (std::size_t at = 0; at < objects_.size(); ++at) {
      if (objects_[at].address != address) {
        continue;
      }
      to.at(objects_[at].line);
      tell_near(to, gpu, at);
    }
  }

  void tell_near(writer& to, std::size_t gpu, std::size_t device) const {
    bool has_cpus = false;
    for (auto up = objects_[device].parent; up != no_parent; up = objects_[up].parent) {
      if (!has_cpus) {
        if (const auto cpus = cpus_below(up); !cpus.empty()) {
          has_cpus = true;
          to.of_gpu(gpu, "near_cpus", &machine::gpu::near_cpus, cpus, text::number_list(cpus));
        }
      }
      const auto nodes = nodes_below(up);
      if (!nodes.empty()) {
        if (nodes.size() == 1) {
          to.numa_of_gpu(gpu, fmt::format("{}", nodes.front()));
        }
        return;
      }
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> nodes_below(std::size_t top) const {
    std::vector<std::uint32_t> nodes;
    for (std::size_t at = top; at < objects_.size() && is_below(at, top); ++at) {
      if (objects_[at].node) {
        nodes.push_back(*objects_[at].node);
      }
    }
    return nodes;
  }

  std::vector<object> objects_;
  std::vector<std::size_t> way_;  // from the top to the last object
  std::vector<device_number> devices_;
  std::string last_pci_;
  bool is_cpu_last_ = false;
};

}  // namespace

std::unique_ptr<reader> make_lstopo_reader() {
  return std::make_unique<lstopo_reader>();
}

}  // namespace berth::topology::paste
