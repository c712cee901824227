// SPDX-License-Identifier: Apache-2.0
#include "topology/paste/words.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth::topology::paste {
namespace {

using machine::xnack_ability;

constexpr std::uint64_t most_cpus = 1 << 14;

struct isa_ability {
  std::string_view isa;
  xnack_ability can;
};
// That a code object can be built for XNACK does not mean that the driver offers it: it does so
// per process from MI200 on.
constexpr std::array isa_abilities = {
    isa_ability{"gfx900", xnack_ability::boot_parameter},
    isa_ability{"gfx902", xnack_ability::boot_parameter},
    isa_ability{"gfx904", xnack_ability::boot_parameter},
    isa_ability{"gfx906", xnack_ability::boot_parameter},
    isa_ability{"gfx908", xnack_ability::boot_parameter},
    isa_ability{"gfx909", xnack_ability::boot_parameter},
    isa_ability{"gfx90c", xnack_ability::boot_parameter},
    isa_ability{"gfx90a", xnack_ability::per_process},
    isa_ability{"gfx940", xnack_ability::per_process},
    isa_ability{"gfx941", xnack_ability::per_process},
    isa_ability{"gfx942", xnack_ability::per_process},
    isa_ability{"gfx950", xnack_ability::per_process},
};

struct speed_generation {
  std::string_view speed;  // GT/s
  std::uint32_t generation;
};
constexpr std::array speeds = {
    speed_generation{"2.5", 1},  speed_generation{"5", 2},    speed_generation{"5.0", 2},
    speed_generation{"8", 3},    speed_generation{"8.0", 3},  speed_generation{"16", 4},
    speed_generation{"16.0", 4}, speed_generation{"32", 5},   speed_generation{"32.0", 5},
    speed_generation{"64", 6},   speed_generation{"64.0", 6},
};
constexpr std::array<std::uint64_t, 6> widths = {1, 2, 4, 8, 16, 32};

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool same(char a, char b) noexcept {
  return lower(a) == lower(b);
}

std::optional<std::uint64_t> whole(std::string_view digits, int base) noexcept {
  std::uint64_t number = 0;
  const auto* end = digits.data() + digits.size();
  const auto [rest, failure] = std::from_chars(digits.data(), end, number, base);
  return failure == std::errc{} && rest == end && !digits.empty() ? std::optional(number)
                                                                  : std::nullopt;
}

// The hexadecimal digits at the begin of `text`, which are taken from it.
std::optional<std::uint32_t> take_hex(std::string_view& text, std::size_t most) noexcept {
  const auto count = std::min(text.find_first_not_of("0123456789abcdefABCDEF"), text.size());
  if (count == 0 || count > most) {
    return std::nullopt;
  }
  const auto number = whole(text.substr(0, count), 16);
  text.remove_prefix(count);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

bool take(std::string_view& text, char wanted) noexcept {
  if (text.empty() || text.front() != wanted) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  std::vector<std::string_view> words;
  for (auto at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::optional<std::uint64_t> number_in(std::string_view text) noexcept {
  text = text::trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return whole(text.substr(2), 16);
  }
  return whole(text, 10);
}

std::optional<std::uint64_t> leading_number(std::string_view text) noexcept {
  const auto* const end = std::ranges::find_if_not(text, is_digit);
  return whole(text.substr(0, static_cast<std::size_t>(end - text.begin())), 10);
}

std::optional<std::uint32_t> index_after(std::string_view prefix, std::string_view text) noexcept {
  if (text.size() <= prefix.size() ||
      !std::ranges::equal(text.substr(0, prefix.size()), prefix, same)) {
    return std::nullopt;
  }
  text.remove_prefix(prefix.size());
  const bool has_bracket = text.front() == '[' || text.front() == ' ';
  const auto number = leading_number(text.substr(has_bracket ? 1 : 0));
  return number && *number <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*number))
                                         : std::nullopt;
}

std::optional<key_value> key_value_of(std::string_view text) noexcept {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  auto value = text.substr(colon + 1);
  if (value.starts_with(':')) {  // "SDMA engine uCode::"
    value.remove_prefix(1);
  }
  return key_value{text::trim(text.substr(0, colon)), text::trim(value)};
}

bool is_nearly(std::string_view text, std::string_view wanted) noexcept {
  if (text.size() > wanted.size() + 1 || wanted.size() > text.size() + 1) {
    return false;
  }
  std::size_t alike = 0;
  while (alike < std::min(text.size(), wanted.size()) && same(text[alike], wanted[alike])) {
    ++alike;
  }
  const auto rest = text.substr(alike);
  const auto other = wanted.substr(alike);
  if (rest.empty() || other.empty()) {
    return true;
  }
  return std::ranges::equal(rest.substr(rest.size() >= other.size() ? 1 : 0),
                            other.substr(other.size() >= rest.size() ? 1 : 0), same);
}

std::string pci_address_in(std::string_view text) {
  text = text::trim(text);
  auto first = take_hex(text, 8);
  if (!first || !take(text, ':')) {
    return {};
  }
  auto second = take_hex(text, 2);
  std::uint32_t domain = 0;
  if (second && take(text, ':')) {
    domain = *first;
    first = second;
    second = take_hex(text, 2);
  }
  if (!second || !take(text, '.')) {
    return {};
  }
  const auto function = take_hex(text, 1);
  if (!function || !text.empty() || *first > 0xff || *second > 0x1f || *function > 7) {
    return {};
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, *first, *second, *function);
}

std::optional<std::vector<std::uint32_t>> cpu_list_in(std::string_view text) {
  std::vector<std::uint32_t> cpus;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const auto part = text::trim(text.substr(0, end));
    const auto dash = std::min(part.find('-'), part.size());
    const auto first = whole(part.substr(0, dash), 10);
    const auto last = dash == part.size() ? first : whole(part.substr(dash + 1), 10);
    if (!first || !last || *first > *last || *last >= most_cpus || cpus.size() > most_cpus) {
      return std::nullopt;
    }
    for (auto cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(static_cast<std::uint32_t>(cpu));
    }
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return cpus.empty() ? std::nullopt : std::optional(std::move(cpus));
}

std::string print_cpus(const std::vector<std::uint32_t>& cpus) {
  std::string printed;
  for (std::size_t at = 0; at < cpus.size();) {
    auto end = at + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) {
      ++end;
    }
    printed += printed.empty() ? "" : ",";
    printed +=
        end - at == 1 ? fmt::format("{}", cpus[at]) : fmt::format("{}-{}", cpus[at], cpus[end - 1]);
    at = end;
  }
  return printed;
}

std::optional<std::uint32_t> generation_of(std::string_view speed) noexcept {
  const auto digits =
      speed.substr(0, std::min(speed.find_first_not_of("0123456789."), speed.size()));
  for (const auto& one : speeds) {
    if (one.speed == digits) {
      return one.generation;
    }
  }
  return std::nullopt;
}

bool is_pcie_width(std::uint64_t lanes) noexcept {
  return std::ranges::find(widths, lanes) != widths.end();
}

xnack_ability xnack_ability_of(std::string_view isa) noexcept {
  for (const auto& one : isa_abilities) {
    if (one.isa == isa) {
      return one.can;
    }
  }
  const bool is_graphics =
      isa.starts_with("gfx103") || isa.starts_with("gfx11") || isa.starts_with("gfx12");
  return is_graphics ? xnack_ability::none : xnack_ability::unknown;
}

}  // namespace berth::topology::paste
