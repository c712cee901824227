// SPDX-License-Identifier: Apache-2.0
// nvidia-smi topo -m: a square of how each device reaches each other, with the CPUs and NUMA nodes
// that are close behind it. Pasting loses blanks and cells, so a column is what the rows make it:
// a device reaches itself by "X", and where that stands is its column.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::link_kind;
using machine::place_kind;
using machine::vendor;
using namespace std::string_view_literals;

constexpr std::size_t most_rows = 512;
constexpr std::uint32_t most_nvidia_index = 255;
constexpr std::uint64_t most_nvlinks = 64;

constexpr std::array routes = {"PIX"sv, "PXB"sv, "PHB"sv, "NODE"sv, "SYS"sv, "SOC"sv};
constexpr std::array legend = {"X"sv,   "SYS"sv, "NODE"sv, "PHB"sv, "PXB"sv,
                               "PIX"sv, "NV#"sv, "SOC"sv,  "PSB"sv, "C2C"sv};

// "NV12": that many links together.
std::optional<std::uint64_t> nvlinks_in(std::string_view word) {
  return word.starts_with("NV") ? number_in(word.substr(2)) : std::nullopt;
}

bool is_route(std::string_view word) {
  return std::ranges::find(routes, word) != routes.end();
}

bool is_matrix_cell(std::string_view word) {
  return word == "X" || is_route(word) || nvlinks_in(word).has_value();
}

bool is_device(std::string_view word) {
  const auto is_numbered = [&](std::string_view prefix) {
    return word.starts_with(prefix) && number_in(word.substr(prefix.size())).has_value();
  };
  return is_numbered("GPU") || is_numbered("NIC") || word.starts_with("mlx") ||
         word.starts_with("bnxt") || word.starts_with("ib") || word.starts_with("roce") ||
         word.starts_with("rdma") || word.starts_with("hfi") || word.starts_with("efa");
}

std::optional<std::uint32_t> nvidia_gpu_in(std::string_view word) {
  const auto number = word.starts_with("GPU") ? number_in(word.substr(3)) : std::nullopt;
  return number && *number <= most_nvidia_index ? std::optional(static_cast<std::uint32_t>(*number))
                                                : std::nullopt;
}

struct matrix_row {
  std::string label;
  std::vector<std::string> cells;
  std::vector<std::string> tail;  // what stands behind the square
  std::uint32_t line = 0;
};

struct matrix {
  std::vector<std::string> columns;  // as the headline tells, which may be wrong
  bool has_cpus = false;
  bool has_numa = false;
  bool has_gpu_numa = false;
  std::uint32_t line = 0;
  std::vector<matrix_row> rows;
};

class nvidia_topo_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    const bool is_command = text.find("nvidia") != std::string_view::npos &&
                            text.find("topo -m") != std::string_view::npos;
    if (is_command) {
      ends_table();
      return true;
    }
    return is_device(text.substr(0, text.find_first_of(" \t"))) &&
           (take_headline(one) || take_row(one));
  }

  bool takes(const line& one) override {
    return take_headline(one) || take_row(one) || is_legend(one.text);
  }

  void breaks() override { ends_table(); }

  void tells(writer& to) override {
    for (const auto& one : tables_) {
      tell_table(to, one);
    }
  }

private:
  void ends_table() { is_inside_ = false; }

  static bool is_legend(std::string_view text) {
    if (text == "Legend:" || text == "NIC Legend:") {
      return true;
    }
    if (const auto pair = key_value_of(text); pair && is_device(pair->key)) {
      return true;
    }
    const auto equals = text.find('=');
    return equals != std::string_view::npos &&
           std::ranges::find(legend, text::trim(text.substr(0, equals))) != legend.end();
  }

  // "GPU0 GPU1 mlx5_0 CPU Affinity NUMA Affinity GPU NUMA ID"
  bool take_headline(const line& one) {
    const auto words = text::words(one.text);
    std::size_t count = 0;
    while (count < words.size() && is_device(words[count])) {
      ++count;
    }
    const bool has_cpus = text::contains_ignoring_case(one.text, "CPU Affinity");
    if (count == 0 || !words.front().starts_with("GPU") || (count < words.size() && !has_cpus) ||
        (count == words.size() && count < 2)) {
      return false;
    }
    if (tables_.size() >= most_rows) {
      return true;
    }
    auto& table = tables_.emplace_back();
    table.line = one.number;
    table.has_cpus = has_cpus;
    table.has_numa = text::contains_ignoring_case(one.text, "NUMA Affinity");
    table.has_gpu_numa = text::contains_ignoring_case(one.text, "GPU NUMA ID");
    table.columns.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    is_inside_ = true;
    return true;
  }

  bool take_row(const line& one) {
    const auto words = text::words(one.text);
    if (words.size() < 2 || !is_device(words[0]) || !is_matrix_cell(words[1])) {
      return false;
    }
    std::size_t end = 1;
    while (end < words.size() && is_matrix_cell(words[end])) {
      ++end;
    }
    if (!is_inside_) {
      if (tables_.size() < most_rows) {
        tables_.emplace_back().line = one.number;
      }
      is_inside_ = true;
    }
    auto& rows = tables_.back().rows;
    if (rows.size() < most_rows) {
      auto& row = rows.emplace_back();
      row.label = words[0];
      row.line = one.number;
      row.cells.assign(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(end));
      row.tail.assign(words.begin() + static_cast<std::ptrdiff_t>(end), words.end());
    }
    return true;
  }

  // Which device each column is: by the rows' "X", checked against the headline.
  static std::vector<std::string> columns_of(writer& to, const matrix& table) {
    std::size_t count = table.columns.size();
    for (const auto& row : table.rows) {
      count = std::max(count, row.cells.size());
    }
    std::vector<std::string> columns = table.columns;
    columns.resize(std::min(count, most_rows));
    for (const auto& row : table.rows) {
      const auto self = std::ranges::find(row.cells, "X");
      // A row of another length lost or won cells, so it does not tell.
      const bool is_whole_row = table.columns.empty() || row.cells.size() == columns.size();
      if (self == row.cells.end() || !is_whole_row) {
        continue;
      }
      const auto at = static_cast<std::size_t>(self - row.cells.begin());
      if (at >= columns.size() || columns[at] == row.label) {
        continue;
      }
      if (!columns[at].empty()) {
        to.at(row.line);
        to.problem(fmt::format(
            "{} reaches itself in the column of {}: the table is not whole; that column is left "
            "out",
            text::shorten(row.label, 20), text::shorten(columns[at], 20)));
        columns[at] = "?";
      } else {
        columns[at] = row.label;
      }
    }
    return columns;
  }

  static void tell_table(writer& to, const matrix& table) {
    const auto columns = columns_of(to, table);
    for (const auto& row : table.rows) {
      const auto index = nvidia_gpu_in(row.label);
      if (!index) {
        continue;
      }
      to.at(row.line);
      const auto gpu = to.gpu({.made_by = vendor::nvidia, .index = *index, .address = {}});
      if (!gpu) {
        continue;
      }
      to.of_gpu(*gpu, "xnack", &machine::gpu::xnack, machine::setting_state::inapplicable,
                "inapplicable");
      tell_cells(to, *gpu, row, columns);
      tell_tail(to, *gpu, row, table);
    }
  }

  // A row that lost a cell would give each later one to the wrong device.
  static bool is_whole(writer& to, const matrix_row& row, const std::vector<std::string>& columns) {
    const auto self = std::ranges::find(row.cells, "X");
    const auto own = std::ranges::find(columns, row.label);
    const bool is_cut = row.cells.size() < columns.size() && row.tail.empty();
    const bool fits = row.cells.size() == columns.size() || is_cut;
    const bool is_in_place =
        self == row.cells.end()
            ? is_cut && (own == columns.end() ||
                         static_cast<std::size_t>(own - columns.begin()) >= row.cells.size())
            : self - row.cells.begin() == own - columns.begin();
    if (!fits || !is_in_place) {
      to.problem(fmt::format("the row of {} does not fit the columns of its table; left out",
                             text::shorten(row.label, 20)));
    }
    return fits && is_in_place;
  }

  static void tell_cells(writer& to, std::size_t gpu, const matrix_row& row,
                         const std::vector<std::string>& columns) {
    if (!is_whole(to, row, columns)) {
      return;
    }
    // Where a row was cut, its last cell may have been, too: "NV1" of "NV12".
    const auto count = row.cells.size() - (row.cells.size() < columns.size() ? 1U : 0U);
    for (std::size_t at = 0; at < count; ++at) {
      const auto index = nvidia_gpu_in(columns[at]);
      if (!index || row.cells[at] == "X") {
        continue;
      }
      const auto other = to.gpu({.made_by = vendor::nvidia, .index = *index, .address = {}});
      if (other && *other != gpu) {
        tell_cell(to,
                  to.link({.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(gpu)},
                          {.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(*other)}),
                  row.cells[at]);
      }
    }
  }

  static void tell_cell(writer& to, std::size_t link, const std::string& cell) {
    if (const auto count = nvlinks_in(cell)) {
      if (*count == 0 || *count > most_nvlinks) {
        to.problem(fmt::format("\"{}\" is no count of NVLinks; left out", text::shorten(cell, 20)));
        return;
      }
      to.of_link(link, "kind", &machine::link::kind, link_kind::nvlink, "nvlink");
      to.of_link(link, "count", &machine::link::count, *count, fmt::format("{}", *count));
      return;
    }
    to.of_link(link, "kind", &machine::link::kind, link_kind::pcie, "pcie");
    to.of_link(link, "route", &machine::link::route, cell, cell);
  }

  // CPUs, NUMA nodes, and the node that the GPU's own memory is; all may be missing.
  static void tell_tail(writer& to, std::size_t gpu, const matrix_row& row, const matrix& table) {
    const std::size_t expected =
        (table.has_cpus ? 1U : 0U) + (table.has_numa ? 1U : 0U) + (table.has_gpu_numa ? 1U : 0U);
    if (row.tail.empty()) {
      return;
    }
    const auto& first = row.tail.front();
    const bool is_list = first.find_first_of("-,") != std::string::npos;
    if (row.tail.size() != expected && (!is_list || row.tail.size() > 3)) {
      to.problem(
          fmt::format("{} cells behind the square of {}, and which is which is not told; "
                      "left out",
                      row.tail.size(), text::shorten(row.label, 20)));
      return;
    }
    std::optional<std::vector<std::uint32_t>> cpus;
    if (first != "N/A") {
      cpus = text::parse_number_list(first);
      if (!cpus) {
        to.problem(fmt::format("\"{}\" is no list of CPUs; left out", text::shorten(first, 40)));
      }
    }
    if (cpus) {
      to.of_gpu(gpu, "near_cpus", &machine::gpu::near_cpus, *cpus, text::number_list(*cpus));
    }
    tell_numa(to, gpu, row, table.has_numa, cpus);
  }

  // "0-1" are several nodes, of which the closest is not told.
  static void tell_numa(writer& to, std::size_t gpu, const matrix_row& row, bool has_numa,
                        const std::optional<std::vector<std::uint32_t>>& cpus) {
    if (!has_numa || row.tail.size() < 2 ||
        row.tail[1].find_first_of("-,", 1) != std::string::npos) {
      return;
    }
    const auto id = to.numa_id(row.tail[1]);
    if (!id) {
      return;
    }
    to.numa_of_gpu(gpu, row.tail[1]);
    if (cpus) {
      to.cpus_of_node(*id, *cpus);
    }
  }

  std::vector<matrix> tables_;
  bool is_inside_ = false;
};

}  // namespace

std::unique_ptr<reader> make_nvidia_topo_reader() {
  return std::make_unique<nvidia_topo_reader>();
}

}  // namespace berth::topology::paste
