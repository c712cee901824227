// SPDX-License-Identifier: Apache-2.0
// rocm-smi --showtopo and its parts (weight, hops, link type, access, NUMA), in the layouts that
// its releases have had, and --showbus. Hops and weights are kept as told: for GPUs with xGMI
// "1 hop" says no more than that no PCIe is on the way.
#include <algorithm>
#include <array>
#include <map>
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
using namespace std::string_view_literals;

constexpr std::size_t most_lines = 1 << 16;
constexpr std::uint32_t most_index = 255;

struct title {
  std::string_view part;  // of a headline, in lower case
  peer_fact what;
};
constexpr std::array titles = {
    title{"weight between", peer_fact::weight},
    title{"hops between", peer_fact::hops},
    title{"link type between", peer_fact::kind},
    title{"accessib", peer_fact::ignored},
    title{"link accessibility", peer_fact::ignored},
    title{"numa nodes", peer_fact::ignored},
    title{"system management interface", peer_fact::ignored},
    title{"end of rocm smi", peer_fact::ignored},
};

// What one cell of a table says of two GPUs.
struct cell {
  peer_fact what = peer_fact::none;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string value;
  std::uint32_t line = 0;
};

struct gpu_line {
  std::string value;
  std::uint32_t line = 0;
};

peer_fact title_in(const std::string& lowered) {
  for (const auto& one : titles) {
    if (lowered.find(one.part) != std::string::npos) {
      return one.what;
    }
  }
  return peer_fact::none;
}

// "GPU0", "GPU[0]", "gpu0"; nothing for "GPU" or "GPUs".
std::optional<std::uint32_t> gpu_in(std::string_view word) {
  return index_after("GPU", word);
}

bool is_cell(std::string_view word) {
  return number_in(word).has_value() || link_kind_in(word) != link_kind::unknown ||
         word == "XXXX" || word == "N/A" || word == "True" || word == "False";
}

class rocm_smi_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    // Prose may speak of weights between anything.
    const bool has_rule = text.find("====") != std::string_view::npos;
    const bool is_title = has_rule || text.find("two GPUs") != std::string_view::npos;
    if (!is_title && text.find("(Topology)") == std::string_view::npos && !begins_numa_line(text)) {
      return false;
    }
    return takes(one);
  }

  bool takes(const line& one) override {
    const std::string_view text = one.text;
    if (take_title(text)) {
      return true;
    }
    if (columns_.empty() ? take_columns(text) : (take_row(one) || take_columns(text))) {
      return true;
    }
    return take_sentence(one);
  }

  void breaks() override {
    what_ = peer_fact::none;
    columns_.clear();
  }

  void tells(writer& to) override {
    for (const auto& [index, said] : buses_) {
      to.at(said.line);
      static_cast<void>(to.gpu({.made_by = vendor::amd, .index = index, .address = said.value}));
    }
    for (const auto& problem : problems_) {
      to.at(problem.line);
      to.problem(problem.value);
    }
    for (const auto& one : cells_) {
      to.at(one.line);
      tell(to, one);
    }
    tell_numa(to);
  }

private:
  static bool begins_numa_line(std::string_view text) {
    return gpu_in(text) && (text::contains_ignoring_case(text, "numa node:") ||
                            text::contains_ignoring_case(text, "numa affinity:") ||
                            text::contains_ignoring_case(text, "PCI Bus:"));
  }

  bool take_title(std::string_view text) {
    constexpr std::size_t most_title = 200;
    if (text.size() > most_title || text.find("(Topology)") != std::string_view::npos) {
      return false;
    }
    const bool has_rule = text.find("====") != std::string_view::npos;
    const auto found = title_in(text::to_lower(text));
    const bool is_table = found != peer_fact::none && found != peer_fact::ignored;
    if (found == peer_fact::none || (!has_rule && !is_table)) {
      return false;
    }
    what_ = found;
    columns_.clear();
    return true;
  }

  bool take_columns(std::string_view text) {
    const auto words = text::words(text);
    std::vector<std::uint32_t> columns;
    for (const auto word : words) {
      const auto index = gpu_in(word);
      if (!index || *index > most_index) {
        return false;
      }
      columns.push_back(*index);
    }
    if (columns.empty() || what_ == peer_fact::none) {
      return false;
    }
    columns_ = std::move(columns);
    return true;
  }

  bool take_row(const line& one) {
    const auto words = text::words(one.text);
    const auto label = words.empty() ? std::nullopt : gpu_in(words.front());
    if (!label || words.size() < 2 || !is_cell(words[1])) {
      return false;
    }
    auto count = words.size() - 1;
    if (count > columns_.size()) {
      note(one.number, fmt::format("the row of GPU {} has {} cells for {} columns; left out",
                                   *label, count, columns_.size()));
      return true;
    }
    if (count < columns_.size()) {
      // Where a row was cut, its last cell may have been, too: "7" of "72".
      note(one.number, fmt::format("the row of GPU {} is cut: {} cells for {} columns", *label,
                                   count, columns_.size()));
      --count;
    }
    for (std::size_t at = 0; at < count && what_ != peer_fact::ignored; ++at) {
      if (columns_[at] != *label && cells_.size() < most_lines) {
        cells_.push_back({.what = what_,
                          .from = *label,
                          .to = columns_[at],
                          .value = std::string(words[at + 1]),
                          .line = one.number});
      }
    }
    return true;
  }

  // "GPU[0]  : (Topology) Numa Node: 3", "(Topology) Weight between DRM devices 0 and 1: 40"
  bool take_sentence(const line& one) {
    const auto colon = one.text.rfind(": ");
    if (colon == std::string::npos) {
      return false;
    }
    const gpu_line said{
        .value = std::string(text::trim(std::string_view(one.text).substr(colon + 1))),
        .line = one.number};
    const auto before = text::to_lower(one.text.substr(0, colon));
    if (take_pair(before, said)) {
      return true;
    }
    const auto index = gpu_in(one.text);
    if (!index || *index > most_index) {
      return false;
    }
    if (before.ends_with("numa node")) {
      nodes_.emplace(*index, said);
      all_nodes_.emplace_back(*index, said);
    } else if (before.ends_with("numa affinity")) {
      affinities_.emplace(*index, said);
    } else if (before.ends_with("pci bus")) {
      take_bus(*index, said);
    } else {
      return take_misspelt(before, *index, said);
    }
    return true;
  }

  bool take_misspelt(std::string_view before, std::uint32_t index, const gpu_line& said) {
    const auto words = text::words(before);
    if (words.size() < 2 || !is_nearly(words[words.size() - 2], "numa")) {
      return false;
    }
    if (is_nearly(words.back(), "node")) {
      nodes_.emplace(index, said);
      all_nodes_.emplace_back(index, said);
      return true;
    }
    if (is_nearly(words.back(), "affinity")) {
      affinities_.emplace(index, said);
      return true;
    }
    return false;
  }

  void take_bus(std::uint32_t index, const gpu_line& said) {
    const auto address = pci_address_in(said.value);
    if (address.empty()) {
      note(said.line,
           fmt::format("\"{}\" is no PCI address; left out", text::shorten(said.value, 40)));
      return;
    }
    buses_.emplace_back(index, gpu_line{.value = address, .line = said.line});
  }

  bool take_pair(const std::string& before, const gpu_line& said) {
    constexpr auto middle = "between drm devices "sv;
    const auto at = before.find(middle);
    const auto what = title_in(before);
    if (at == std::string::npos || what == peer_fact::none) {
      return false;
    }
    const auto words = text::words(std::string_view(before).substr(at + middle.size()));
    const auto one = words.empty() ? std::nullopt : number_in(words[0]);
    const auto other = words.size() < 3 ? std::nullopt : number_in(words[2]);
    if (!one || !other || *one > most_index || *other > most_index) {
      return false;
    }
    if (what != peer_fact::ignored && *one != *other && cells_.size() < most_lines) {
      cells_.push_back({.what = what,
                        .from = static_cast<std::uint32_t>(*one),
                        .to = static_cast<std::uint32_t>(*other),
                        .value = said.value,
                        .line = said.line});
    }
    return true;
  }

  void note(std::uint32_t line, std::string what) {
    if (problems_.size() < most_lines) {
      problems_.push_back({.value = std::move(what), .line = line});
    }
  }

  static void tell(writer& to, const cell& one) {
    const auto from = to.gpu({.made_by = vendor::amd, .index = one.from, .address = {}});
    const auto other = to.gpu({.made_by = vendor::amd, .index = one.to, .address = {}});
    if (!from || !other || from == other) {
      return;
    }
    tell_peer_fact(to, peer_link(to, *from, *other), one.what, one.value,
                   fmt::format("GPU {}", one.from), fmt::format("GPU {}", one.to));
  }

  void tell_numa(writer& to) const {
    for (const auto& [index, said] : all_nodes_) {
      to.at(said.line);
      if (const auto gpu = to.gpu({.made_by = vendor::amd, .index = index, .address = {}})) {
        to.numa_of_gpu(*gpu, said.value);
      }
    }
    for (const auto& [index, said] : affinities_) {
      to.at(said.line);
      const auto node = nodes_.find(index);
      if (node == nodes_.end()) {
        if (const auto gpu = to.gpu({.made_by = vendor::amd, .index = index, .address = {}})) {
          to.numa_of_gpu(*gpu, said.value);
        }
      } else if (said.value != node->second.value && said.value != "-1") {
        to.problem(fmt::format(
            "GPU {} has NUMA affinity {} and NUMA node {}: the firmware's and the driver's word "
            "differ; the driver's is taken",
            index, text::shorten(said.value, 20), text::shorten(node->second.value, 20)));
      }
    }
  }

  peer_fact what_ = peer_fact::none;
  std::vector<std::uint32_t> columns_;
  std::vector<cell> cells_;
  std::vector<gpu_line> problems_;
  std::vector<std::pair<std::uint32_t, gpu_line>> buses_;
  std::vector<std::pair<std::uint32_t, gpu_line>> all_nodes_;
  std::map<std::uint32_t, gpu_line> nodes_;
  std::map<std::uint32_t, gpu_line> affinities_;
};

}  // namespace

std::unique_ptr<reader> make_rocm_smi_reader() {
  return std::make_unique<rocm_smi_reader>();
}

}  // namespace berth::topology::paste
