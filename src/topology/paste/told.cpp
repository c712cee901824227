// SPDX-License-Identifier: Apache-2.0
// What people write of their machine by hand: rates that they measured, beside those that they hold
// it should reach ("about 70GB/s, but should be about 92GB/s"), and tables of links with a column
// for each step of the way ("Card to switch | Switch to CPU").
#include <algorithm>
#include <array>
#include <optional>
#include <span>
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

constexpr std::size_t most_told = 1 << 12;
constexpr std::uint32_t amd_card_id = 0x1002;

struct number_at {
  double value;
  std::size_t at;
};

// The numbers before "GB/s", in lowered text: "70gb/s", "about 28 gb/s".
std::vector<number_at> rates_in(std::string_view lowered) {
  std::vector<number_at> found;
  for (auto at = lowered.find("gb/s"); at != std::string_view::npos;
       at = lowered.find("gb/s", at + 1)) {
    const auto before = text::trim(lowered.substr(0, at));
    const auto last = before.find_last_not_of("0123456789.");
    const auto begin = last == std::string_view::npos ? 0 : last + 1;
    if (const auto value = decimal_in(before.substr(begin)); value && *value > 0) {
      found.push_back({*value, begin});
    }
  }
  return found;
}

bool has_word(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view one) { return text.find(one) != std::string_view::npos; });
}

constexpr std::array promises = {"should"sv,     "must"sv,        "expect"sv, "document"sv,
                                 "official"sv,   "theoretical"sv, "peak"sv,   "specif"sv,
                                 "advertised"sv, "supposed"sv};
constexpr std::array far_words = {"second numa"sv,  "other numa"sv,   "another numa"sv,
                                  "remote"sv,       "other socket"sv, "different numa"sv,
                                  "second socket"sv};

constexpr std::array host_words = {"cpu"sv, "host"sv, "h2d"sv, "d2h"sv, "htod"sv, "dtoh"sv};
constexpr std::array upload_words = {"h2d"sv, "htod"sv, "host to device"sv, "host to gpu"sv};
constexpr std::array download_words = {"d2h"sv, "dtoh"sv, "device to host"sv, "gpu to host"sv};
constexpr std::array device_words = {"gpu"sv, "device"sv, "h2d"sv, "d2h"sv, "htod"sv, "dtoh"sv};
constexpr std::array verbs = {" is "sv, " get"sv,  "about"sv,  "measure"sv,
                              "only"sv, " got "sv, " reach"sv, " see "sv};

struct told_numbers {
  double measured;
  std::optional<double> promised;
};

// One is what was measured: that with no word of a promise in front of it, which comes first or
// last. Nothing where both or none are promises.
std::optional<told_numbers> numbers_told_in(std::string_view line) {
  const auto numbers = rates_in(line);
  if (numbers.empty() || numbers.size() > 2) {
    return std::nullopt;
  }
  const bool first_is_promise = has_word(line.substr(0, numbers[0].at), promises);
  if (numbers.size() == 1) {
    return first_is_promise ? std::nullopt
                            : std::optional(told_numbers{numbers[0].value, std::nullopt});
  }
  const bool second_is_promise =
      has_word(line.substr(numbers[0].at, numbers[1].at - numbers[0].at), promises);
  if (first_is_promise == second_is_promise) {
    return std::nullopt;
  }
  return first_is_promise ? told_numbers{numbers[1].value, numbers[0].value}
                          : told_numbers{numbers[0].value, numbers[1].value};
}

direction way_told_in(std::string_view line, bool with_host) {
  if (!with_host) {
    return direction::peer_to_peer;
  }
  const bool up = has_word(line, upload_words);
  const bool down = has_word(line, download_words);
  return up == down ? direction::unknown
         : up       ? direction::host_to_device
                    : direction::device_to_host;
}

std::optional<machine::measured_rate> rate_told_in(std::string_view text) {
  const auto lowered = text::to_lower(text);
  const std::string_view line = lowered;
  const auto numbers = numbers_told_in(line);
  if (!numbers || !has_word(line, device_words) || !has_word(line, verbs)) {
    return std::nullopt;
  }
  const auto gpu = std::min(line.find("gpu"), line.size());
  const bool with_host = has_word(line, host_words);
  const bool with_peer = line.find("two gpu") != std::string_view::npos ||
                         line.find("gpus") != std::string_view::npos ||
                         line.find("gpu", gpu + 3) != std::string_view::npos;
  if (!with_host && !with_peer) {
    return std::nullopt;
  }
  machine::measured_rate told;
  told.way = way_told_in(line, with_host);
  told.host = with_host ? memory_kind::unknown : memory_kind::device;
  told.ways = line.find("bidirection") != std::string_view::npos ? machine::traffic::both_ways
                                                                 : machine::traffic::one_way;
  told.host_is = with_host && has_word(line, far_words) ? machine::host_distance::far
                                                        : machine::host_distance::unknown;
  told.gb_per_s = numbers->measured;
  told.promised_gb_per_s = numbers->promised;
  return told;
}

struct told_link {
  machine::pcie_link link;
  setting_state slow = setting_state::unknown;
  setting_state narrow = setting_state::unknown;
};

// "Speed 8GT/s (downgraded), Width x8 (downgraded)", "16.0 GT/s x16"
std::optional<told_link> link_in_cell(std::string_view cell) {
  const auto unit = cell.find("GT/s");
  const auto lanes_at = unit == std::string_view::npos ? unit : cell.find('x', unit);
  if (lanes_at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto before = text::trim(cell.substr(0, unit));
  const auto last = before.find_last_not_of("0123456789.");
  told_link told;
  told.link.generation =
      generation_of(before.substr(last == std::string_view::npos ? 0 : last + 1));
  const auto lanes = leading_number(cell.substr(lanes_at + 1));
  if (lanes && machine::is_pcie_width(*lanes)) {
    told.link.width = static_cast<std::uint32_t>(*lanes);
  }
  const auto is_down = [](std::string_view part) {
    return part.find("downgraded") != std::string_view::npos ? setting_state::on
                                                             : setting_state::unknown;
  };
  told.slow = is_down(cell.substr(unit, lanes_at - unit));
  told.narrow = is_down(cell.substr(lanes_at));
  return told.link.generation && told.link.width ? std::optional(told) : std::nullopt;
}

struct told_card {
  std::string title;
  vendor made_by = vendor::unknown;
  std::vector<told_link> way;  // from the GPU on
  std::uint32_t line = 0;
};

std::vector<std::string_view> cells_of(std::string_view row) {
  std::vector<std::string_view> cells;
  while (!row.empty()) {
    const auto end = std::min(row.find('|'), row.size());
    cells.push_back(text::trim(row.substr(0, end)));
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  return cells;
}

class told_reader final : public reader {
public:
  bool begins(const line& one) override { return take_rate(one) || take_row(one); }
  bool takes(const line& one) override { return begins(one) || is_table_head(one.text); }

  void tells(writer& to) override {
    for (const auto& [rate, line] : rates_) {
      to.at(line);
      to.say().measured(rate);
    }
    for (const auto& one : cards_) {
      to.at(one.line);
      tell_card(to, one);
    }
  }

private:
  struct rate_line {
    machine::measured_rate rate;
    std::uint32_t line;
  };

  bool take_rate(const line& one) {
    if (rates_.size() >= most_told || one.text.size() > 400 ||
        one.text.find("/s") == std::string::npos) {
      return false;
    }
    if (auto told = rate_told_in(one.text)) {
      rates_.push_back({*std::move(told), one.number});
      return true;
    }
    return false;
  }

  static bool is_table_head(std::string_view text) { return text.starts_with("| "); }

  // "| Navi 31 | Speed 16GT/s, Width x16 | Speed 8GT/s (downgraded), Width x8 (downgraded) |"
  bool take_row(const line& one) {
    const std::string_view text = one.text;
    if (!text.starts_with('|') || cards_.size() >= most_told) {
      return false;
    }
    told_card card;
    card.line = one.number;
    for (const auto cell : cells_of(text)) {
      if (const auto told = link_in_cell(cell)) {
        card.way.push_back(*told);
      } else if (card.title.empty() && card.way.empty()) {
        card.title = cell;
      }
    }
    const auto name = text::to_lower(card.title);
    card.made_by = name.find("amd") != std::string::npos      ? vendor::amd
                   : name.find("nvidia") != std::string::npos ? vendor::nvidia
                                                              : vendor::unknown;
    if (card.way.empty() || card.made_by == vendor::unknown) {
      return false;
    }
    cards_.push_back(std::move(card));
    return true;
  }

  // A card with a switch has its GPU, the switch's inner port, and the port to the host.
  static void tell_card(writer& to, const told_card& one) {
    const auto gpu = to.gpu({.made_by = one.made_by, .index = {}, .address = {}});
    if (!gpu) {
      return;
    }
    to.identify(*gpu, vendor::unknown, one.title);
    const bool has_switch = one.way.size() > 1;
    auto& way = to.machine().gpus[*gpu].pci_path;
    way.resize(has_switch ? 3 : 1);
    way[0].port = pci_port::endpoint;
    tell_link(to, *gpu, 0, one.way.front());
    if (has_switch) {
      way[1].port = pci_port::downstream;
      way[2].port = pci_port::upstream;
      if (one.made_by == vendor::amd) {
        way[1].vendor_id = amd_card_id;
        way[2].vendor_id = amd_card_id;
      }
      tell_link(to, *gpu, 2, one.way.back());
    }
    to.pcie(fmt::format("gpus[{}].trained_link", *gpu), to.machine().gpus[*gpu].trained_link,
            one.way.back().link);
  }

  static void tell_link(writer& to, std::size_t gpu, std::size_t position, const told_link& told) {
    auto& slot = to.machine().gpus[gpu].pci_path[position];
    to.pcie(fmt::format("gpus[{}].pci_path[{}].trained", gpu, position), slot.trained, told.link);
    slot.speed_downgraded = told.slow;
    slot.width_downgraded = told.narrow;
  }

  std::vector<rate_line> rates_;
  std::vector<told_card> cards_;
};

}  // namespace

std::unique_ptr<reader> make_told_reader() {
  return std::make_unique<told_reader>();
}

}  // namespace berth::topology::paste
