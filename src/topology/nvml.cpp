// SPDX-License-Identifier: Apache-2.0
// NVML's functions are looked up by name, and only what they take and give is declared here.
#include "topology/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "machine/catalogue.hpp"
#include "topology/live_reader.hpp"

namespace berth::topology {
namespace {

using handle = void*;

constexpr unsigned most_nvlinks = 18;

// The layouts that the library has had since its version 10.
struct nvml_memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct nvml_pci {
  std::array<char, 16> legacy_id;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> id;
};

class library {
public:
  library() : at_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return at_ != nullptr; }
  // Whether the function is there and succeeded.
  template <typename... Arguments>
  [[nodiscard]] bool call(const char* name, Arguments... arguments) const {
    using function = int (*)(Arguments...);
    // What dlsym gives is a function, whatever its type says.
    const auto found = reinterpret_cast<function>(::dlsym(at_, name));  // NOLINT
    return found != nullptr && found(arguments...) == 0;
  }

private:
  void* at_;  // never closed: the library keeps threads
};

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& from) {
  const std::string_view all(from.data(), from.size());
  return std::string(all.substr(0, all.find('\0')));
}

void tell_number(const library& nvml, std::string& into, handle gpu, const char* function,
                 std::string_view name) {
  unsigned value = 0;
  if (nvml.call(function, gpu, &value)) {
    into += fmt::format("{} {}\n", name, value);
  }
}

std::string address_of(const nvml_pci& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

void tell_links(const library& nvml, std::string& into, handle gpu) {
  for (unsigned link = 0; link < most_nvlinks; ++link) {
    unsigned active = 0;
    if (!nvml.call("nvmlDeviceGetNvLinkState", gpu, link, &active) || active != 1) {
      continue;
    }
    unsigned kind = 0;  // 0: a GPU, 2: a switch
    if (!nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", gpu, link, &kind)) {
      continue;
    }
    nvml_pci peer{};
    if (kind == 2) {
      into += "nvlink switch\n";
    } else if (kind == 0 && nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, link, &peer)) {
      into += fmt::format("nvlink {}\n", address_of(peer));
    }
  }
}

void tell_gpu(const library& nvml, std::string& into, handle gpu) {
  nvml_pci pci{};
  if (nvml.call("nvmlDeviceGetPciInfo_v3", gpu, &pci)) {
    into += fmt::format("address {}\n", address_of(pci));
  }
  std::array<char, 96> name{};
  if (nvml.call("nvmlDeviceGetName", gpu, name.data(), static_cast<unsigned>(name.size()))) {
    into += fmt::format("name {}\n", text_of(name));
  }
  nvml_memory memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory)) {
    into += fmt::format("memory {}\n", memory.total);
  }
  if (nvml.call("nvmlDeviceGetBAR1MemoryInfo", gpu, &memory)) {
    into += fmt::format("bar {}\n", memory.total);
  }
  int major = 0;
  int minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor)) {
    into += fmt::format("isa sm_{}{}\n", major, minor);
  }
  tell_number(nvml, into, gpu, "nvmlDeviceGetPerformanceState", "pstate");
  tell_number(nvml, into, gpu, "nvmlDeviceGetCurrPcieLinkGeneration", "generation");
  tell_number(nvml, into, gpu, "nvmlDeviceGetCurrPcieLinkWidth", "width");
  tell_number(nvml, into, gpu, "nvmlDeviceGetMaxPcieLinkGeneration", "max_generation");
  tell_number(nvml, into, gpu, "nvmlDeviceGetMaxPcieLinkWidth", "max_width");
  unsigned long nodes = 0;
  constexpr unsigned of_node = 0;
  if (nvml.call("nvmlDeviceGetMemoryAffinity", gpu, 1U, &nodes, of_node)) {
    into += fmt::format("nodes {}\n", nodes);
  }
  tell_links(nvml, into, gpu);
}

// Of the library's lines.
class nvml_reader {
public:
  explicit nvml_reader(reading& in) : in_(&in) {}

  void read(std::string_view text) {
    in_->say.reading("libnvidia-ml.so.1");
    for (const auto line : lines_of(text)) {
      const auto space = line.find(' ');
      if (space == std::string_view::npos) {
        continue;
      }
      take(line.substr(0, space), std::string(line.substr(space + 1)));
    }
    finish();
  }

private:
  using facts = std::map<std::string, std::string, std::less<>>;

  void take(std::string_view name, const std::string& value) {
    if (name == "gpu") {
      finish();
    } else if (name == "driver") {
      auto& slot = in_->seen.machine.set.driver_version;
      if (slot.empty()) {
        in_->say.says("settings.driver_version", slot, value, value);
      }
    } else if (name == "nvlink") {
      ++peers_[value];
    } else {
      facts_.emplace(name, value);
    }
  }

  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const {
    const auto found = facts_.find(name);
    return found == facts_.end() ? std::nullopt : parse_number(found->second);
  }

  // The GPU that the lines so far were about. By its address: the library has its own order.
  void finish() {
    const auto address = facts_.find("address");
    if (address != facts_.end()) {
      tell(index_of(address->second));
    }
    facts_.clear();
    peers_.clear();
  }

  std::size_t index_of(const std::string& address) {
    auto& gpus = in_->seen.machine.gpus;
    for (std::size_t index = 0; index < gpus.size(); ++index) {
      if (gpus[index].pci_address == address) {
        return index;
      }
    }
    auto& gpu = gpus.emplace_back();
    gpu.index = static_cast<std::uint32_t>(gpus.size() - 1);
    in_->pci_folders.emplace_back();
    in_->say.says(gpu_field(gpu.index, "pci_address"), gpu.pci_address, address, address);
    in_->say.says(gpu_field(gpu.index, "made_by"), gpu.made_by, machine::vendor::nvidia, "nvidia");
    return gpu.index;
  }

  void tell(std::size_t index) {
    auto& gpu = in_->seen.machine.gpus[index];
    auto& say = in_->say;
    if (const auto name = facts_.find("name"); name != facts_.end()) {
      name_gpu(gpu, name->second);
    }
    if (const auto isa = facts_.find("isa"); isa != facts_.end()) {
      say.says(gpu_field(index, "isa"), gpu.isa, isa->second, isa->second);
    }
    if (const auto bytes = number("memory"); bytes && *bytes > 0) {
      say.says(gpu_field(index, "memory"), gpu.memory, *bytes, fmt::format("{} bytes", *bytes));
    }
    if (const auto bytes = number("bar"); bytes && *bytes > 0 && !gpu.bar) {
      say.says(gpu_field(index, "bar"), gpu.bar, *bytes, fmt::format("{} bytes", *bytes));
    }
    if (const auto state = number("pstate"); state && gpu.asleep != machine::setting_state::on) {
      constexpr std::uint64_t first_idle_state = 8;
      gpu.asleep = machine::setting_state::unknown;  // a stronger word than that of the kernel
      std::erase_if(in_->seen.claims, [&](const machine::claim& one) {
        return one.field == gpu_field(index, "asleep");
      });
      const auto asleep =
          *state >= first_idle_state ? machine::setting_state::on : machine::setting_state::off;
      say.says(gpu_field(index, "asleep"), gpu.asleep, asleep,
               fmt::format("{} (P{})", to_string(asleep), *state));
    }
    tell_link(index, gpu);
    tell_node(index, gpu);
    tell_peers(gpu);
  }

  void name_gpu(machine::gpu& gpu, const std::string& name) {
    if (gpu.title == name) {
      return;
    }
    // The library knows better than a table of ids.
    gpu.title.clear();
    std::erase_if(in_->seen.claims, [&](const machine::claim& one) {
      return one.field == gpu_field(gpu.index, "title");
    });
    in_->say.says(gpu_field(gpu.index, "title"), gpu.title, name, name);
    const auto* const known = machine::find_by_device_name(name);
    if (known != nullptr && gpu.model.empty()) {
      in_->say.says(gpu_field(gpu.index, "model"), gpu.model, known->name, known->name);
    }
  }

  void tell_link(std::size_t index, machine::gpu& gpu) {
    const auto set = [&](std::string_view name, std::string_view field,
                         std::optional<std::uint32_t>& slot) {
      const auto value = number(name);
      if (value && *value > 0 && *value <= 32 && !slot) {
        in_->say.says(gpu_field(index, field), slot, *value, fmt::format("{}", *value));
      }
    };
    set("generation", "trained_link.generation", gpu.trained_link.generation);
    set("width", "trained_link.width", gpu.trained_link.width);
    set("max_generation", "host_link.generation", gpu.host_link.generation);
    set("max_width", "host_link.width", gpu.host_link.width);
  }

  // A set of nodes as bits; of several none is the closest.
  void tell_node(std::size_t index, machine::gpu& gpu) {
    const auto nodes = number("nodes");
    if (!nodes || *nodes == 0 || (*nodes & (*nodes - 1)) != 0 || gpu.numa_node) {
      return;
    }
    std::uint32_t node = 0;
    while (((*nodes >> node) & 1U) == 0) {
      ++node;
    }
    in_->say.says(gpu_field(index, "numa_node"), gpu.numa_node, node, fmt::format("{}", node));
  }

  void tell_peers(machine::gpu& gpu) {
    for (const auto& [peer, count] : peers_) {
      if (peer == "switch") {
        join_hive(gpu);
        link_switched(gpu, count);
      } else {
        link_direct(gpu, peer, count);
      }
    }
  }

  void join_hive(machine::gpu& gpu) {
    if (!gpu.hive) {
      in_->say.says(gpu_field(gpu.index, "hive"), gpu.hive, 1U, "1");
    }
  }

  // Through switches every GPU reaches every other at the rate of all its links.
  void link_switched(machine::gpu& gpu, std::uint32_t count) {
    for (const auto other : switched_) {
      add_link(other, gpu.index, count);
    }
    switched_.push_back(gpu.index);
  }

  void link_direct(machine::gpu& gpu, const std::string& peer, std::uint32_t count) {
    join_hive(gpu);
    for (const auto& other : in_->seen.machine.gpus) {
      if (other.pci_address == peer && other.index < gpu.index) {
        add_link(other.index, gpu.index, count);
      }
    }
  }

  void add_link(std::uint32_t from, std::uint32_t to, std::uint32_t count) {
    auto& links = in_->seen.machine.links;
    auto& link = links.emplace_back();
    link.from = {machine::place_kind::gpu, from};
    link.to = {machine::place_kind::gpu, to};
    const auto field = fmt::format("links[{}].", links.size() - 1);
    in_->say.says(field + "kind", link.kind, machine::link_kind::nvlink, "nvlink");
    in_->say.says(field + "count", link.count, count, fmt::format("{}", count));
  }

  reading* in_;
  facts facts_;
  std::map<std::string, std::uint32_t> peers_;  // of the present GPU: links to each
  std::vector<std::uint32_t> switched_;
};

}  // namespace

std::string ask_nvml() {
  const library nvml;
  if (!nvml || !nvml.call("nvmlInit_v2")) {
    return {};
  }
  std::string said;
  std::array<char, 96> version{};
  if (nvml.call("nvmlSystemGetDriverVersion", version.data(),
                static_cast<unsigned>(version.size()))) {
    said += fmt::format("driver {}\n", text_of(version));
  }
  unsigned count = 0;
  if (!nvml.call("nvmlDeviceGetCount_v2", &count)) {
    return said;
  }
  for (unsigned index = 0; index < std::min(count, 256U); ++index) {
    handle gpu = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &gpu)) {
      said += fmt::format("gpu {}\n", index);
      tell_gpu(nvml, said, gpu);
    }
  }
  return said;
}

void read_nvml(reading& in) {
  const auto text = in.text(std::string(added::nvml));
  if (text && !text->empty()) {
    nvml_reader(in).read(*text);
    in.seen.sources.emplace_back("libnvidia-ml.so.1");
  }
}

}  // namespace berth::topology
