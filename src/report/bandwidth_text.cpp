// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "core/text.hpp"
#include "report/bandwidth.hpp"
#include "report/page.hpp"

namespace berth::report {
namespace {

using machine::bandwidth_figure;
using machine::bandwidth_results;
using machine::bandwidth_verdict;
using machine::trait;

struct counts {
  std::size_t good = 0;
  std::size_t low = 0;
  std::size_t above = 0;
  std::size_t unknown = 0;  // measured, with nothing to compare
  std::size_t absent = 0;   // not measured
};

counts count(const bandwidth_results& shown) {
  counts made;
  for (const auto& one : shown.figures) {
    ++(!one.ns                                           ? made.absent
       : one.verdict == bandwidth_verdict::as_expected   ? made.good
       : one.verdict == bandwidth_verdict::low           ? made.low
       : one.verdict == bandwidth_verdict::above_nominal ? made.above
                                                         : made.unknown);
  }
  return made;
}

std::string plural(std::size_t many, std::string_view what) {
  return fmt::format("{} {}{}", many, what, many == 1 ? "" : "s");
}

std::string verdict_of(const bandwidth_results& shown) {
  const auto seen = count(shown);
  if (shown.figures.empty()) {
    return "Nothing was measured.";
  }
  // Whoever has no GPU gets the simulator's figures, and must not take them for his machine's.
  std::string text = shown.known == provenance::modelled ? "Simulated, no GPU was measured. " : "";
  text += seen.low > 0
              ? fmt::format("{} below what this machine should give", plural(seen.low, "figure"))
          : seen.above > 0
              ? fmt::format("{} above what the link can give: something else was measured",
                            plural(seen.above, "figure"))
          : seen.good > 0 ? std::string("As it should be")
                          : std::string("Not judged: nothing to compare with");
  if (seen.good > 0) {
    text += fmt::format("; {} as expected", seen.good);
  }
  if (seen.unknown > 0 && seen.good + seen.low + seen.above > 0) {
    text += fmt::format("; {} with nothing to compare", seen.unknown);
  }
  if (seen.absent > 0) {
    text += fmt::format("; {} not measured", seen.absent);
  }
  return text + ".";
}

std::string rate(double gb_per_s) {
  return fmt::format("{:.{}f}", gb_per_s,
                     gb_per_s >= 1000    ? 0
                     : gb_per_s >= 100   ? 1
                     : gb_per_s >= 0.095 ? 2
                                         : 4);
}

// The largest measured figure of a device that fits.
const bandwidth_figure* largest(const bandwidth_results& shown, int device,
                                const std::function<bool(const bandwidth_figure&)>& fits) {
  const bandwidth_figure* found = nullptr;
  for (const auto& one : shown.figures) {
    if (one.device == device && one.ns && fits(one) &&
        (found == nullptr || one.bytes > found->bytes)) {
      found = &one;
    }
  }
  return found;
}

std::function<bool(const bandwidth_figure&)> is_pinned_dma(direction way, machine::trait_set with) {
  return [=](const bandwidth_figure& one) {
    return one.where.way == way && one.where.host == memory_kind::pinned &&
           one.where.by == engine::dma && one.where.traits == with;
  };
}

std::string cell(const bandwidth_figure* one) {
  return one == nullptr ? "n/a" : rate(one->gb_per_s());
}

std::vector<column> matrix_columns(const bandwidth_results& shown) {
  std::vector<column> columns{{"GB/s", align::left}, {"Host", align::right}};
  for (const auto& device : shown.devices) {
    columns.push_back({fmt::format("GPU {}", device.index), align::right});
  }
  return columns;
}

// Rows are sources, columns destinations.
void add_one_way(page& to, const bandwidth_results& shown) {
  std::vector<std::vector<std::string>> rows{{"Host", "-"}};
  for (const auto& device : shown.devices) {
    rows.front().push_back(
        cell(largest(shown, device.index, is_pinned_dma(direction::host_to_device, {}))));
  }
  for (const auto& device : shown.devices) {
    std::vector<std::string> row{
        fmt::format("GPU {}", device.index),
        cell(largest(shown, device.index, is_pinned_dma(direction::device_to_host, {})))};
    for (const auto& other : shown.devices) {
      const auto* const own = other.index != device.index
                                  ? nullptr
                                  : largest(shown, device.index, [](const bandwidth_figure& one) {
                                      return one.where.way == direction::device_to_device;
                                    });
      row.push_back(cell(own));
    }
    rows.push_back(std::move(row));
  }
  to.line("One direction, page-locked, largest size (rows: source, columns: destination)",
          style::bold);
  to.table(matrix_columns(shown), rows);
  to.line();
}

void add_both_ways(page& to, const bandwidth_results& shown) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& device : shown.devices) {
    const auto* const up = largest(shown, device.index,
                                   is_pinned_dma(direction::host_to_device, trait::bidirectional));
    const auto* const down = largest(
        shown, device.index, is_pinned_dma(direction::device_to_host, trait::bidirectional));
    if (up != nullptr && down != nullptr) {
      rows.push_back({fmt::format("Host, GPU {}", device.index), rate(up->gb_per_s()),
                      rate(down->gb_per_s()), rate(up->gb_per_s() + down->gb_per_s()),
                      up->overlap ? fmt::format("{:.0f} %", *up->overlap * 100) : "?"});
    }
  }
  if (rows.empty()) {
    return;
  }
  to.line("Both directions at once, largest size", style::bold);
  to.table({{"GB/s", align::left},
            {"to GPU", align::right},
            {"to host", align::right},
            {"sum", align::right},
            {"side by side", align::right}},
           rows);
  to.line();
}

std::string size_title(bytes_t bytes) {
  return bytes >= gib && bytes % gib == 0   ? fmt::format("{} GiB", bytes / gib)
         : bytes >= mib && bytes % mib == 0 ? fmt::format("{} MiB", bytes / mib)
         : bytes >= kib && bytes % kib == 0 ? fmt::format("{} KiB", bytes / kib)
                                            : fmt::format("{} B", bytes);
}

std::string mark(const bandwidth_figure& one) {
  return one.verdict == bandwidth_verdict::low             ? "!"
         : one.verdict == bandwidth_verdict::above_nominal ? "?"
                                                           : "";
}

std::string row_title(const machine::path& of) {
  constexpr std::string_view ways[] = {"", "to GPU", "to host", "in GPU", "", ""};
  const std::string_view way = of.way == direction::host_to_device   ? ways[1]
                               : of.way == direction::device_to_host ? ways[2]
                                                                     : ways[3];
  std::string title = fmt::format("{} {}", way, to_string(of.host));
  if (of.traits.has(trait::fresh_pages)) {
    title += ", fresh";
  }
  if (of.traits.has(trait::write_combined)) {
    title += ", write-combined";
  }
  if (of.traits.has(trait::bidirectional)) {
    title += ", both ways";
  }
  if (of.by == engine::kernel) {
    title += ", by kernel";
  }
  return title;
}

// As many sizes as fit into a page; the rest goes into tables below.
constexpr std::size_t sizes_in_table = 7;

void add_sizes(page& to, const bandwidth_results& shown, int device) {
  std::vector<bytes_t> sizes;
  std::vector<machine::path> paths;
  for (const auto& one : shown.figures) {
    if (one.device != device) {
      continue;
    }
    sizes.push_back(one.bytes);
    if (std::find(paths.begin(), paths.end(), one.where) == paths.end()) {
      paths.push_back(one.where);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (std::size_t first = 0; first < sizes.size(); first += sizes_in_table) {
    const auto last = std::min(sizes.size(), first + sizes_in_table);
    std::vector<column> columns{{fmt::format("GPU {}, GB/s", device), align::left}};
    for (auto index = first; index < last; ++index) {
      columns.push_back({size_title(sizes[index]), align::right});
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& where : paths) {
      std::vector<std::string> row{row_title(where)};
      for (auto index = first; index < last; ++index) {
        const auto found =
            std::find_if(shown.figures.begin(), shown.figures.end(), [&](const auto& one) {
              return one.device == device && one.where == where && one.bytes == sizes[index];
            });
        row.push_back(found == shown.figures.end() ? ""
                      : !found->ns                 ? "n/a"
                                                   : rate(found->gb_per_s()) + mark(*found));
      }
      rows.push_back(std::move(row));
    }
    to.table(columns, rows);
    to.line();
  }
}

// Figures of one path with one reason are one finding.
void add_low(page& to, const bandwidth_results& shown) {
  std::vector<const bandwidth_figure*> said;
  for (const auto& one : shown.figures) {
    const bool is_said = std::any_of(said.begin(), said.end(), [&](const auto* other) {
      return other->device == one.device && other->where == one.where &&
             other->verdict == one.verdict;
    });
    const bool is_wrong =
        one.verdict == bandwidth_verdict::low || one.verdict == bandwidth_verdict::above_nominal;
    if (!is_wrong || is_said || !one.expected_gb_per_s) {
      continue;
    }
    said.push_back(&one);
    const bool low = one.verdict == bandwidth_verdict::low;
    to.block(low ? "LOW" : "TOO FAST",
             fmt::format("GPU {}, {}, {}: {} GB/s where {} GB/s are expected ({}: {})", one.device,
                         row_title(one.where), size_title(one.bytes), rate(one.gb_per_s()),
                         rate(one.expected_gb_per_s->value),
                         to_string(one.expected_gb_per_s->known), one.expected_gb_per_s->source),
             low ? style::red : style::yellow);
    for (const auto& cause : one.causes) {
      to.block("  perhaps", cause);
    }
    if (!low) {
      to.block("  perhaps",
               "caches were read instead of memory, or the GPU is another than its name says");
    }
    to.line();
  }
}

void add_changes(page& to, const machine::bandwidth_comparison& with) {
  const auto slower = static_cast<std::size_t>(std::count_if(
      with.changes.begin(), with.changes.end(), [](const auto& one) { return one.is_slower(); }));
  to.block("COMPARED",
           fmt::format("with {}: {} slower, {} faster, of {} that both runs have",
                       text::printable(with.with), slower, with.changes.size() - slower,
                       plural(with.compared, "figure")),
           slower > 0 ? style::red : style::bold);
  for (const auto& one : with.changes) {
    to.block(
        one.is_slower() ? "  slower" : "  faster",
        fmt::format("GPU {}, {}, {}: {} GB/s, before {} ({:+.0f} %)", one.device,
                    row_title(one.where), size_title(one.bytes), rate(one.now_gb_per_s),
                    rate(one.before_gb_per_s), (one.now_gb_per_s / one.before_gb_per_s - 1) * 100));
  }
  to.line();
}

// Reasons, each once.
void add_absent(page& to, const bandwidth_results& shown) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& one : shown.figures) {
    if (!one.ns) {
      by_reason[one.why_not].push_back(
          fmt::format("{} {}", row_title(one.where), size_title(one.bytes)));
    }
  }
  for (const auto& [why, which] : by_reason) {
    to.block("Not taken", fmt::format("{}: {}", fmt::join(which, "; "), why));
  }
}

}  // namespace

std::string to_text(const bandwidth_results& shown, colour colours) {
  page to(colours);
  to.block("VERDICT", verdict_of(shown), style::bold);
  to.line();
  if (!shown.ended_early.empty()) {
    to.block("Note", fmt::format("The run ended early: {}", shown.ended_early), style::yellow);
    to.line();
  }
  if (shown.comparison) {
    add_changes(to, *shown.comparison);
  }
  if (!shown.figures.empty()) {
    add_low(to, shown);
    add_one_way(to, shown);
    add_both_ways(to, shown);
    for (const auto& device : shown.devices) {
      add_sizes(to, shown, device.index);
    }
    add_absent(to, shown);
  }
  for (const auto& device : shown.devices) {
    to.block(fmt::format("GPU {}", device.index),
             fmt::format("{}{}{}", text::printable(device.name),
                         device.pci_address.empty() ? "" : ", ", device.pci_address));
  }
  to.block("Runtime", fmt::format("{}; all figures are {}, medians; every byte was compared",
                                  text::printable(shown.runtime), to_string(shown.known)));
  for (const auto& note : shown.notes) {
    to.block("Note", note);
  }
  return to.take();
}

}  // namespace berth::report
