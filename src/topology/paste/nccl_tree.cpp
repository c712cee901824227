// SPDX-License-Identifier: Apache-2.0
// The tree that NCCL and RCCL log at their start (NCCL_DEBUG=INFO): a CPU is a NUMA node, below it
// stand PCI switches and GPUs, below a GPU its fast links. The rates in brackets are what the
// library assumes of a kind of link, and nothing of this machine: they are left out.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/paste/peer_fact.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::link_kind;
using machine::vendor;

constexpr std::size_t most_tree_lines = 1 << 14;

enum class branch : std::uint8_t { cpu, socket, gpu, peer };

struct tree_line {
  branch what = branch::cpu;
  std::string name;  // of a GPU its address, of a CPU its number
  link_kind kind = link_kind::unknown;
  std::uint32_t line = 0;
};

// "47000" and, from newer versions, "0-47000": domain, bus, device and function without colons.
std::string address_of_bus_id(std::string_view text) {
  const auto dash = text.find('-');
  const auto number = text::whole_number<std::uint64_t>(
      dash == std::string_view::npos ? text : text.substr(dash + 1), 16);
  constexpr std::uint64_t most = 0xffffffffffULL;
  if (!number || *number > most) {
    return {};
  }
  return pci_address_in(fmt::format("{:04x}:{:02x}:{:02x}.{}", *number >> 20U,
                                    (*number >> 12U) & 0xffU, (*number >> 4U) & 0xffU,
                                    *number & 0xfU));
}

// What stands behind "GPU/" up to a blank; empty where that is not there.
std::string_view name_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = text.substr(at + word.size());
  return rest.substr(0, std::min(rest.find(' '), rest.size()));
}

class nccl_tree_reader final : public reader {
public:
  bool begins(const line& one) override {
    const auto info = one.text.find("NCCL INFO ");
    if (info == std::string::npos) {
      return false;
    }
    const auto text = text::trim(std::string_view(one.text).substr(info + 10));
    if (text.starts_with("CPU/")) {
      add(branch::cpu, std::string(name_after(text, "CPU/")), link_kind::unknown, one.number);
      return true;
    }
    const bool is_branch = text.starts_with("+ ") && text.find("] - ") != std::string_view::npos;
    return text.starts_with("=== System") || text.starts_with("=====") ||
           (is_branch && take_branch(text, one.number));
  }

  bool takes(const line& one) override { return begins(one); }

  void tells(writer& to) override {
    constexpr auto none = static_cast<std::size_t>(-1);
    auto gpu = none;
    std::string node;
    const auto made_by = maker();
    for (const auto& one : lines_) {
      to.at(one.line);
      if (one.what == branch::cpu) {
        // Newer versions put the system's number before it: "0-1".
        node =
            one.name.substr(one.name.find('-') == std::string::npos ? 0 : one.name.find('-') + 1);
        gpu = none;
      } else if (one.what == branch::gpu) {
        gpu = to.gpu({.made_by = made_by, .index = {}, .address = one.name}).value_or(none);
        if (gpu != none && !node.empty()) {
          to.numa_of_gpu(gpu, node);
        }
      } else if (one.what == branch::peer && gpu != none) {
        tell_peer(to, made_by, gpu, one);
      }
    }
  }

private:
  void add(branch what, std::string name, link_kind kind, std::uint32_t line) {
    if (lines_.size() < most_tree_lines) {
      lines_.push_back({.what = what, .name = std::move(name), .kind = kind, .line = line});
    }
  }

  // "+ PCI[24.0] - GPU/47000 (0)", "+ XGMI[24.0] - GPU/4C000", "+ SYS[5000.0] - CPU/1"
  bool take_branch(std::string_view text, std::uint32_t line) {
    const auto bus = name_after(text, "] - GPU/");
    if (bus.empty()) {
      return true;  // switches, network cards, other sockets
    }
    const auto address = address_of_bus_id(bus);
    const auto kind = text.starts_with("+ XGMI[")  ? link_kind::xgmi
                      : text.starts_with("+ NVL[") ? link_kind::nvlink
                                                   : link_kind::unknown;
    if (!address.empty()) {
      add(kind == link_kind::unknown ? branch::gpu : branch::peer, address, kind, line);
    }
    return true;
  }

  [[nodiscard]] vendor maker() const {
    for (const auto& one : lines_) {
      if (one.kind != link_kind::unknown) {
        return one.kind == link_kind::xgmi ? vendor::amd : vendor::nvidia;
      }
    }
    return vendor::unknown;
  }

  static void tell_peer(writer& to, vendor made_by, std::size_t gpu, const tree_line& one) {
    const auto peer = to.gpu({.made_by = made_by, .index = {}, .address = one.name});
    if (peer && *peer != gpu) {
      to.of_link(peer_link(to, gpu, *peer), "kind", &machine::link::kind, one.kind,
                 std::string(to_string(one.kind)));
    }
  }

  std::vector<tree_line> lines_;
};

}  // namespace

std::unique_ptr<reader> make_nccl_tree_reader() {
  return std::make_unique<nccl_tree_reader>();
}

}  // namespace berth::topology::paste
