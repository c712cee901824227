// SPDX-License-Identifier: Apache-2.0
// What tools have measured: CUDA's bandwidthTest, of which numactl in the command line says where
// the host's memory was, and the tables of rocm-bandwidth-test.
//
// Words
//   block   the lines of bandwidthTest from one heading ("Host to Device Bandwidth") to the next
//   matrix  a table of rocm-bandwidth-test: the source's number in front of a row, the
//           destination's above a column
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

using machine::measured_rate;
using machine::place;
using machine::place_kind;
using machine::vendor;
using namespace std::string_view_literals;

constexpr std::size_t most_measured = 1 << 13;
constexpr std::uint64_t most_tool_devices = 256;

struct heading {
  std::string_view text;
  direction way;
};
constexpr std::array headings = {
    heading{"Host to Device Bandwidth", direction::host_to_device},
    heading{"Device to Host Bandwidth", direction::device_to_host},
    heading{"Device to Device Bandwidth", direction::device_to_device},
};

struct memory_heading {
  std::string_view text;
  memory_kind kind;
};
constexpr std::array memory_headings = {
    memory_heading{"PINNED Memory Transfers", memory_kind::pinned},
    memory_heading{"PAGEABLE Memory Transfers", memory_kind::pageable},
};

enum class matrix_of : std::uint8_t { nothing, access, weights, one_way, both_ways };

struct matrix_heading {
  std::string_view text;
  matrix_of what;
};
constexpr std::array matrix_headings = {
    matrix_heading{"Inter-Device Access", matrix_of::access},
    matrix_heading{"Inter-Device Numa Distance", matrix_of::weights},
    matrix_heading{"Unidirectional copy peak bandwidth GB/s", matrix_of::one_way},
    matrix_heading{"Bidirectional copy peak bandwidth GB/s", matrix_of::both_ways},
};

struct block {
  direction way = direction::unknown;
  memory_kind host = memory_kind::unknown;
  std::optional<std::uint32_t> device;
  std::optional<std::uint32_t> node;
  std::uint64_t bytes = 0;  // the largest that was copied, whose rate is kept
  double gb_per_s = 0;
  std::uint32_t line = 0;
};

struct tool_device {
  std::uint32_t number = 0;
  std::string title;
  std::string address;  // empty for a CPU
  std::uint32_t line = 0;
};

struct matrix_line {
  matrix_of what = matrix_of::nothing;
  std::uint32_t source = 0;
  std::vector<std::uint32_t> columns;
  std::vector<std::string> cells;
  std::uint32_t line = 0;
};

// The node that numactl gives memory from: "-m0", "-m 0", "--membind=0"; where only the CPUs are
// bound, memory comes from there too.
std::optional<std::uint32_t> node_of_command(std::string_view text) {
  const auto at = text.find("numactl");
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  constexpr std::array options = {"--membind="sv,     "--membind"sv,     "-m"sv,
                                  "--cpunodebind="sv, "--cpunodebind"sv, "-N"sv};
  const auto words = text::words(text.substr(at));
  for (const auto option : options) {
    for (std::size_t index = 1; index < words.size(); ++index) {
      if (!words[index].starts_with(option)) {
        continue;
      }
      auto value = words[index].substr(option.size());
      value = value.empty() && index + 1 < words.size() ? words[index + 1] : value;
      if (const auto node = text::whole_number<std::uint32_t>(value); node && *node < 1024) {
        return node;
      }
    }
  }
  return std::nullopt;
}

class bandwidth_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    if (const auto node = node_of_command(text)) {
      node_ = node;
      return true;
    }
    return take_banner(text) || take_csv(one) || take_heading(one) || take_matrix_heading(text) ||
           take_tool_device(one);
  }

  bool takes(const line& one) override {
    return begins(one) || take_test_device(one.text) || take_kind(one.text) || take_rate(one) ||
           take_columns(one) || take_matrix_row(one) || is_chatter(one.text);
  }

  // A new command: what the one before it was told says nothing of this one.
  void breaks() override {
    node_.reset();
    test_device_.reset();
    is_inside_ = false;
    what_ = matrix_of::nothing;
  }

  void tells(writer& to) override {
    tell_blocks(to);
    name_devices(to);
    for (const auto& one : lines_) {
      to.at(one.line);
      tell_matrix_line(to, one);
    }
  }

private:
  static bool take_banner(std::string_view text) {
    return text.find("[CUDA Bandwidth Test]") != std::string_view::npos ||
           text.find("CUDA Bandwidth Test]") != std::string_view::npos ||
           text.find("RocmBandwidthTest Version") != std::string_view::npos;
  }

  // "bandwidthTest-H2D-Pinned, Bandwidth = 12.1 GB/s, Time = 0.002 s, Size = 32000000 bytes, ..."
  bool take_csv(const line& one) {
    const std::string_view text = one.text;
    constexpr auto name = "bandwidthTest-"sv;
    if (!text.starts_with(name)) {
      return false;
    }
    const auto words = text::words(text.substr(name.size()));
    const auto value_of = [&](std::string_view key) {
      const auto at = std::ranges::find(words, key);
      return words.end() - at > 3 && at[1] == "=" ? at : words.end();
    };
    const auto rate_at = value_of("Bandwidth");
    const auto size_at = value_of("Size");
    if (rate_at == words.end() || size_at == words.end()) {
      return false;
    }
    const auto rate = decimal_in(rate_at[2]);
    const auto bytes = number_in(size_at[2]);
    const auto what = words.front();
    const auto way = what.starts_with("H2D")   ? direction::host_to_device
                     : what.starts_with("D2H") ? direction::device_to_host
                                               : direction::device_to_device;
    const auto kind = what.find("Pinned") != std::string_view::npos  ? memory_kind::pinned
                      : what.find("Paged") != std::string_view::npos ? memory_kind::pageable
                                                                     : memory_kind::unknown;
    if (rate && bytes) {
      keep_largest(way, kind, *bytes, *rate / (rate_at[3].starts_with("MB/s") ? 1000.0 : 1.0),
                   one.number);
    }
    return true;
  }

  void keep_largest(direction way, memory_kind kind, std::uint64_t bytes, double gb_per_s,
                    std::uint32_t number) {
    is_inside_ = false;
    if (blocks_.empty() || blocks_.back().way != way || blocks_.back().host != kind) {
      if (blocks_.size() >= most_measured) {
        return;
      }
      auto& made = blocks_.emplace_back();
      made.way = way;
      made.host = kind;
      made.device = test_device_;
      made.node = node_;
    }
    auto& last = blocks_.back();
    if (bytes >= last.bytes) {
      last.bytes = bytes;
      last.gb_per_s = gb_per_s;
      last.line = number;
    }
  }

  bool take_heading(const line& one) {
    for (const auto& known : headings) {
      if (one.text.starts_with(known.text)) {
        is_inside_ = blocks_.size() < most_measured;
        if (is_inside_) {
          auto& made = blocks_.emplace_back();
          made.way = known.way;
          made.device = test_device_;
          made.node = node_;
        }
        return true;
      }
    }
    return false;
  }

  bool take_test_device(std::string_view text) {
    const auto number = text.starts_with("Device ") ? leading_number(text.substr(7)) : std::nullopt;
    const bool is_it =
        number && *number < most_tool_devices && text.find(':') != std::string_view::npos;
    if (is_it) {
      test_device_ = static_cast<std::uint32_t>(*number);
      titles_.emplace(*test_device_, text::trim(text.substr(text.find(':') + 1)));
    }
    return is_it;
  }

  bool take_kind(std::string_view text) {
    for (const auto& known : memory_headings) {
      if (text.starts_with(known.text)) {
        if (is_inside_) {
          blocks_.back().host = known.kind;
        }
        return true;
      }
    }
    if (text.starts_with("Transfer Size (Bytes)")) {
      per_gb_ = text.find("(GB/s)") != std::string_view::npos ? 1.0 : 1000.0;
      return true;
    }
    return false;
  }

  // "33554432    12150.7"
  bool take_rate(const line& one) {
    const auto words = text::words(one.text);
    if (!is_inside_ || words.size() != 2) {
      return false;
    }
    const auto bytes = number_in(words[0]);
    const auto rate = decimal_in(words[1]);
    if (!bytes || !rate) {
      return false;
    }
    auto& last = blocks_.back();
    if (*bytes >= last.bytes) {
      last.bytes = *bytes;
      last.gb_per_s = *rate / per_gb_;
      last.line = one.number;
    }
    return true;
  }

  static bool is_chatter(std::string_view text) {
    constexpr std::array known = {"Running on..."sv, "Quick Mode"sv,  "Range Mode"sv,
                                  "Shmoo Mode"sv,    "Result = "sv,   "Launch Command is"sv,
                                  "NOTE: "sv,        "Release Date"sv};
    return std::ranges::any_of(known, [&](std::string_view one) { return text.starts_with(one); });
  }

  // "Device: 2,  AMD Instinct MI210,  GPU-<id>,  05:0.0"
  bool take_tool_device(const line& one) {
    const std::string_view text = one.text;
    const auto number =
        text.starts_with("Device: ") ? leading_number(text.substr(8)) : std::nullopt;
    const auto comma = text.find(',');
    if (!number || *number >= most_tool_devices || comma == std::string_view::npos) {
      return false;
    }
    const auto rest = text.substr(comma + 1);
    if (devices_.size() < most_tool_devices) {
      const auto last = rest.rfind(',');
      const auto address =
          last == std::string_view::npos ? std::string() : pci_address_in(rest.substr(last + 1));
      devices_.push_back({.number = static_cast<std::uint32_t>(*number),
                          .title = std::string(
                              text::trim(address.empty() ? rest : rest.substr(0, rest.find(',')))),
                          .address = address,
                          .line = one.number});
    }
    return true;
  }

  bool take_matrix_heading(std::string_view text) {
    const auto* const known = std::ranges::find_if(
        matrix_headings, [&](const matrix_heading& one) { return text.starts_with(one.text); });
    if (known == matrix_headings.end()) {
      return false;
    }
    what_ = known->what;
    columns_.clear();
    return true;
  }

  bool take_columns(const line& one) {
    const auto words = text::words(one.text);
    if (what_ == matrix_of::nothing || words.empty() || words[0] != "D/D") {
      return false;
    }
    columns_.clear();
    for (std::size_t index = 1; index < words.size(); ++index) {
      columns_.push_back(text::whole_number<std::uint32_t>(words[index]).value_or(UINT32_MAX));
    }
    return true;
  }

  bool take_matrix_row(const line& one) {
    const auto words = text::words(one.text);
    const auto source = words.empty() ? std::nullopt : text::whole_number<std::uint32_t>(words[0]);
    if (what_ == matrix_of::nothing || columns_.empty() || !source || words.size() < 2) {
      return false;
    }
    if (lines_.size() < most_measured) {
      lines_.push_back({.what = what_,
                        .source = *source,
                        .columns = columns_,
                        .cells = {words.begin() + 1, words.end()},
                        .line = one.number});
    }
    return true;
  }

  void tell_blocks(writer& to) const {
    for (const auto& one : blocks_) {
      if (one.gb_per_s <= 0 || one.way == direction::device_to_device) {
        continue;
      }
      to.at(one.line);
      const auto gpu =
          to.gpu({.made_by = vendor::nvidia, .index = one.device.value_or(0), .address = {}});
      measured_rate rate;
      rate.way = one.way;
      rate.host = one.host;
      if (gpu) {
        rate.gpu = to.machine().gpus[*gpu].index;
        const auto title = titles_.find(one.device.value_or(0));
        to.identify(*gpu, vendor::unknown, title == titles_.end() ? "" : title->second);
      }
      rate.node = one.node;
      rate.gb_per_s = one.gb_per_s;
      to.say().measured(std::move(rate));
    }
  }

  // GPUs have an address. The others are CPUs, which count like the NUMA nodes.
  void name_devices(writer& to) {
    std::vector<gpu_name> names;
    std::vector<const tool_device*> which;
    std::uint32_t nodes = 0;
    places_.assign(most_tool_devices, std::nullopt);
    for (const auto& one : devices_) {
      if (places_[one.number]) {
        continue;  // the output of another machine, or the same twice
      }
      places_[one.number] = place{place_kind::numa_node, one.address.empty() ? nodes++ : 0};
      if (!one.address.empty()) {
        names.push_back({.made_by = vendor::amd, .index = {}, .address = one.address});
        which.push_back(&one);
      }
    }
    if (!which.empty()) {
      to.at(which.front()->line);
    }
    const auto gpus = to.gpus_at(names);
    for (std::size_t index = 0; index < which.size(); ++index) {
      auto& place_of = places_[which[index]->number];
      place_of.reset();
      if (index < gpus.size()) {
        to.at(which[index]->line);
        to.identify(gpus[index], vendor::unknown, which[index]->title);
        place_of = place{place_kind::gpu, static_cast<std::uint32_t>(gpus[index])};
      }
    }
  }

  void tell_matrix_line(writer& to, const matrix_line& one) const {
    if (one.cells.size() != one.columns.size()) {
      to.problem(fmt::format("{} cells for {} columns: the row is left out", one.cells.size(),
                             one.columns.size()));
      return;
    }
    for (std::size_t index = 0; index < one.cells.size(); ++index) {
      const auto source = place_of(one.source);
      const auto target = place_of(one.columns[index]);
      if (source && target && *source != *target && one.cells[index] != "N/A") {
        tell_cell(to, one.what, *source, *target, one.cells[index]);
      }
    }
  }

  [[nodiscard]] std::optional<place> place_of(std::uint32_t number) const {
    return number < places_.size() ? places_[number] : std::nullopt;
  }

  static void tell_cell(writer& to, matrix_of what, const place& source, const place& target,
                        std::string_view cell) {
    if (what == matrix_of::access) {
      if (cell == "1" && source.kind == place_kind::gpu && target.kind == place_kind::gpu) {
        static_cast<void>(to.link(source, target));
      }
      return;
    }
    if (what == matrix_of::weights) {
      tell_peer_fact(to, to.link(source, target), peer_fact::weight, cell, "two", "devices");
      return;
    }
    const auto rate = decimal_in(cell);
    if (!rate) {
      to.problem(fmt::format("\"{}\" is no rate; left out", text::shorten(cell, 20)));
    } else if (*rate > 0) {
      to.say().measured(rate_between(to, source, target, what, *rate));
    }
  }

  // The tool takes page-locked memory.
  static measured_rate rate_between(writer& to, const place& source, const place& target,
                                    matrix_of what, double gb_per_s) {
    measured_rate rate;
    rate.ways =
        what == matrix_of::both_ways ? machine::traffic::both_ways : machine::traffic::one_way;
    const auto index_of = [&](const place& gpu) { return to.machine().gpus[gpu.id].index; };
    const bool from_gpu = source.kind == place_kind::gpu;
    const bool to_gpu = target.kind == place_kind::gpu;
    rate.gb_per_s = gb_per_s;
    rate.way = from_gpu && to_gpu ? direction::peer_to_peer
               : to_gpu           ? direction::host_to_device
               : from_gpu         ? direction::device_to_host
                                  : direction::host_to_host;
    rate.host = from_gpu && to_gpu ? memory_kind::device : memory_kind::pinned;
    if (from_gpu || to_gpu) {
      rate.gpu = index_of(from_gpu ? source : target);
    }
    if (from_gpu && to_gpu) {
      rate.peer = index_of(target);
    } else {
      rate.node = from_gpu ? target.id : source.id;
    }
    return rate;
  }

  std::optional<std::uint32_t> node_;
  std::optional<std::uint32_t> test_device_;
  bool is_inside_ = false;
  double per_gb_ = 1000.0;
  std::vector<block> blocks_;
  std::map<std::uint32_t, std::string> titles_;  // of bandwidthTest's devices
  std::vector<tool_device> devices_;
  matrix_of what_ = matrix_of::nothing;
  std::vector<std::uint32_t> columns_;
  std::vector<matrix_line> lines_;
  std::vector<std::optional<place>> places_;
};

}  // namespace

std::unique_ptr<reader> make_bandwidth_reader() {
  return std::make_unique<bandwidth_reader>();
}

}  // namespace berth::topology::paste
