// SPDX-License-Identifier: Apache-2.0
#include "topology/live_reader.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth::topology {
namespace {

bool is_hex(std::string_view text) noexcept {
  return text::whole_number<std::uint64_t>(text, 16).has_value();
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  text = text::trim(text);
  return text.starts_with("0x") ? text::whole_number<std::uint64_t>(text.substr(2), 16)
                                : text::whole_number<std::uint64_t>(text, 10);
}

std::string pci_address_of(std::uint64_t domain, std::uint64_t location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, (location >> 8U) & 0xffU,
                     (location >> 3U) & 0x1fU, location & 7U);
}

bool is_pci_address(std::string_view text) noexcept {
  const auto colon = text.find(':');
  return colon != std::string_view::npos && colon >= 4 && text.size() == colon + 8 &&
         text[colon + 3] == ':' && text[colon + 6] == '.' && is_hex(text.substr(0, colon)) &&
         is_hex(text.substr(colon + 1, 2)) && is_hex(text.substr(colon + 4, 2)) &&
         is_hex(text.substr(colon + 7));
}

std::uint64_t value_of(const properties& from, std::string_view name) {
  const auto found = from.find(name);
  return found == from.end() ? 0 : found->second;
}

std::string gpu_field(std::size_t index, std::string_view name) {
  return fmt::format("gpus[{}].{}", index, name);
}

std::string isa_of(std::uint64_t version) {
  if (version == 0) {
    return {};
  }
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

std::optional<std::string> reading::bytes(const std::string& path) {
  const auto& said = files.ask({question_kind::content, path});
  say.reading(path);
  if (said.kind == answer_kind::failed) {
    say.problem(said.text);
  }
  return said.kind == answer_kind::text ? std::optional(said.text) : std::nullopt;
}

std::optional<std::string> reading::text(const std::string& path) {
  auto said = bytes(path);
  if (said) {
    said = std::string(text::trim(*said));
  }
  return said;
}

std::optional<std::int64_t> reading::number(const std::string& path) {
  const auto said = text(path);
  if (!said) {
    return std::nullopt;
  }
  const bool negative = said->starts_with('-');
  const auto value = parse_number(std::string_view(*said).substr(negative ? 1 : 0));
  if (!value || *value > static_cast<std::uint64_t>(INT64_MAX)) {
    say.problem(
        fmt::format("\"{}\" is no number; left out", text::shorten(text::printable(*said), 40)));
    return std::nullopt;
  }
  const auto number = static_cast<std::int64_t>(*value);
  return negative ? -number : number;
}

std::vector<std::string> reading::names(const std::string& folder) {
  const auto& said = files.ask({question_kind::names, folder});
  std::vector<std::string> found;
  if (said.kind == answer_kind::failed) {
    say.reading(folder);
    say.problem(said.text);
  } else {
    for (const auto line : lines_of(said.text)) {
      found.emplace_back(line);
    }
  }
  return found;
}

std::vector<std::uint32_t> reading::numbered(const std::string& folder, std::string_view prefix) {
  std::vector<std::uint32_t> found;
  for (const auto& name : names(folder)) {
    if (name.starts_with(prefix)) {
      if (const auto number =
              text::whole_number<std::uint32_t>(std::string_view(name).substr(prefix.size()), 10)) {
        found.push_back(*number);
      }
    }
  }
  std::ranges::sort(found);
  return found;
}

std::optional<std::string> reading::real(const std::string& path) {
  const auto& said = files.ask({question_kind::real, path});
  if (said.kind == answer_kind::failed) {
    say.reading(path);
    say.problem(said.text);
  }
  return said.kind == answer_kind::text ? std::optional(said.text) : std::nullopt;
}

std::optional<properties> reading::table(const std::string& path) {
  const auto said = text(path);
  if (!said) {
    return std::nullopt;
  }
  properties values;
  for (const auto line : lines_of(*said)) {
    const auto words = text::words(line);
    if (words.size() == 2) {
      if (const auto value = parse_number(words[1])) {
        values.emplace(words[0], *value);
      }
    }
  }
  if (values.empty()) {
    say.problem("no line of it is a name and a number; left out");
    return std::nullopt;
  }
  return values;
}

machine::survey survey_of(machine_files& files, machine::survey_kind kind) {
  machine::survey seen;
  seen.kind = kind;
  reading in{.files = files, .seen = seen};
  read_numa(in);
  read_kfd(in);
  read_pci(in);
  read_nvml(in);
  read_settings(in);
  read_access(in);
  read_xnack(in);
  if (const auto notes = in.text(std::string(added::notes))) {
    for (const auto line : lines_of(*notes)) {
      in.say.reading("this reading");
      in.say.problem(std::string(line));
    }
  }
  return seen;
}

}  // namespace berth::topology
