// SPDX-License-Identifier: Apache-2.0
// amd-smi topology: tables whose rows and columns are PCI addresses, or the same as JSON.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "topology/paste/peer_fact.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::vendor;
using namespace std::string_view_literals;

constexpr std::size_t most_smi_cells = 1 << 16;
constexpr std::size_t most_smi_gpus = 256;
constexpr std::size_t most_json = 1 << 22;

struct smi_title {
  std::string_view name;
  peer_fact table;
};
constexpr std::array smi_titles = {
    smi_title{"WEIGHT TABLE", peer_fact::weight},
    smi_title{"HOPS TABLE", peer_fact::hops},
    smi_title{"LINK TYPE TABLE", peer_fact::kind},
    smi_title{"ACCESS TABLE", peer_fact::ignored},
    smi_title{"NUMA BW TABLE", peer_fact::ignored},
    smi_title{"CACHE COHERANCY TABLE", peer_fact::ignored},
    smi_title{"CACHE COHERENCY TABLE", peer_fact::ignored},
    smi_title{"ATOMICS TABLE", peer_fact::ignored},
    smi_title{"DMA TABLE", peer_fact::ignored},
    smi_title{"BI-DIRECTIONAL TABLE", peer_fact::ignored},
};

struct smi_cell {
  peer_fact table = peer_fact::none;
  std::string from;
  std::string to;
  std::string value;
  std::uint32_t line = 0;
};

struct smi_json {
  std::string text;
  std::uint32_t line = 0;
  int depth = 0;
};

// amd-smi's own documentation prints lists with a comma behind the last member.
std::string without_last_commas(std::string_view text) {
  std::string kept;
  bool is_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    is_string = c == '"' && (at == 0 || text[at - 1] != '\\') ? !is_string : is_string;
    if (c == ',' && !is_string) {
      const auto next = text.find_first_not_of(" \t\r\n", at + 1);
      if (next != std::string_view::npos && (text[next] == '}' || text[next] == ']')) {
        continue;
      }
    }
    kept += c;
  }
  return kept;
}

std::string text_at(const nlohmann::json& of, const char* name) {
  const auto found = of.find(name);
  if (found == of.end()) {
    return {};
  }
  return found->is_string() ? found->get<std::string>() : found->dump();
}

class amd_smi_reader final : public reader {
public:
  bool begins(const line& one) override {
    if (take_title(one.text)) {
      return true;
    }
    const bool opens = one.text == "[" || one.text == "{" || one.text.starts_with("[{\"gpu\"") ||
                       one.text.starts_with("{\"gpu\"");
    if (!opens || is_json_) {
      return false;
    }
    json_.emplace_back().line = one.number;
    is_json_ = true;
    add_json(one.text);
    return true;
  }

  bool takes(const line& one) override {
    if (is_json_) {
      add_json(one.text);
      return true;
    }
    return take_title(one.text) || take_columns(one.text) || take_row(one) ||
           one.text == "Legend:" || one.text.find("SELF = ") != std::string::npos || begins(one);
  }

  void breaks() override {
    is_json_ = false;
    table_ = peer_fact::none;
    columns_.clear();
  }

  void tells(writer& to) override {
    for (const auto& one : json_) {
      read_json(to, one);
    }
    place_gpus(to);
    for (const auto& one : cells_) {
      to.at(one.line);
      tell(to, one);
    }
  }

private:
  bool take_title(std::string_view text) {
    if (text.ends_with(':')) {
      text.remove_suffix(1);
    }
    const auto found = std::find_if(smi_titles.begin(), smi_titles.end(),
                                    [&](const auto& one) { return is_nearly(text, one.name); });
    if (found == smi_titles.end()) {
      return false;
    }
    table_ = found->table;
    columns_.clear();
    return true;
  }

  bool take_columns(std::string_view text) {
    std::vector<std::string> columns;
    for (const auto word : text::words(text)) {
      columns.push_back(pci_address_in(word));
      if (columns.back().empty() || columns.size() > most_smi_gpus) {
        return false;
      }
    }
    if (columns.empty() || table_ == peer_fact::none) {
      return false;
    }
    columns_ = std::move(columns);
    return true;
  }

  bool take_row(const line& one) {
    const auto words = text::words(one.text);
    const auto from = words.size() < 2 ? std::string() : pci_address_in(words[0]);
    if (from.empty() || columns_.empty()) {
      return false;
    }
    name(from, one.number);
    auto count = words.size() - 1;
    if (count > columns_.size()) {
      notes_.push_back(
          {one.number, fmt::format("the row of {} has {} cells for {} columns; left out", from,
                                   count, columns_.size())});
      return true;
    }
    // Where a row was cut, its last cell may have been, too.
    count -= count < columns_.size() ? 1U : 0U;
    for (std::size_t at = 0; at < count; ++at) {
      add({.table = table_,
           .from = from,
           .to = columns_[at],
           .value = std::string(words[at + 1]),
           .line = one.number});
    }
    return true;
  }

  void add(smi_cell one) {
    name(one.to, one.line);
    if (one.table != peer_fact::ignored && one.from != one.to && cells_.size() < most_smi_cells) {
      cells_.push_back(std::move(one));
    }
  }

  // GPUs in the order in which they are first named, which is that of their numbers.
  void name(const std::string& address, std::uint32_t line) {
    if (names_.size() < most_smi_gpus && positions_.try_emplace(address, names_.size()).second) {
      names_.push_back({.made_by = vendor::amd, .index = {}, .address = address});
      first_line_ = first_line_ == 0 ? line : first_line_;
    }
  }

  void add_json(std::string_view text) {
    auto& of = json_.back();
    for (const char c : text) {
      of.depth += c == '[' || c == '{' ? 1 : 0;
      of.depth -= c == ']' || c == '}' ? 1 : 0;
    }
    if (of.text.size() < most_json) {
      of.text.append(text).append("\n");
    }
    is_json_ = of.depth > 0;
  }

  void read_json(writer& to, const smi_json& one) {
    to.at(one.line);
    const auto parsed = nlohmann::json::parse(without_last_commas(one.text), nullptr, false);
    if (parsed.is_discarded()) {
      to.problem("JSON that is not whole; left out");
      return;
    }
    const auto& all =
        parsed.is_object() && parsed.contains("gpu_data") ? parsed["gpu_data"] : parsed;
    bool is_ours = false;
    for (const auto& gpu : all) {
      const auto from = gpu.is_object() ? pci_address_in(text_at(gpu, "bdf")) : std::string();
      const auto links = from.empty() ? gpu.end() : gpu.find("links");
      if (from.empty() || links == gpu.end() || !links->is_array()) {
        continue;
      }
      is_ours = true;
      name(from, one.line);
      for (const auto& link : *links) {
        read_link(from, link, one.line);
      }
    }
    if (!is_ours) {
      to.problem("JSON that is no topology of amd-smi; left out");
    }
  }

  void read_link(const std::string& from, const nlohmann::json& link, std::uint32_t line) {
    const auto other = link.is_object() ? pci_address_in(text_at(link, "bdf")) : std::string();
    if (other.empty()) {
      return;
    }
    for (const auto& [field, table] :
         {std::pair("weight", peer_fact::weight), std::pair("num_hops", peer_fact::hops),
          std::pair("link_type", peer_fact::kind)}) {
      if (const auto value = text_at(link, field); !value.empty()) {
        add({.table = table, .from = from, .to = other, .value = value, .line = line});
      }
    }
  }

  void place_gpus(writer& to) {
    to.at(first_line_);
    for (const auto& note : notes_) {
      to.at(note.line);
      to.problem(note.what);
    }
    to.at(first_line_);
    const auto found = to.gpus_at(names_);
    for (std::size_t at = 0; at < std::min(found.size(), names_.size()); ++at) {
      places_.emplace(names_[at].address, found[at]);
    }
  }

  void tell(writer& to, const smi_cell& one) const {
    const auto from = places_.find(one.from);
    const auto other = places_.find(one.to);
    if (from == places_.end() || other == places_.end() || one.value == "N/A") {
      return;
    }
    tell_peer_fact(to, peer_link(to, from->second, other->second), one.table, one.value, one.from,
                   one.to);
  }

  struct smi_note {
    std::uint32_t line;
    std::string what;
  };

  peer_fact table_ = peer_fact::none;
  std::vector<std::string> columns_;
  std::vector<smi_cell> cells_;
  std::vector<smi_note> notes_;
  std::vector<smi_json> json_;
  bool is_json_ = false;
  std::vector<gpu_name> names_;
  std::map<std::string, std::size_t, std::less<>> positions_;
  std::uint32_t first_line_ = 0;
  std::map<std::string, std::size_t, std::less<>> places_;
};

}  // namespace

std::unique_ptr<reader> make_amd_smi_reader() {
  return std::make_unique<amd_smi_reader>();
}

}  // namespace berth::topology::paste
