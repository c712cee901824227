// SPDX-License-Identifier: Apache-2.0
// rocminfo: the system's attributes, then one block for each agent (CPU or GPU) with its memory
// pools and instruction sets. Blanks at the begin of lines may be lost, and so may the heads of
// blocks where somebody pasted what grep left.
#include <algorithm>
#include <array>
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

using machine::setting_state;
using machine::vendor;
using namespace std::string_view_literals;

constexpr std::string_view isa_prefix = "amdgcn-amd-amdhsa--";
constexpr std::uint32_t amd_id = 0x1002;
constexpr std::size_t most_agents = 1024;  // far above what a machine has

enum class key : std::uint8_t {
  ignored,
  name,
  title,
  vendor_name,
  node,
  device_type,
  chip,
  bdf,
  compute_units,
  coherent,
  memory_properties,
  segment,
  size,
  xnack,
};

struct known_key {
  std::string_view name;
  key meaning;
};
constexpr std::array known_keys = {
    known_key{"Name", key::name},
    known_key{"Marketing Name", key::title},
    known_key{"Vendor Name", key::vendor_name},
    known_key{"Node", key::node},
    known_key{"Device Type", key::device_type},
    known_key{"Chip ID", key::chip},
    known_key{"BDFID", key::bdf},
    known_key{"Compute Unit", key::compute_units},
    known_key{"Coherent Host Access", key::coherent},
    known_key{"Memory Properties", key::memory_properties},
    known_key{"Segment", key::segment},
    known_key{"Size", key::size},
    known_key{"XNACK enabled", key::xnack},
    known_key{"Runtime Version", key::ignored},
    known_key{"Runtime Ext Version", key::ignored},
    known_key{"System Timestamp Freq.", key::ignored},
    known_key{"Sig. Max Wait Duration", key::ignored},
    known_key{"Machine Model", key::ignored},
    known_key{"System Endianness", key::ignored},
    known_key{"Mwaitx", key::ignored},
    known_key{"DMAbuf Support", key::ignored},
    known_key{"VMM Support", key::ignored},
    known_key{"Uuid", key::ignored},
    known_key{"Feature", key::ignored},
    known_key{"Features", key::ignored},
    known_key{"Profile", key::ignored},
    known_key{"Profiles", key::ignored},
    known_key{"Float Round Mode", key::ignored},
    known_key{"Max Queue Number", key::ignored},
    known_key{"Queue Min Size", key::ignored},
    known_key{"Queue Max Size", key::ignored},
    known_key{"Queue Type", key::ignored},
    known_key{"Cache Info", key::ignored},
    known_key{"L0", key::ignored},
    known_key{"L1", key::ignored},
    known_key{"L2", key::ignored},
    known_key{"L3", key::ignored},
    known_key{"ASIC Revision", key::ignored},
    known_key{"Cacheline Size", key::ignored},
    known_key{"Max Clock Freq. (MHz)", key::ignored},
    known_key{"Internal Node ID", key::ignored},
    known_key{"SIMDs per CU", key::ignored},
    known_key{"Shader Engines", key::ignored},
    known_key{"Shader Arrs. per Eng.", key::ignored},
    known_key{"WatchPts on Addr. Ranges", key::ignored},
    known_key{"Fast F16 Operation", key::ignored},
    known_key{"Fast f16", key::ignored},
    known_key{"Wavefront Size", key::ignored},
    known_key{"Workgroup Max Size", key::ignored},
    known_key{"Workgroup Max Size per Dimension", key::ignored},
    known_key{"Max Waves Per CU", key::ignored},
    known_key{"Max Work-item Per CU", key::ignored},
    known_key{"Grid Max Size", key::ignored},
    known_key{"Grid Max Size per Dimension", key::ignored},
    known_key{"Max fbarriers/Workgrp", key::ignored},
    known_key{"FBarrier Max Size", key::ignored},
    known_key{"Packet Processor uCode", key::ignored},
    known_key{"SDMA engine uCode", key::ignored},
    known_key{"IOMMU Support", key::ignored},
    known_key{"Pool Info", key::ignored},
    known_key{"Allocatable", key::ignored},
    known_key{"Alloc Granule", key::ignored},
    known_key{"Alloc Recommended Granule", key::ignored},
    known_key{"Alloc Alignment", key::ignored},
    known_key{"Accessible by all", key::ignored},
    known_key{"ISA Info", key::ignored},
    known_key{"Machine Models", key::ignored},
    known_key{"Default Rounding Mode", key::ignored},
    known_key{"Default Floating Rounding Mode", key::ignored},
    known_key{"Clock Rate", key::ignored},
    known_key{"Timestamp", key::ignored},
};

// Lines that are no pairs, or none in every release.
constexpr std::array other_lines = {"HSA System Attributes"sv, "HSA Agents"sv, "*** Done ***"sv};

std::optional<key> key_of(std::string_view name) {
  constexpr std::size_t long_enough = 6;  // for a typing error to be one
  for (const auto& one : known_keys) {
    if (one.name == name) {
      return one.meaning;
    }
  }
  for (const auto& one : known_keys) {
    if (name.size() >= long_enough && is_nearly(name, one.name)) {
      return one.meaning;
    }
  }
  return std::nullopt;
}

struct said_text {
  std::string text;
  std::uint32_t line = 0;
  [[nodiscard]] bool is_there() const noexcept { return line != 0; }
};

struct agent {
  std::uint32_t line = 0;
  bool has_head = false;
  said_text name;
  said_text title;
  said_text vendor_name;
  said_text node;
  said_text device_type;
  said_text chip;
  said_text bdf;
  said_text compute_units;
  said_text coherent;
  said_text properties;
  said_text isa;
  said_text memory;
  std::string segment;  // of the pool that is being read
};

bool is_gpu(const agent& one) {
  if (one.device_type.is_there()) {
    return one.device_type.text == "GPU";
  }
  return one.name.text.starts_with("gfx") || one.isa.is_there();
}

bool is_cpu(const agent& one) {
  return one.device_type.text == "CPU";
}

// Of "29711(0x740f)" with or without a unit after it. Where both are told and differ, neither.
std::optional<std::uint64_t> twice_told(std::string_view text) {
  const auto decimal = leading_number(text);
  const auto open = text.find("(0x");
  if (!decimal || open == std::string_view::npos) {
    return decimal;
  }
  const auto close = text.find(')', open);
  if (close == std::string_view::npos) {
    return decimal;
  }
  const auto hexadecimal = number_in(text.substr(open + 1, close - open - 1));
  return hexadecimal == decimal ? decimal : std::nullopt;
}

std::string address_of_bdf(std::uint64_t id) {
  return fmt::format("0000:{:02x}:{:02x}.{}", (id >> 8U) & 0xffU, (id >> 3U) & 0x1fU, id & 7U);
}

bool is_isa(std::string_view text) {
  return text.starts_with(isa_prefix);
}

// "gfx90a" of "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-".
std::string short_isa(std::string_view isa) {
  const auto name = isa.substr(isa_prefix.size());
  return std::string(name.substr(0, name.find(':')));
}

// Families of instruction sets are listed beside the GPU's own: "gfx9-generic".
bool is_family(std::string_view isa) {
  return isa.find("-generic") != std::string_view::npos;
}

// "Agent 2".
bool is_agent_head(std::string_view text) {
  return text.starts_with("Agent ") && number_in(text.substr(6)).has_value();
}

// Numbers of a dimension, of a pool, of an instruction set.
bool is_part_head(std::string_view text) {
  constexpr std::array prefixes{"Pool "sv, "ISA "sv, "x "sv, "y "sv, "z "sv};
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return text.starts_with(prefix) &&
           leading_number(text::trim(text.substr(prefix.size()))).has_value();
  });
}

class rocminfo_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    const auto pair = key_value_of(text);
    const bool is_ours =
        text.starts_with("HSA System Attributes") || text.starts_with("HSA Agents") ||
        text.starts_with("ROCk module") || is_agent_head(text) ||
        text.starts_with("Marketing Name:") || (pair && is_nearly(pair->key, "XNACK enabled")) ||
        (pair && pair->key == "Name" && (is_isa(pair->value) || pair->value.starts_with("gfx")));
    return is_ours && takes(one);
  }

  bool takes(const line& one) override {
    const std::string_view text = one.text;
    if (text.starts_with("HSA System Attributes")) {
      is_inside_ = false;  // of an agent: a second output begins
      ++outputs_;
      return true;
    }
    if (is_agent_head(text)) {
      begin_agent(one.number, true);
      return true;
    }
    if (text.starts_with("ROCk module") || is_part_head(text) ||
        std::ranges::find(other_lines, text) != other_lines.end()) {
      return true;
    }
    const auto pair = key_value_of(text);
    const auto meaning = pair ? key_of(pair->key) : std::nullopt;
    if (!meaning) {
      return false;
    }
    take(*meaning, {.text = std::string(pair->value), .line = one.number});
    return true;
  }

  void tells(writer& to) override {
    for (const auto& said : xnack_) {
      to.at(said.line);
      tell_xnack(to, said);
    }
    std::uint32_t cpu = 0;
    std::uint32_t gpu = 0;
    std::size_t output = 0;
    for (std::size_t at = 0; at < agents_.size(); ++at) {
      if (output < starts_.size() && starts_[output] == at) {
        cpu = 0;
        gpu = 0;
        ++output;
      }
      if (is_gpu(agents_[at])) {
        tell_gpu(to, agents_[at], gpu++);
      } else if (is_cpu(agents_[at])) {
        tell_cpu(to, agents_[at], cpu++);
      }
    }
  }

private:
  void begin_agent(std::uint32_t line, bool has_head) {
    if (outputs_ > starts_.size()) {
      starts_.resize(outputs_, agents_.size());
    }
    is_inside_ = true;
    if (agents_.size() < most_agents) {
      agents_.emplace_back();
    } else {
      surplus_ = {};
      is_full_ = true;
    }
    present().line = line;
    present().has_head = has_head;
  }

  agent& present() { return is_full_ ? surplus_ : agents_.back(); }

  // Where grep left no heads, a GPU's name begins one; its instruction set is another line of it.
  agent& agent_for(key meaning, const said_text& said) {
    const bool is_own_isa = is_isa(said.text) && !is_family(said.text);
    const bool is_new =
        !is_inside_ ||
        (!present().has_head && meaning == key::name &&
         (is_isa(said.text) ? is_own_isa && present().isa.is_there()
                            : present().name.is_there() || present().isa.is_there())) ||
        (!present().has_head && meaning == key::title && present().title.is_there());
    if (is_new) {
      begin_agent(said.line, false);
    }
    return present();
  }

  void take(key meaning, said_text said) {
    if (meaning == key::xnack) {
      xnack_.push_back(std::move(said));
      return;
    }
    if (meaning == key::ignored) {
      return;
    }
    auto& to = agent_for(meaning, said);
    if (meaning == key::name && is_isa(said.text)) {
      if (!to.isa.is_there() && !is_family(said.text)) {
        to.isa = std::move(said);
      }
      return;
    }
    if (meaning == key::segment) {
      to.segment = said.text;
      return;
    }
    if (meaning == key::size) {
      const bool is_memory = to.segment.starts_with("GLOBAL");
      if (is_memory && !to.memory.is_there()) {
        to.memory = std::move(said);
      }
      return;
    }
    if (auto* const slot = slot_of(to, meaning); slot != nullptr && !slot->is_there()) {
      *slot = std::move(said);
    }
  }

  static said_text* slot_of(agent& of, key meaning) {
    switch (meaning) {
      case key::name:
        return &of.name;
      case key::title:
        return &of.title;
      case key::vendor_name:
        return &of.vendor_name;
      case key::node:
        return &of.node;
      case key::device_type:
        return &of.device_type;
      case key::chip:
        return &of.chip;
      case key::bdf:
        return &of.bdf;
      case key::compute_units:
        return &of.compute_units;
      case key::coherent:
        return &of.coherent;
      case key::memory_properties:
        return &of.properties;
      default:
        return nullptr;
    }
  }

  // Of the process that asked: what a GPU does with it, its instruction set tells.
  static void tell_xnack(writer& to, const said_text& said) {
    if (is_nearly(said.text, "YES")) {
      to.of_settings("xnack", &machine::settings::xnack, setting_state::on, "on");
    } else if (is_nearly(said.text, "NO")) {
      to.of_settings("xnack", &machine::settings::xnack, setting_state::off, "off");
    } else {
      to.problem(fmt::format(R"("XNACK enabled" is neither YES nor NO: "{}")",
                             text::shorten(said.text, 40)));
    }
  }

  void tell_cpu(writer& to, const agent& one, std::uint32_t order) const {
    to.at(one.line);
    auto id = order;
    if (one.node.is_there()) {
      to.at(one.node.line);
      const auto told = to.numa_id(one.node.text);
      if (!told) {
        return;
      }
      id = *told;
    }
    if (const auto bytes = memory_of(to, one)) {
      to.memory_of_node(id, *bytes);
    }
  }

  static std::optional<bytes_t> memory_of(writer& to, const agent& one) {
    if (!one.memory.is_there()) {
      return std::nullopt;
    }
    to.at(one.memory.line);
    constexpr std::uint64_t most_kib = 1ULL << 40U;
    const auto kilobytes = twice_told(one.memory.text);
    if (!kilobytes || *kilobytes == 0 || *kilobytes > most_kib ||
        one.memory.text.find("KB") == std::string::npos) {
      to.problem(
          fmt::format("\"{}\" is no size of memory; left out", text::shorten(one.memory.text, 40)));
      return std::nullopt;
    }
    return *kilobytes * kib;
  }

  // The domain is not printed. Where buses repeat, several domains do.
  [[nodiscard]] std::string address_of(const agent& one) const {
    const auto id = number_in(one.bdf.text);
    if (!id || *id == 0 || *id > 0xffff) {
      return {};
    }
    const auto same = std::ranges::count_if(agents_, [&](const agent& other) {
      return is_gpu(other) && other.bdf.text == one.bdf.text;
    });
    return same > static_cast<std::ptrdiff_t>(std::max<std::size_t>(outputs_, 1))
               ? std::string()
               : address_of_bdf(*id);
  }

  void tell_gpu(writer& to, const agent& one, std::uint32_t order) const {
    to.at(one.bdf.is_there() ? one.bdf.line : one.line);
    const auto gpu = to.gpu({.made_by = vendor::amd, .index = order, .address = address_of(one)});
    if (!gpu) {
      return;
    }
    tell_names(to, *gpu, one);
    tell_isa(to, *gpu, one);
    if (const auto bytes = memory_of(to, one)) {
      to.of_gpu(*gpu, "memory", &machine::gpu::memory, *bytes, fmt::format("{} bytes", *bytes));
    }
    tell_abilities(to, *gpu, one);
  }

  static void tell_names(writer& to, std::size_t gpu, const agent& one) {
    if (one.title.is_there()) {
      to.at(one.title.line);
      to.identify(gpu, vendor::amd, one.title.text);
    }
    if (one.name.text.starts_with("gfx")) {
      to.at(one.name.line);
      to.isa_of_gpu(gpu, one.name.text.substr(0, one.name.text.find(':')));
    }
    if (one.chip.is_there()) {
      to.at(one.chip.line);
      if (const auto id = twice_told(one.chip.text); id && *id != 0 && *id <= 0xffff) {
        to.of_gpu(gpu, "pci_vendor_id", &machine::gpu::pci_vendor_id, amd_id,
                  fmt::format("{:#06x}", amd_id));
        to.of_gpu(gpu, "pci_device_id", &machine::gpu::pci_device_id, *id,
                  fmt::format("{:#06x}", *id));
      } else {
        to.problem(
            fmt::format("\"{}\" is no chip's id; left out", text::shorten(one.chip.text, 40)));
      }
    }
  }

  static void tell_isa(writer& to, std::size_t gpu, const agent& one) {
    if (!one.isa.is_there()) {
      return;
    }
    to.at(one.isa.line);
    to.isa_of_gpu(gpu, short_isa(one.isa.text));
    const auto state = one.isa.text.find(":xnack+") != std::string::npos   ? setting_state::on
                       : one.isa.text.find(":xnack-") != std::string::npos ? setting_state::off
                                                                           : setting_state::unknown;
    if (state != setting_state::unknown) {
      to.of_gpu(gpu, "xnack", &machine::gpu::xnack, state, std::string(to_string(state)));
    }
  }

  static void tell_abilities(writer& to, std::size_t gpu, const agent& one) {
    constexpr std::uint64_t most_units = 4096;
    if (one.compute_units.is_there()) {
      to.at(one.compute_units.line);
      if (const auto units = number_in(one.compute_units.text);
          units && *units > 0 && *units < most_units) {
        to.of_gpu(gpu, "compute_units", &machine::gpu::compute_units, *units,
                  fmt::format("{}", *units));
      } else {
        to.problem(fmt::format("\"{}\" is no count of compute units; left out",
                               text::shorten(one.compute_units.text, 40)));
      }
    }
    if (one.coherent.text == "TRUE" || one.coherent.text == "FALSE") {
      to.at(one.coherent.line);
      const auto state = one.coherent.text == "TRUE" ? setting_state::on : setting_state::off;
      to.of_gpu(gpu, "coherent_host_access", &machine::gpu::coherent_host_access, state,
                std::string(to_string(state)));
    }
    if (one.properties.is_there()) {
      to.at(one.properties.line);
      const auto state = text::contains_ignoring_case(one.properties.text, "APU")
                             ? setting_state::on
                             : setting_state::off;
      to.of_gpu(gpu, "integrated", &machine::gpu::integrated, state, std::string(to_string(state)));
    }
  }

  std::vector<agent> agents_;
  std::vector<said_text> xnack_;
  std::vector<std::size_t> starts_;  // where in agents_ each output begins
  std::size_t outputs_ = 0;
  bool is_inside_ = false;
  bool is_full_ = false;
  agent surplus_;
};

}  // namespace

std::unique_ptr<reader> make_rocminfo_reader() {
  return std::make_unique<rocminfo_reader>();
}

}  // namespace berth::topology::paste
