// SPDX-License-Identifier: Apache-2.0
// lspci -vv, whole or what grep left of it, and the kernel's lines on PCIe bandwidth. The link of a
// GPU is not always the one to its slot: cards carry switches, so the way up to the root port is
// put together from the bridges' buses.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "machine/hardware_facts.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::pci_port;
using machine::setting_state;
using machine::vendor;
using namespace std::string_view_literals;

constexpr std::size_t most_devices = 4096;
constexpr std::size_t most_notes = 1 << 12;
constexpr std::uint32_t amd_gpu_id = 0x1002;
constexpr std::uint32_t amd_cpu_id = 0x1022;
constexpr std::uint32_t nvidia_id = 0x10de;

constexpr std::array gpu_classes = {"VGA compatible controller"sv, "3D controller"sv,
                                    "Display controller"sv, "Processing accelerators"sv};

struct vendor_name {
  std::string_view part;  // of a device's name
  std::uint32_t id;
};
constexpr std::array vendor_names = {
    vendor_name{"[AMD/ATI]", amd_gpu_id},
    vendor_name{"Inc. [AMD]", amd_cpu_id},
    vendor_name{"NVIDIA Corporation", nvidia_id},
};

struct port_name {
  std::string_view part;
  pci_port port;
};
constexpr std::array port_names = {
    port_name{"Root Port", pci_port::root_port},
    port_name{"Upstream Port", pci_port::upstream},
    port_name{"Downstream Port", pci_port::downstream},
    port_name{"Endpoint", pci_port::endpoint},
};

// What lspci prints of any device and berth has no use for.
constexpr std::array ignored_keys = {"Subsystem"sv,
                                     "Control"sv,
                                     "Latency"sv,
                                     "Interrupt"sv,
                                     "IOMMU group"sv,
                                     "Capabilities"sv,
                                     "Kernel driver in use"sv,
                                     "Kernel modules"sv,
                                     "DevCap"sv,
                                     "DevCtl"sv,
                                     "DevSta"sv,
                                     "LnkCtl"sv,
                                     "DevCap2"sv,
                                     "DevCtl2"sv,
                                     "LnkCap2"sv,
                                     "LnkCtl2"sv,
                                     "LnkSta2"sv,
                                     "LnkCtl3"sv,
                                     "LaneErrStat"sv,
                                     "ACSCap"sv,
                                     "AtomicOpsCap"sv,
                                     "AtomicOpsCtl"sv,
                                     "Address"sv,
                                     "Masking"sv,
                                     "UESta"sv,
                                     "UEMsk"sv,
                                     "UESvrt"sv,
                                     "CESta"sv,
                                     "CEMsk"sv,
                                     "AERCap"sv,
                                     "HeaderLog"sv,
                                     "RootCmd"sv,
                                     "RootSta"sv,
                                     "ErrorSrc"sv,
                                     "ARICap"sv,
                                     "ARICtl"sv,
                                     "PASIDCap"sv,
                                     "PASIDCtl"sv,
                                     "L1SubCap"sv,
                                     "L1SubCtl1"sv,
                                     "L1SubCtl2"sv,
                                     "I/O behind bridge"sv,
                                     "Memory behind bridge"sv,
                                     "Prefetchable memory behind bridge"sv,
                                     "Secondary status"sv,
                                     "BridgeCtl"sv,
                                     "PriDiscTmr-"sv,
                                     "SltCap"sv,
                                     "SltCtl"sv,
                                     "SltSta"sv,
                                     "RootCap"sv,
                                     "RootCtl"sv,
                                     "Flags"sv,
                                     "EqualizationComplete"sv,
                                     "Caps"sv,
                                     "ATSCap"sv,
                                     "ATSCtl"sv,
                                     "PRICtl"sv,
                                     "PRISta"sv,
                                     "Phy16Sta"sv,
                                     "Transmission"sv,
                                     "IOVCap"sv,
                                     "IOVCtl"sv,
                                     "IOVSta"sv,
                                     "Initial VFs"sv,
                                     "VF offset"sv,
                                     "Ctrl"sv,
                                     "VC0"sv,
                                     "Physical Slot"sv,
                                     "DeviceName"sv,
                                     "Expansion ROM at"sv,
                                     "LTR"sv,
                                     "Vector table"sv,
                                     "PBA"sv,
                                     "PortCapabilities"sv,
                                     "Retimer-"sv,
                                     "Port Arbitration"sv,
                                     "Arb"sv,
                                     "Supported Page Size"sv,
                                     "BAR 0"sv,
                                     "BAR 1"sv,
                                     "BAR 2"sv,
                                     "BAR 4"sv};

struct link_line {
  machine::pcie_link link;
  std::uint32_t line = 0;
  // What lspci itself notes behind speed and width: "(downgraded)", "(ok)".
  setting_state slow = setting_state::unknown;
  setting_state narrow = setting_state::unknown;
};

setting_state downgrade_in(std::string_view part) {
  return part.find("(downgraded)") != std::string_view::npos ? setting_state::on
         : part.find("(ok)") != std::string_view::npos       ? setting_state::off
                                                             : setting_state::unknown;
}

struct device {
  std::string address;  // empty where none was told
  std::uint32_t line = 0;
  std::string title;
  bool is_gpu = false;
  std::optional<std::uint32_t> vendor_id;
  std::optional<std::uint32_t> device_id;
  pci_port port = pci_port::unknown;
  std::uint32_t port_line = 0;
  std::optional<std::uint32_t> secondary;  // the bus below a bridge
  std::vector<link_line> capable;
  std::vector<link_line> trained;
  setting_state redirect = setting_state::unknown;
  std::uint32_t redirect_line = 0;
  std::optional<bytes_t> bar;
  std::optional<std::uint64_t> bar_address;
  std::uint32_t bar_line = 0;
  std::string numa;
  std::uint32_t numa_line = 0;
  bool sleeps = false;
  std::uint32_t power_line = 0;
};

// "16G" of "[size=16G]".
std::optional<bytes_t> size_in(std::string_view text) {
  const auto at = text.find("[size=");
  const auto end = at == std::string_view::npos ? at : text.find(']', at);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto size = try_parse_bytes(text.substr(at + 6, end - at - 6));
  return size && *size > 0 ? std::optional(*size) : std::nullopt;
}

// "3f0000000000" of "Memory at 3f0000000000 (64-bit, ...". Without root it may be shown as zero.
std::optional<std::uint64_t> address_in(std::string_view text) {
  constexpr auto word = "Memory at "sv;
  const auto at = text.find(word);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto rest = text.substr(at + word.size());
  const auto number =
      text::whole_number<std::uint64_t>(rest.substr(0, std::min(rest.find(' '), rest.size())), 16);
  return number && *number > 0 ? number : std::nullopt;
}

// What stands behind `word` up to the next comma: "16GT/s" of "Speed 16GT/s, Width x8".
std::string_view after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = text::trim(text.substr(at + word.size()));
  return rest.substr(0, std::min(rest.find_first_of(" ,;\t"), rest.size()));
}

// "[10de:2330]" or "[0302]" as its numbers.
struct ids {
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
};
std::optional<ids> ids_in(std::string_view text) {
  for (auto at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    const auto part = text.substr(at + 1, 9);
    if (part.size() < 9 || part[4] != ':' || text.substr(at + 10, 1) != "]") {
      continue;
    }
    const auto maker = number_in(fmt::format("0x{}", part.substr(0, 4)));
    const auto device = number_in(fmt::format("0x{}", part.substr(5, 4)));
    if (maker && device) {
      return ids{static_cast<std::uint32_t>(*maker), static_cast<std::uint32_t>(*device)};
    }
  }
  return std::nullopt;
}

// Without ids, revisions and programming interfaces.
std::string device_title(std::string_view text) {
  auto end = std::min({text.find(" (rev "), text.find(" (prog-if"), text.size()});
  text = text::trim(text.substr(0, end));
  const auto last = text.rfind(" [");
  if (last != std::string_view::npos && ids_in(text.substr(last))) {
    text = text::trim(text.substr(0, last));
  }
  return std::string(text);
}

class lspci_reader final : public reader {
public:
  bool begins(const line& one) override {
    return take_command(one.text) || take_head(one) || take_kernel_line(one) || take_fact(one);
  }

  bool takes(const line& one) override { return begins(one) || is_detail(one.text); }

  void breaks() override { present_.reset(); }

  void tells(writer& to) override {
    for (const auto& one : notes_) {
      to.at(one.line);
      to.problem(one.what);
    }
    tell_redirect(to);
    tell_gpus(to);
    for (const auto& one : devices_) {
      const bool has_facts =
          !one.capable.empty() || !one.trained.empty() || one.redirect != setting_state::unknown;
      if (!is_placed_[position_of(one)] && has_facts) {
        tell_loose(to, one);
      }
    }
  }

private:
  struct note {
    std::uint32_t line;
    std::string what;
  };

  void notes(std::uint32_t line, std::string what) {
    if (notes_.size() < most_notes) {
      notes_.push_back({line, std::move(what)});
    }
  }

  [[nodiscard]] std::size_t position_of(const device& one) const {
    return static_cast<std::size_t>(&one - devices_.data());
  }

  // The device at that address, which may have been told of before.
  device& at(const std::string& address, std::uint32_t line) {
    const auto known = by_address_.find(address);
    if (!address.empty() && known != by_address_.end()) {
      present_ = known->second;
      return devices_[*present_];
    }
    if (devices_.size() >= most_devices) {
      surplus_ = {};
      present_.reset();
      return surplus_;
    }
    present_ = devices_.size();
    if (!address.empty()) {
      by_address_.emplace(address, *present_);
    }
    auto& made = devices_.emplace_back();
    made.address = address;
    made.line = line;
    return made;
  }

  device& present(std::uint32_t line) { return present_ ? devices_[*present_] : at({}, line); }

  // "lspci -vv -s 2f:00.0 | grep LnkSta" says whose lines come next.
  bool take_command(std::string_view text) {
    const auto command = text.find("lspci");
    if (command == std::string_view::npos) {
      return false;
    }
    const auto words = text::words(text.substr(command));
    for (std::size_t at_word = 1; at_word + 1 < words.size(); ++at_word) {
      const auto address = words[at_word] == "-s" ? pci_address_in(words[at_word + 1]) : "";
      if (!address.empty()) {
        at(address, 0);
        return true;
      }
    }
    return is_border(text) || words.size() == 1 || words[1].starts_with("-") || words[1] == "|";
  }

  // "0c:00.0 Display controller [0380]: Advanced Micro Devices, Inc. [AMD/ATI] ... (rev 02)"
  bool take_head(const line& one) {
    const std::string_view text = one.text;
    const auto space = text.find(' ');
    if (space > 16 || space < 6) {
      return false;
    }
    const auto address = pci_address_in(text.substr(0, space));
    const auto colon = text.find(": ", space);
    if (address.empty() || colon == std::string_view::npos) {
      return false;
    }
    auto& to = at(address, one.number);
    to.line = one.number;
    const auto class_name = text.substr(space + 1, colon - space - 1);
    const auto name = text.substr(colon + 2);
    to.title = device_title(name);
    if (const auto id = ids_in(name)) {
      to.vendor_id = id->vendor;
      to.device_id = id->device;
    } else {
      for (const auto& known : vendor_names) {
        if (!to.vendor_id && name.find(known.part) != std::string_view::npos) {
          to.vendor_id = known.id;
        }
      }
    }
    const bool is_graphics = std::ranges::any_of(
        gpu_classes, [&](std::string_view of) { return class_name.starts_with(of); });
    to.is_gpu = is_graphics && (to.vendor_id == amd_gpu_id || to.vendor_id == nvidia_id);
    return true;
  }

  // "pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at
  // 0000:00:00.0 (capable of 63.012 Gb/s with 16.0 GT/s PCIe x4 link)"
  bool take_kernel_line(const line& one) {
    const std::string_view text = one.text;
    const auto available = text.find("available PCIe bandwidth");
    if (available == std::string_view::npos) {
      return false;
    }
    std::string owner;
    for (const auto word : text::words(text.substr(0, available))) {
      if (word.ends_with(':')) {
        const auto address = pci_address_in(word.substr(0, word.size() - 1));
        owner = address.empty() ? owner : address;
      }
    }
    if (owner.empty()) {
      notes(one.number, "a line on PCIe bandwidth without the address of its device; left out");
      return true;
    }
    const auto limit = text.find("limited by ");
    const auto open = text.find('(', available);
    const auto capable = rate_in(open == std::string_view::npos ? "" : text.substr(open));
    add_link(at(owner, one.number).capable, capable, one.number);
    if (limit == std::string_view::npos) {
      add_link(at(owner, one.number).trained, capable, one.number);
    } else {
      const auto part = text.substr(limit, open == std::string_view::npos ? open : open - limit);
      const auto at_word = part.find(" at ");
      const auto where =
          at_word == std::string_view::npos ? "" : pci_address_in(part.substr(at_word + 4));
      if (!where.empty()) {
        add_link(at(where, one.number).trained, rate_in(part), one.number);
      }
    }
    present_.reset();
    return true;
  }

  // "16.0 GT/s PCIe x4 link"
  static machine::pcie_link rate_in(std::string_view text) {
    machine::pcie_link link;
    const auto words = text::words(text);
    for (std::size_t at_word = 1; at_word + 2 < words.size(); ++at_word) {
      if (!words[at_word].starts_with("GT/s")) {
        continue;
      }
      auto speed = words[at_word - 1];
      speed.remove_prefix(speed.starts_with('(') ? 1 : 0);
      link.generation = generation_of(speed);
      const auto width = words[at_word + 2].starts_with("x")
                             ? leading_number(words[at_word + 2].substr(1))
                             : std::nullopt;
      if (width && machine::is_pcie_width(*width)) {
        link.width = static_cast<std::uint32_t>(*width);
      }
    }
    return link;
  }

  static void add_link(std::vector<link_line>& to, const machine::pcie_link& link,
                       std::uint32_t line) {
    constexpr std::size_t most_links = 8;  // of one device: more are not told apart any more
    if ((link.generation || link.width) && to.size() < most_links) {
      to.push_back({.link = link, .line = line});
    }
  }

  // The lines that lead somewhere in the machine.
  bool take_fact(const line& one) {
    const std::string_view text = one.text;
    if (text.find("Width x") != std::string_view::npos ||
        text.find("Speed ") != std::string_view::npos) {
      if (take_link(one)) {
        return true;
      }
    }
    if (text.find("ReqRedir") != std::string_view::npos) {
      return take_redirect(one);
    }
    if (text.starts_with("Capabilities: [") && text.find("Express") != std::string_view::npos) {
      return take_port(one);
    }
    if (!present_) {
      return false;
    }
    return take_region(one) || take_place(one);
  }

  bool take_link(const line& one) {
    const std::string_view text = one.text;
    const auto is_key = [&](std::string_view wanted) {
      const auto at_key = text.find(wanted);
      return at_key != std::string_view::npos &&
             text.substr(at_key + wanted.size()).starts_with(':');
    };
    const bool is_capable = is_key("LnkCap");
    if (!is_capable && !is_key("LnkSta")) {
      return false;
    }
    // In what grep left, the next device's lines begin with its capability.
    if (is_capable && present_ && devices_[*present_].address.empty() &&
        !devices_[*present_].capable.empty()) {
      present_.reset();
    }
    auto& of = present(one.number);
    auto& lines = is_capable ? of.capable : of.trained;
    const auto before = lines.size();
    add_link(lines, link_in(text, one.number), one.number);
    if (!is_capable && lines.size() > before) {
      const auto width = std::min(text.find("Width"), text.size());
      lines.back().slow = downgrade_in(text.substr(0, width));
      lines.back().narrow = downgrade_in(text.substr(width));
    }
    return true;
  }

  machine::pcie_link link_in(std::string_view text, std::uint32_t line) {
    machine::pcie_link link;
    const auto speed = after(text, "Speed ");
    const auto width = after(text, "Width ");
    const auto lanes = width.starts_with("x") ? leading_number(width.substr(1)) : std::nullopt;
    if (!width.empty() && width != "unknown" && (!lanes || !machine::is_pcie_width(*lanes))) {
      notes(line, fmt::format("width {} is none that PCIe has; the link is left out",
                              text::shorten(width, 20)));
      return {};
    }
    if (lanes) {
      link.width = static_cast<std::uint32_t>(*lanes);
    }
    if (!speed.empty() && speed != "unknown") {
      link.generation = generation_of(speed);
      if (!link.generation || speed.find("GT/s") == std::string_view::npos) {
        link.generation.reset();
        notes(line,
              fmt::format("\"{}\" is no speed that PCIe has; left out", text::shorten(speed, 20)));
      }
    }
    return link;
  }

  // Source validation alone redirects nothing.
  bool take_redirect(const line& one) {
    const bool redirects = one.text.find("ReqRedir+") != std::string::npos ||
                           one.text.find("CmpltRedir+") != std::string::npos;
    const bool is_known = redirects || one.text.find("ReqRedir-") != std::string::npos;
    if (one.text.find("ACSCap") != std::string::npos || !is_known) {
      return true;  // what it could do, or a list of words
    }
    if (!redirect_ || (redirects && !redirect_->redirects)) {
      redirect_ = seen_redirect{.redirects = redirects, .line = one.number};
    }
    if (present_ && one.text.starts_with("ACSCtl")) {
      auto& of = devices_[*present_];
      of.redirect = redirects ? setting_state::on : setting_state::off;
      of.redirect_line = one.number;
    }
    return true;
  }

  bool take_port(const line& one) {
    if (present_ && devices_[*present_].address.empty()) {
      present_.reset();
    }
    auto& of = present(one.number);
    for (const auto& known : port_names) {
      if (of.port == pci_port::unknown && one.text.find(known.part) != std::string::npos) {
        of.port = known.port;
        of.port_line = one.number;
      }
    }
    return true;
  }

  // "Region 0: Memory at 3f0000000000 (64-bit, prefetchable) [size=16G]"
  bool take_region(const line& one) {
    const std::string_view text = one.text;
    const bool is_region = text.starts_with("Region ") || text.starts_with("Memory at ");
    if (!is_region) {
      return false;
    }
    auto& of = devices_[*present_];
    if (text.find("<unassigned>") != std::string_view::npos ||
        text.find("<ignored>") != std::string_view::npos) {
      notes(one.number, "a region of memory has no address: the firmware gave it none");
      return true;
    }
    const auto size = size_in(text);
    const bool counts = text.find("prefetchable") != std::string_view::npos &&
                        text.find("non-prefetchable") == std::string_view::npos;
    if (size && counts && (!of.bar || *of.bar < *size)) {
      of.bar = size;
      of.bar_address = address_in(text);
      of.bar_line = one.number;
    }
    return true;
  }

  bool take_place(const line& one) {
    const std::string_view text = one.text;
    auto& of = devices_[*present_];
    const auto pair = key_value_of(text);
    if (!pair) {
      return false;
    }
    if (is_nearly(pair->key, "NUMA node")) {
      of.numa = pair->value;
      of.numa_line = one.number;
      return true;
    }
    if (pair->key == "Bus") {
      const auto bus = after(text, "secondary=");
      if (const auto number = bus.empty() ? std::nullopt : number_in(fmt::format("0x{}", bus))) {
        of.secondary = static_cast<std::uint32_t>(*number & 0xffU);
      }
      return true;
    }
    if (pair->key == "Status" && pair->value.starts_with("D") && pair->value.size() > 1) {
      of.sleeps = pair->value[1] == '3';
      of.power_line = one.number;
      return true;
    }
    return false;
  }

  // Continuations are words with + or - behind them.
  [[nodiscard]] static bool is_detail(std::string_view text) {
    if (const auto pair = key_value_of(text);
        pair && std::ranges::any_of(ignored_keys, [&](std::string_view known) {
          return pair->key == known || pair->key.starts_with("Capabilities");
        })) {
      return true;
    }
    const auto words = text::words(text);
    const auto flags = std::ranges::count_if(words, [](std::string_view word) {
      return word.size() > 1 && (word.back() == '+' || word.back() == '-' || word.ends_with("+,") ||
                                 word.ends_with("-,"));
    });
    return flags * 2 >= static_cast<std::ptrdiff_t>(words.size()) ||
           text.starts_with("MaxPayload") || text.starts_with("Expansion ROM") ||
           text.starts_with("I/O ports at") || text.starts_with("Status: ") ||
           text.starts_with("Bus: ") || text.starts_with("Region ") ||
           text.starts_with("Kernel ") || text.starts_with("NUMA node");
  }

  void tell_redirect(writer& to) const {
    if (redirect_) {
      to.at(redirect_->line);
      const auto state = redirect_->redirects ? setting_state::on : setting_state::off;
      to.of_settings("acs_redirect", &machine::settings::acs_redirect, state,
                     std::string(to_string(state)));
    }
  }

  void tell_gpus(writer& to) {
    is_placed_.assign(devices_.size(), false);
    for (const auto maker : {vendor::amd, vendor::nvidia}) {
      std::vector<gpu_name> names;
      std::vector<std::size_t> which;
      for (const auto& one : devices_) {
        if (is_gpu_of(to, one, maker)) {
          names.push_back({.made_by = maker, .index = {}, .address = one.address});
          which.push_back(position_of(one));
        }
      }
      if (names.empty()) {
        continue;
      }
      to.at(devices_[which.front()].line);
      const auto places = to.gpus_at(names);
      for (std::size_t at_name = 0; at_name < std::min(places.size(), which.size()); ++at_name) {
        tell_gpu(to, places[at_name], devices_[which[at_name]]);
      }
    }
  }

  // Of lines without a head, another tool may have told that a GPU has that address.
  static bool is_gpu_of(writer& to, const device& one, vendor maker) {
    if (one.is_gpu) {
      return one.vendor_id == (maker == vendor::amd ? amd_gpu_id : nvidia_id);
    }
    return !one.address.empty() && one.title.empty() &&
           std::ranges::any_of(to.machine().gpus, [&](const machine::gpu& known) {
             return known.pci_address == one.address && known.made_by == maker;
           });
  }

  void tell_gpu(writer& to, std::size_t gpu, const device& one) {
    to.at(one.line);
    to.identify(gpu, vendor::unknown, one.title);
    if (one.vendor_id && one.device_id) {
      to.of_gpu(gpu, "pci_vendor_id", &machine::gpu::pci_vendor_id, *one.vendor_id,
                fmt::format("{:#06x}", *one.vendor_id));
      to.of_gpu(gpu, "pci_device_id", &machine::gpu::pci_device_id, *one.device_id,
                fmt::format("{:#06x}", *one.device_id));
    }
    if (one.bar) {
      to.at(one.bar_line);
      to.of_gpu(gpu, "bar", &machine::gpu::bar, *one.bar, fmt::format("{} bytes", *one.bar));
      if (one.bar_address) {
        to.of_gpu(gpu, "bar_address", &machine::gpu::bar_address, *one.bar_address,
                  fmt::format("{:#x}", *one.bar_address));
      }
    }
    if (!one.numa.empty()) {
      to.at(one.numa_line);
      to.numa_of_gpu(gpu, one.numa);
    }
    if (one.power_line != 0) {
      to.at(one.power_line);
      const auto state = one.sleeps ? setting_state::on : setting_state::off;
      to.of_gpu(gpu, "asleep", &machine::gpu::asleep, state, std::string(to_string(state)));
    }
    tell_way(to, gpu, one);
  }

  // The bridge whose other side is this device's bus.
  [[nodiscard]] const device* above(const device& one) const {
    if (one.address.size() < 7) {
      return nullptr;
    }
    const auto domain = one.address.substr(0, 4);
    const auto bus = number_in("0x" + one.address.substr(5, 2));
    const auto found = std::ranges::find_if(devices_, [&](const device& bridge) {
      return bridge.secondary && bus && *bridge.secondary == *bus && &bridge != &one &&
             bridge.address.starts_with(domain);
    });
    return found == devices_.end() || *bus == 0 ? nullptr : &*found;
  }

  void tell_way(writer& to, std::size_t gpu, const device& endpoint) {
    constexpr std::size_t most_hops = 16;
    // Another text told the way already; what this one adds is compared there, device by device.
    auto& way = to.machine().gpus[gpu].pci_path;
    std::size_t position = 0;
    for (const auto* one = &endpoint; one != nullptr && position < most_hops; one = above(*one)) {
      is_placed_[position_of(*one)] = true;
      if (position == way.size()) {
        way.emplace_back().address = one->address;
      }
      if (way[position].address != one->address) {
        to.at(one->line);
        to.problem(fmt::format("{} is above the GPU where another text has {}; left out",
                               one->address, way[position].address));
        return;
      }
      tell_device(to, fmt::format("gpus[{}].pci_path[{}].", gpu, position), way[position], *one);
      ++position;
    }
    tell_host_link(to, gpu, endpoint.line);
  }

  static void tell_device(writer& to, const std::string& field, machine::pci_device& slot,
                          const device& one) {
    slot.title = slot.title.empty() ? one.title : slot.title;
    to.at(one.line);
    if (one.vendor_id) {
      to.say().says(field + "vendor_id", slot.vendor_id, *one.vendor_id,
                    fmt::format("{:#06x}", *one.vendor_id));
    }
    if (one.device_id) {
      to.say().says(field + "device_id", slot.device_id, *one.device_id,
                    fmt::format("{:#06x}", *one.device_id));
    }
    if (one.port != pci_port::unknown) {
      to.at(one.port_line);
      to.say().says(field + "port", slot.port, one.port, std::string(to_string(one.port)));
    }
    if (one.redirect != setting_state::unknown) {
      to.at(one.redirect_line);
      to.say().says(field + "acs_redirect", slot.acs_redirect, one.redirect,
                    std::string(to_string(one.redirect)));
    }
    for (const auto& said : one.capable) {
      to.at(said.line);
      to.pcie(field + "capable", slot.capable, said.link);
    }
    for (const auto& said : one.trained) {
      to.at(said.line);
      to.pcie(field + "trained", slot.trained, said.link);
      to.say().says(field + "speed_downgraded", slot.speed_downgraded, said.slow,
                    std::string(to_string(said.slow)));
      to.say().says(field + "width_downgraded", slot.width_downgraded, said.narrow,
                    std::string(to_string(said.narrow)));
    }
  }

  // The link between card and slot is that of the card's outermost device: the GPU, or the upper
  // end of a switch on the card, as AMD's have. Where the way up is not told, it is not known.
  static void tell_host_link(writer& to, std::size_t gpu, std::uint32_t line) {
    auto& of = to.machine().gpus[gpu];
    const auto& way = of.pci_path;
    std::size_t outer = 0;
    while (outer + 1 < way.size() && way[outer + 1].vendor_id == amd_gpu_id &&
           of.made_by == vendor::amd && way[outer + 1].port != pci_port::root_port) {
      ++outer;
    }
    const bool has_slot = outer + 1 < way.size();
    const bool is_card =
        has_slot || of.made_by == vendor::nvidia || way[outer].port == pci_port::upstream;
    if (!is_card) {
      return;
    }
    to.at(line);
    to.pcie(fmt::format("gpus[{}].trained_link", gpu), of.trained_link, way[outer].trained);
    if (has_slot) {
      to.pcie(
          fmt::format("gpus[{}].host_link", gpu), of.host_link,
          {.generation = lesser(way[outer].capable.generation, way[outer + 1].capable.generation),
           .width = lesser(way[outer].capable.width, way[outer + 1].capable.width)});
    }
  }

  static std::optional<std::uint32_t> lesser(const std::optional<std::uint32_t>& one,
                                             const std::optional<std::uint32_t>& other) {
    return one && other ? std::optional(std::min(*one, *other)) : std::nullopt;
  }

  static void tell_loose(writer& to, const device& one) {
    auto& all = to.machine().pci_devices;
    auto known = one.address.empty()
                     ? all.end()
                     : std::ranges::find(all, one.address, &machine::pci_device::address);
    if (known == all.end()) {
      known = all.insert(all.end(), machine::pci_device{});
      known->address = one.address;
    }
    tell_device(to, fmt::format("pci_devices[{}].", known - all.begin()), *known, one);
  }

  struct seen_redirect {
    bool redirects = false;
    std::uint32_t line = 0;
  };

  std::vector<device> devices_;
  std::map<std::string, std::size_t, std::less<>> by_address_;
  std::optional<std::size_t> present_;
  device surplus_;
  std::vector<note> notes_;
  std::vector<bool> is_placed_;
  std::optional<seen_redirect> redirect_;
};

}  // namespace

std::unique_ptr<reader> make_lspci_reader() {
  return std::make_unique<lspci_reader>();
}

}  // namespace berth::topology::paste
