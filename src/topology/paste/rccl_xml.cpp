// SPDX-License-Identifier: Apache-2.0
// The topology that RCCL and NCCL write (NCCL_TOPO_DUMP_FILE): CPUs, below them PCI devices, below
// these GPUs with their links. A link's speed and width there are what device and port can do.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "core/text.hpp"
#include "machine/hardware_facts.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::link_kind;
using machine::place_kind;
using machine::vendor;

constexpr std::size_t most_documents = 64;
constexpr std::size_t most_xml_depth = 64;

struct xml_text {
  std::string text;
  std::vector<std::pair<std::size_t, std::uint32_t>> lines;  // offset and number
};

struct xml_gpu {
  std::string address;
  std::size_t gpu = 0;
  pugi::xml_node node;
};

std::string_view value_of(const pugi::xml_node& node, const char* name) {
  return node.attribute(name).value();
}

// "0000ffff,0000ffff": words of 32 CPUs, the highest first.
std::vector<std::uint32_t> cpus_of_mask(std::string_view mask) {
  std::vector<std::uint32_t> cpus;
  constexpr std::size_t most_words = 512;
  std::vector<std::uint64_t> words;
  while (!mask.empty() && words.size() < most_words) {
    const auto end = std::min(mask.find(','), mask.size());
    const auto word = number_in(fmt::format("0x{}", mask.substr(0, end)));
    if (!word || *word > UINT32_MAX) {
      return {};
    }
    words.push_back(*word);
    mask.remove_prefix(std::min(mask.size(), end + 1));
  }
  std::ranges::reverse(words);
  for (std::size_t at = 0; at < words.size(); ++at) {
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      if ((words[at] >> bit & 1U) != 0) {
        cpus.push_back(static_cast<std::uint32_t>(at * 32) + bit);
      }
    }
  }
  return cpus;
}

// RCCL's number of a generation, or the name in newer releases: "910" is gfx90a.
std::string isa_of_gcn(std::string_view gcn) {
  if (gcn.starts_with("gfx")) {
    return std::string(gcn.substr(0, gcn.find(':')));
  }
  if (gcn == "910") {
    return "gfx90a";
  }
  return gcn.size() == 3 && gcn[0] == '9' && number_in(gcn) ? fmt::format("gfx{}", gcn) : "";
}

class rccl_xml_reader final : public reader {
public:
  bool begins(const line& one) override {
    if (!one.text.starts_with("<system") && !one.text.starts_with("<cpu numaid")) {
      return false;
    }
    if (documents_.size() < most_documents) {
      documents_.emplace_back();
    }
    is_open_ = true;
    add(one);
    return true;
  }

  bool takes(const line& one) override {
    const bool is_markup = one.text.starts_with("<");
    if (is_open_ && is_markup) {
      add(one);
      is_open_ = one.text.find("</system>") == std::string::npos;
      return true;
    }
    return false;
  }

  void tells(writer& to) override {
    for (const auto& one : documents_) {
      tell_document(to, one);
    }
  }

private:
  void add(const line& one) {
    auto& to = documents_.back();
    to.lines.emplace_back(to.text.size(), one.number);
    to.text += one.text;
    to.text += '\n';
  }

  void at(writer& to, const pugi::xml_node& node) const {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, node.offset_debug()));
    const auto found = std::ranges::upper_bound(present_->lines, offset, {},
                                                [](const auto& one) { return one.first; });
    to.at(found == present_->lines.begin() ? 1 : std::prev(found)->second);
  }

  void tell_document(writer& to, const xml_text& text) {
    present_ = &text;
    gpus_.clear();
    pugi::xml_document parsed;
    // What stands before an error is kept.
    const auto outcome = parsed.load_buffer(text.text.data(), text.text.size(), pugi::parse_default,
                                            pugi::encoding_utf8);
    if (!outcome && !text.lines.empty()) {
      to.at(text.lines.back().second);
      to.problem(fmt::format("the XML is not whole ({}); what stands before is taken",
                             outcome.description()));
    }
    const auto system = parsed.child("system");
    for (const auto cpu : system ? system.children("cpu") : parsed.children("cpu")) {
      tell_cpu(to, cpu);
    }
    for (const auto& one : gpus_) {
      tell_links(to, one);
    }
  }

  void tell_cpu(writer& to, const pugi::xml_node& cpu) {
    at(to, cpu);
    const std::string numa(value_of(cpu, "numaid"));
    if (const auto id = to.numa_id(numa)) {
      const auto cpus = cpus_of_mask(value_of(cpu, "affinity"));
      if (!cpus.empty()) {
        to.cpus_of_node(*id, cpus);
      }
    }
    std::vector<pugi::xml_node> way;
    tell_pci(to, cpu, numa, way);
  }

  void tell_pci(writer& to, const pugi::xml_node& above, const std::string& numa,
                std::vector<pugi::xml_node>& way) {
    for (const auto pci : above.children("pci")) {
      if (way.size() >= most_xml_depth) {
        return;
      }
      way.push_back(pci);
      if (const auto gpu = pci.child("gpu")) {
        tell_gpu(to, gpu, numa, way);
      }
      tell_pci(to, pci, numa, way);
      way.pop_back();
    }
  }

  void tell_gpu(writer& to, const pugi::xml_node& node, const std::string& numa,
                const std::vector<pugi::xml_node>& way) {
    at(to, node);
    const auto& pci = way.back();
    const auto address = pci_address_in(value_of(pci, "busid"));
    const auto index = number_in(value_of(node, "dev"));
    const bool is_amd = !value_of(node, "gcn").empty();
    if (address.empty() || !index || *index > 255) {
      to.problem("a GPU without a PCI address or a number; left out");
      return;
    }
    const auto gpu = to.gpu({.made_by = is_amd ? vendor::amd : vendor::nvidia,
                             .index = static_cast<std::uint32_t>(*index),
                             .address = address});
    if (!gpu) {
      return;
    }
    gpus_.push_back({.address = address, .gpu = *gpu, .node = node});
    if (!numa.empty()) {
      to.numa_of_gpu(*gpu, numa);
    }
    tell_kind(to, *gpu, node, pci, is_amd);
    tell_way(to, *gpu, way);
  }

  static void tell_kind(writer& to, std::size_t gpu, const pugi::xml_node& node,
                        const pugi::xml_node& pci, bool is_amd) {
    const auto sm = number_in(value_of(node, "sm"));
    if (is_amd) {
      if (const auto isa = isa_of_gcn(value_of(node, "gcn")); !isa.empty()) {
        to.isa_of_gpu(gpu, isa);
      }
      if (sm && *sm > 0 && *sm < 4096) {  // AMD: how many; NVIDIA: of which kind
        to.of_gpu(gpu, "compute_units", &machine::gpu::compute_units, *sm, fmt::format("{}", *sm));
      }
    } else if (sm && *sm >= 30 && *sm < 1000) {
      const auto isa = fmt::format("sm_{}", *sm);
      to.of_gpu(gpu, "isa", &machine::gpu::isa, isa, isa);
    }
    const auto maker = number_in(value_of(pci, "vendor"));
    const auto device = number_in(value_of(pci, "device"));
    if (maker && device && *maker != 0 && *maker <= 0xffff && *device <= 0xffff) {
      to.of_gpu(gpu, "pci_vendor_id", &machine::gpu::pci_vendor_id, *maker,
                fmt::format("{:#06x}", *maker));
      to.of_gpu(gpu, "pci_device_id", &machine::gpu::pci_device_id, *device,
                fmt::format("{:#06x}", *device));
    }
  }

  // The narrowest and the slowest link on the way up, which is what the GPU can get.
  void tell_way(writer& to, std::size_t gpu, const std::vector<pugi::xml_node>& way) const {
    machine::pcie_link least;
    bool is_known = true;
    for (const auto& pci : way) {
      at(to, pci);
      const auto speed = value_of(pci, "link_speed");
      const auto width = number_in(value_of(pci, "link_width"));
      const auto generation = generation_of(speed);
      if (width && !machine::is_pcie_width(*width)) {
        to.problem(fmt::format("width x{} is none that PCIe has; the link is left out", *width));
      }
      is_known = is_known && width && machine::is_pcie_width(*width) && generation;
      if (is_known) {
        least.generation = std::min(least.generation.value_or(*generation), *generation);
        least.width =
            std::min(least.width.value_or(UINT32_MAX), static_cast<std::uint32_t>(*width));
      }
    }
    if (is_known) {
      to.pcie(fmt::format("gpus[{}].host_link", gpu), to.machine().gpus[gpu].host_link, least);
    }
    auto& known = to.machine().gpus[gpu].pci_path;
    if (known.empty()) {
      for (const auto& pci : std::ranges::reverse_view(way)) {
        known.emplace_back().address = pci_address_in(value_of(pci, "busid"));
      }
    }
  }

  void tell_links(writer& to, const xml_gpu& one) const {
    for (const auto& [name, kind] :
         {std::pair("xgmi", link_kind::xgmi), std::pair("nvlink", link_kind::nvlink)}) {
      for (const auto link : one.node.children(name)) {
        at(to, link);
        tell_link(to, one, link, kind);
      }
    }
  }

  // A target that is no GPU is a switch.
  void tell_link(writer& to, const xml_gpu& one, const pugi::xml_node& link, link_kind kind) const {
    constexpr std::uint64_t most_links = 64;
    const auto target = pci_address_in(value_of(link, "target"));
    const auto other = std::ranges::find(gpus_, target, &xml_gpu::address);
    if (target.empty() || other == gpus_.end() || other->gpu == one.gpu) {
      return;
    }
    const auto made =
        to.link({.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(one.gpu)},
                {.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(other->gpu)});
    to.of_link(made, "kind", &machine::link::kind, kind, std::string(to_string(kind)));
    const auto count = number_in(value_of(link, "count"));
    if (count && *count > 0 && *count <= most_links) {
      to.of_link(made, "count", &machine::link::count, *count, fmt::format("{}", *count));
    } else {
      to.problem(fmt::format("\"{}\" is no count of links; left out",
                             text::shorten(value_of(link, "count"), 20)));
    }
  }

  std::vector<xml_text> documents_;
  std::vector<xml_gpu> gpus_;
  const xml_text* present_ = nullptr;
  bool is_open_ = false;
};

}  // namespace

std::unique_ptr<reader> make_rccl_xml_reader() {
  return std::make_unique<rccl_xml_reader>();
}

}  // namespace berth::topology::paste
