// SPDX-License-Identifier: Apache-2.0
// The files below /sys/class/kfd/kfd/topology, one after the other with their names between, as
// "head", "tail" and people's scripts print them; or "grep . FILES".
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "machine/hardware_facts.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::link_kind;
namespace kfd = machine::kfd;
using machine::place;
using machine::place_kind;
using machine::setting_state;
using machine::vendor;
using namespace std::string_view_literals;

constexpr std::size_t most_kfd_files = 1 << 16;
constexpr std::size_t most_kfd_gpus = 256;
constexpr std::uint64_t kfd_amd_id = 0x1002;
enum class kfd_part : std::uint8_t { other, node, link, bank };

struct kfd_value {
  std::uint64_t value = 0;
  std::uint32_t line = 0;
};

struct kfd_file {
  kfd_part part = kfd_part::other;
  std::uint32_t node = 0;
  std::uint32_t line = 0;
  std::map<std::string, kfd_value, std::less<>> values;

  [[nodiscard]] std::uint64_t of(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? 0 : found->second.value;
  }
  [[nodiscard]] bool has(std::string_view name) const { return values.find(name) != values.end(); }
};

struct kfd_path {
  std::uint32_t node = 0;
  std::string rest;  // "io_links/0/properties"
  std::string_view behind;
};

// "nodes/2/io_links/0/properties" anywhere in a line.
std::optional<kfd_path> path_in(std::string_view text) {
  constexpr auto folder = "nodes/"sv;
  const auto at = text.find(folder);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  auto rest = text.substr(at + folder.size());
  const auto node = leading_number(rest);
  const auto slash = rest.find('/');
  if (!node || *node > UINT16_MAX || slash == std::string_view::npos) {
    return std::nullopt;
  }
  rest.remove_prefix(slash + 1);
  const auto end = std::min(rest.find_first_of(" :\t<"), rest.size());
  return kfd_path{.node = static_cast<std::uint32_t>(*node),
                  .rest = std::string(rest.substr(0, end)),
                  .behind = rest.substr(end)};
}

kfd_part part_of(std::string_view rest) {
  const bool has_values = rest.ends_with("properties");
  if (rest == "properties") {
    return kfd_part::node;
  }
  if (has_values && (rest.starts_with("io_links/") || rest.starts_with("p2p_links/"))) {
    return kfd_part::link;
  }
  return has_values && rest.starts_with("mem_banks/") ? kfd_part::bank : kfd_part::other;
}

// 90010 is gfx90a: major, minor and stepping of two digits each, the last two printed as one.
std::string isa_of_version(std::uint64_t version) {
  const auto major = version / 10000;
  const auto minor = version / 100 % 100;
  const auto step = version % 100;
  return version == 0 || major > 99 || minor > 15 || step > 15
             ? std::string()
             : fmt::format("gfx{}{:x}{:x}", major, minor, step);
}

std::string address_of_file(const kfd_file& one) {
  const auto id = one.of("location_id");
  return id == 0 && one.of("domain") == 0
             ? std::string()
             : fmt::format("{:04x}:{:02x}:{:02x}.{}", one.of("domain") & 0xffffU,
                           (id >> 8U) & 0xffU, (id >> 3U) & 0x1fU, id & 7U);
}

class kfd_reader final : public reader {
public:
  bool begins(const line& one) override {
    const auto path = path_in(one.text);
    if (!path) {
      return false;
    }
    const auto part = part_of(path->rest);
    const bool is_known = part != kfd_part::other || path->rest == "gpu_id" ||
                          path->rest == "name" || path->rest.starts_with("mem_banks/") ||
                          path->rest.starts_with("caches/");
    if (!is_known) {
      return false;
    }
    open(*path, part, one.number);
    if (path->behind.starts_with(":")) {
      take_value(path->behind.substr(1), one.number);
    }
    return true;
  }

  bool takes(const line& one) override {
    if (begins(one)) {
      return true;
    }
    const std::string_view text = one.text;
    const bool is_other_file = text.starts_with("### ") || text.starts_with("==> ");
    if (is_other_file) {
      is_open_ = false;
      return text.find("properties") != std::string_view::npos ||
             text.find("_id") != std::string_view::npos;
    }
    return take_value(text, one.number);
  }

  void breaks() override {}

  void tells(writer& to) override {
    const auto gpus = sort_nodes();
    for (const auto& [node, id] : hosts_) {
      tell_host(to, node, id);
    }
    std::uint32_t index = 0;
    for (const auto* one : gpus) {
      tell_gpu(to, *one, index++, gpus);
    }
    tell_hmm(to, gpus);
    for (const auto& one : files_) {
      if (one.part == kfd_part::link) {
        to.at(one.line);
        tell_link(to, one);
      }
    }
    tell_closest(to);
  }

private:
  // The GPUs' nodes; those of hosts get their numbers. People's scripts print 10 before 2.
  std::vector<const kfd_file*> sort_nodes() {
    std::map<std::uint32_t, const kfd_file*> nodes;
    for (const auto& one : files_) {
      if (one.part == kfd_part::node) {
        nodes.emplace(one.node, &one);
      }
    }
    std::vector<const kfd_file*> gpus;
    for (const auto& [node, file] : nodes) {
      if (file->of("simd_count") > 0 && gpus.size() < most_kfd_gpus) {
        gpus.push_back(file);
      } else if (file->of("cpu_cores_count") > 0 && hosts_.size() < most_kfd_gpus) {
        const auto id = static_cast<std::uint32_t>(hosts_.size());
        hosts_.emplace(node, id);
      }
    }
    return gpus;
  }

  void open(const kfd_path& path, kfd_part part, std::uint32_t line) {
    const auto key = fmt::format("{}/{}", path.node, path.rest);
    const auto known = by_path_.find(key);
    is_open_ = known != by_path_.end() || files_.size() < most_kfd_files;
    if (known != by_path_.end()) {
      present_ = known->second;
    } else if (is_open_) {
      present_ = files_.size();
      by_path_.emplace(key, present_);
      auto& made = files_.emplace_back();
      made.part = part;
      made.node = path.node;
      made.line = line;
    }
  }

  // "simd_count 416"
  bool take_value(std::string_view text, std::uint32_t line) {
    const auto words = text::words(text);
    if (words.size() == 1 && number_in(words[0])) {
      return true;  // of gpu_id and its like
    }
    const bool is_pair =
        words.size() == 2 && words[0].find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
                                 std::string_view::npos;
    const auto number = is_pair ? number_in(words[1]) : std::nullopt;
    if (!number) {
      return false;
    }
    if (!is_open_) {
      return true;
    }
    auto& values = files_[present_].values;
    const auto [slot, is_new] =
        values.emplace(std::string(words[0]), kfd_value{.value = *number, .line = line});
    if (!is_new && slot->second.value != *number) {
      differing_.push_back({line, std::string(words[0]), slot->second.value, *number});
      slot->second.value = 0;  // as if it were not known
    }
    return true;
  }

  [[nodiscard]] bytes_t memory_of(std::uint32_t node, std::initializer_list<std::uint64_t> heaps,
                                  std::uint32_t& line) const {
    bytes_t total = 0;
    for (const auto& one : files_) {
      const bool fits = one.part == kfd_part::bank && one.node == node && one.has("heap_type") &&
                        std::ranges::find(heaps, one.of("heap_type")) != heaps.end();
      if (fits && one.of("size_in_bytes") < (1ULL << 50U)) {
        total += one.of("size_in_bytes");
        line = one.line;
      }
    }
    return total;
  }

  // The driver numbers the host's nodes in the order of the kernel's.
  void tell_host(writer& to, std::uint32_t node, std::uint32_t id) {
    places_.emplace(node, place{.kind = place_kind::numa_node, .id = id});
    std::uint32_t line = 0;
    if (const auto bytes = memory_of(node, {kfd::heap_system}, line); bytes != 0) {
      to.at(line);
      to.memory_of_node(id, bytes);
    }
  }

  void tell_gpu(writer& to, const kfd_file& one, std::uint32_t index,
                const std::vector<const kfd_file*>& all) {
    to.at(one.line);
    for (const auto& differing : differing_) {
      if (index == 0) {
        to.at(differing.line);
        to.problem(fmt::format("{} is {} here and {} before; neither is taken",
                               text::shorten(differing.name, 40), differing.second,
                               differing.first));
      }
    }
    to.at(one.line);
    auto address = address_of_file(one);
    const auto same = std::ranges::count_if(
        all, [&](const kfd_file* other) { return address_of_file(*other) == address; });
    if (same > 1 && !address.empty()) {
      to.problem(fmt::format("{} nodes have the address {}; it is left out", same, address));
      address.clear();
    }
    const auto gpu = to.gpu({.made_by = vendor::amd, .index = index, .address = address});
    if (!gpu) {
      return;
    }
    places_.emplace(one.node,
                    place{.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(*gpu)});
    tell_identity(to, *gpu, one);
    tell_parts(to, *gpu, one);
  }

  static void at_value(writer& to, const kfd_file& one, std::string_view name) {
    const auto found = one.values.find(name);
    to.at(found == one.values.end() ? one.line : found->second.line);
  }

  static void tell_identity(writer& to, std::size_t gpu, const kfd_file& one) {
    if (one.of("vendor_id") == kfd_amd_id && one.of("device_id") != 0 &&
        one.of("device_id") <= 0xffff) {
      at_value(to, one, "device_id");
      to.of_gpu(gpu, "pci_vendor_id", &machine::gpu::pci_vendor_id, kfd_amd_id,
                fmt::format("{:#06x}", kfd_amd_id));
      to.of_gpu(gpu, "pci_device_id", &machine::gpu::pci_device_id, one.of("device_id"),
                fmt::format("{:#06x}", one.of("device_id")));
    }
    if (const auto isa = isa_of_version(one.of("gfx_target_version")); !isa.empty()) {
      at_value(to, one, "gfx_target_version");
      to.isa_of_gpu(gpu, isa);
    }
  }

  void tell_parts(writer& to, std::size_t gpu, const kfd_file& one) {
    constexpr std::uint64_t most_parts = 4096;
    const auto per_unit = one.of("simd_per_cu");
    const auto units = per_unit == 0 ? 0 : one.of("simd_count") / per_unit;
    if (units > 0 && units < most_parts) {
      at_value(to, one, "simd_count");
      to.of_gpu(gpu, "compute_units", &machine::gpu::compute_units, units,
                fmt::format("{}", units));
    }
    for (const auto& [name, field, slot] :
         {std::tuple("num_sdma_engines"sv, "dma_engines"sv, &machine::gpu::dma_engines),
          std::tuple("num_sdma_xgmi_engines"sv, "xgmi_engines"sv, &machine::gpu::xgmi_engines)}) {
      if (one.has(name) && one.of(name) < most_parts) {
        at_value(to, one, name);
        to.of_gpu(gpu, field, slot, one.of(name), fmt::format("{}", one.of(name)));
      }
    }
    tell_memory(to, gpu, one);
    if (one.has("capability")) {
      at_value(to, one, "capability");
      const auto state = (one.of("capability") & kfd::coherent_host_bit) != 0 ? setting_state::on
                                                                              : setting_state::off;
      to.of_gpu(gpu, "coherent_host_access", &machine::gpu::coherent_host_access, state,
                std::string(to_string(state)));
    }
    // Hives are numbered as they come: the driver's own number is one of the hardware.
    if (const auto id = one.of("hive_id"); id != 0) {
      at_value(to, one, "hive_id");
      const auto number = hives_.try_emplace(id, hives_.size() + 1).first->second;
      to.of_gpu(gpu, "hive", &machine::gpu::hive, number, fmt::format("{}", number));
    }
  }

  void tell_memory(writer& to, std::size_t gpu, const kfd_file& one) const {
    std::uint32_t line = 0;
    auto bytes = memory_of(one.node, {kfd::heap_visible, kfd::heap_private}, line);
    if (bytes == 0) {  // newer kernels give 0 here
      bytes = one.of("local_mem_size");
      at_value(to, one, "local_mem_size");
    } else {
      to.at(line);
    }
    if (bytes != 0 && bytes < (1ULL << 50U)) {
      to.of_gpu(gpu, "memory", &machine::gpu::memory, bytes, fmt::format("{} bytes", bytes));
    }
  }

  // One device that can is enough to know that kernel and driver can.
  static void tell_hmm(writer& to, const std::vector<const kfd_file*>& gpus) {
    const kfd_file* able = nullptr;
    const kfd_file* unable = nullptr;
    for (const auto* one : gpus) {
      if (one->has("capability")) {
        ((one->of("capability") & kfd::svm_bit) != 0 ? able : unable) = one;
      }
    }
    if (const auto* one = able != nullptr ? able : unable; one != nullptr) {
      at_value(to, *one, "capability");
      const auto state = able != nullptr ? setting_state::on : setting_state::off;
      to.of_settings("hmm", &machine::settings::hmm, state, std::string(to_string(state)));
    }
  }

  [[nodiscard]] std::optional<place> place_of(std::uint64_t node) const {
    const auto found =
        node > UINT16_MAX ? places_.end() : places_.find(static_cast<std::uint32_t>(node));
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

  void tell_link(writer& to, const kfd_file& one) {
    const auto from = place_of(one.of("node_from"));
    const auto other = place_of(one.of("node_to"));
    if (!one.has("node_from") || !one.has("node_to") || !from || !other || from == other) {
      to.problem(
          fmt::format("a link between the nodes {} and {}, which are not both known; left "
                      "out",
                      one.of("node_from"), one.of("node_to")));
      return;
    }
    const auto link = to.link(*from, *other);
    const auto kind = kfd::link_kind_of(one.of("type"), *from, *other);
    if (kind != link_kind::unknown) {
      to.of_link(link, "kind", &machine::link::kind, kind, std::string(to_string(kind)));
    }
    if (const auto weight = one.of("weight"); weight != 0 && weight < (1U << 16U)) {
      at_value(to, one, "weight");
      to.of_link(link, "weight", &machine::link::weight, weight, fmt::format("{}", weight));
      note_closest(*from, *other, weight, one.line);
    }
    if (kind == link_kind::xgmi && from->kind == place_kind::gpu &&
        other->kind == place_kind::gpu) {
      tell_xgmi(to, link, from->id, one);
    }
  }

  static void tell_xgmi(writer& to, std::size_t link, std::uint32_t gpu, const kfd_file& one) {
    const auto found = kfd::xgmi_links_of(one.of("min_bandwidth"), one.of("max_bandwidth"),
                                          to.machine().gpus[gpu].isa);
    if (!found) {
      return;
    }
    at_value(to, one, "max_bandwidth");
    to.of_link(link, "count", &machine::link::count, found->count, fmt::format("{}", found->count));
    if (found->gb_per_s) {
      to.of_link(link, "nominal_gb_per_s", &machine::link::nominal_gb_per_s, *found->gb_per_s,
                 fmt::format("{} GB/s", *found->gb_per_s));
    }
  }

  struct nearest {
    std::uint32_t node = 0;
    std::uint64_t weight = 0;
    std::uint32_t line = 0;
    bool is_tied = false;
  };

  void note_closest(const place& one, const place& other, std::uint64_t weight,
                    std::uint32_t line) {
    if (one.kind == other.kind) {
      return;
    }
    const auto& gpu = one.kind == place_kind::gpu ? one : other;
    const auto& host = one.kind == place_kind::gpu ? other : one;
    const nearest found{.node = host.id, .weight = weight, .line = line, .is_tied = false};
    auto& known = closest_.try_emplace(gpu.id, found).first->second;
    if (weight < known.weight) {
      known = found;
    } else if (weight == known.weight && host.id != known.node) {
      known.is_tied = true;
    }
  }

  void tell_closest(writer& to) const {
    for (const auto& [gpu, found] : closest_) {
      if (!found.is_tied) {
        to.at(found.line);
        to.numa_of_gpu(gpu, fmt::format("{}", found.node));
      }
    }
  }

  struct differing_value {
    std::uint32_t line;
    std::string name;
    std::uint64_t first;
    std::uint64_t second;
  };

  std::vector<kfd_file> files_;
  std::map<std::string, std::size_t, std::less<>> by_path_;
  std::size_t present_ = 0;
  bool is_open_ = false;
  std::map<std::uint32_t, std::uint32_t> hosts_;  // NUMA node by the driver's node
  std::map<std::uint32_t, place> places_;
  std::map<std::uint64_t, std::uint64_t> hives_;
  std::map<std::uint32_t, nearest> closest_;
  std::vector<differing_value> differing_;
};

}  // namespace

std::unique_ptr<reader> make_kfd_reader() {
  return std::make_unique<kfd_reader>();
}

}  // namespace berth::topology::paste
