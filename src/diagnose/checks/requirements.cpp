// SPDX-License-Identifier: Apache-2.0
#include "diagnose/checks/requirements.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "core/text.hpp"
#include "diagnose/checks/values.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

struct judgement {
  fulfilment is;
  std::string found;
};

error wrong_requirement(std::string_view text, std::string_view why, std::string hint) {
  return error(errc::usage, fmt::format("\"{}\" {}", text::printable(text::shorten(text, 60)), why),
               "--require", std::move(hint));
}

// "gen4x16", "gen4", "x16".
std::optional<machine::pcie_link> link_wanted(std::string_view text) {
  machine::pcie_link link;
  if (text.starts_with("gen")) {
    const auto end = std::min(text.find('x'), text.size());
    link.generation = text::whole_number<std::uint32_t>(text.substr(3, end - 3));
    if (machine::pcie_speed_of(link.generation.value_or(0)).empty()) {
      return std::nullopt;
    }
    text.remove_prefix(end);
  }
  if (text.starts_with('x')) {
    link.width = text::whole_number<std::uint32_t>(text.substr(1));
    if (!link.width || !machine::is_pcie_width(*link.width)) {
      return std::nullopt;
    }
    text = {};
  }
  return text.empty() && (link.generation || link.width) ? std::optional(link) : std::nullopt;
}

std::optional<std::uint32_t> count_wanted(std::string_view text) {
  constexpr std::uint32_t most = 1024;
  const auto count = text::whole_number<std::uint32_t>(text);
  return count && *count > 0 && *count <= most ? count : std::nullopt;
}

std::optional<bytes_t> bytes_wanted(std::string_view text) {
  const auto bytes = try_parse_bytes(text);
  return bytes && *bytes > 0 ? std::optional(*bytes) : std::nullopt;
}

std::optional<verdict> verdict_wanted(std::string_view text) {
  for (const auto one : {verdict::normal, verdict::unknown, verdict::limit}) {
    if (to_string(one) == text) {
      return one;
    }
  }
  return std::nullopt;
}

judgement judge_gpus(std::string_view wanted, const machine::survey& seen) {
  const auto there = seen.machine.gpus.size();
  return {there >= *count_wanted(wanted) ? fulfilment::met : fulfilment::failed,
          fmt::format("{} {} seen", there, there == 1 ? "GPU was" : "GPUs were")};
}

// Asks each GPU; `judge_one` gives what one GPU has where it is less than wanted, "" where it is
// not, and nothing where it is not known.
template <typename Judge>
judgement judge_each(const machine::survey& seen, Judge judge_one) {
  const auto& gpus = seen.machine.gpus;
  std::vector<std::uint32_t> untold;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    const std::optional<std::string> less = judge_one(position);
    if (!less) {
      untold.push_back(gpus[position].index);
    } else if (!less->empty()) {
      return {fulfilment::failed, fmt::format("GPU {} has {}", gpus[position].index, *less)};
    }
  }
  if (gpus.empty()) {
    return {fulfilment::unknown, "no GPU was seen"};
  }
  return untold.empty() ? judgement{fulfilment::met, "each GPU has it"}
                        : judgement{fulfilment::unknown,
                                    fmt::format("of {} it is not in the input", gpu_names(untold))};
}

judgement judge_link(std::string_view wanted, const machine::survey& seen) {
  const auto least = *link_wanted(wanted);
  return judge_each(seen, [&](std::size_t position) -> std::optional<std::string> {
    const auto link = host_link_of(seen, position);
    if (!link) {
      return std::nullopt;
    }
    const bool enough = *link->generation >= least.generation.value_or(0) &&
                        *link->width >= least.width.value_or(0);
    return enough ? std::string() : fmt::format("a link of {}", link_text(*link));
  });
}

// Firmware keeps some of what a model has.
judgement judge_memory(std::string_view wanted, const machine::survey& seen) {
  const auto least = *bytes_wanted(wanted);
  return judge_each(seen, [&](std::size_t position) -> std::optional<std::string> {
    const auto& memory = seen.machine.gpus[position].memory;
    if (!memory) {
      return std::nullopt;
    }
    return *memory >= least ? std::string() : fmt::format("{} of memory", format_bytes(*memory));
  });
}

struct value_requirement {
  std::string_view name;
  std::string_view takes;  // for the hint
  bool (*is_valid)(std::string_view);
  judgement (*judge)(std::string_view, const machine::survey&);
};
constexpr std::array value_requirements{
    value_requirement{"gpus", "the number of GPUs that there are at least: gpus=8",
                      [](std::string_view text) { return count_wanted(text).has_value(); },
                      judge_gpus},
    value_requirement{"link", "what each GPU's link gives at least: link=gen4x16, gen4 or x16",
                      [](std::string_view text) { return link_wanted(text).has_value(); },
                      judge_link},
    value_requirement{"memory", "the memory that each GPU has at least: memory=64GiB",
                      [](std::string_view text) { return bytes_wanted(text).has_value(); },
                      judge_memory},
};

const value_requirement* find_value(std::string_view name) {
  const auto* const found = std::ranges::find(value_requirements, name, &value_requirement::name);
  return found == value_requirements.end() ? nullptr : found;
}

judgement judge_check(const requirement& what, const checkup& found) {
  std::optional<verdict> worst;
  std::string headline;
  for (const auto& one : found.results) {
    if (one.check == what.name && (!worst || one.verdict > *worst)) {
      worst = one.verdict;
      headline = one.headline;
    }
  }
  if (!worst) {
    return {fulfilment::met, "the check has nothing to look at here"};
  }
  if (*worst <= *verdict_wanted(what.wanted)) {
    return {fulfilment::met, headline};
  }
  return {*worst == verdict::unknown ? fulfilment::unknown : fulfilment::failed,
          fmt::format("{}: {}", to_string(*worst), headline)};
}

std::string all_names() {
  std::string names;
  for (const auto& one : value_requirements) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  }
  for (const auto& one : checks()) {
    names += fmt::format(", {}", one.id);
  }
  return names;
}

}  // namespace

std::string_view to_string(fulfilment value) noexcept {
  constexpr std::array<std::string_view, 3> names{"met", "failed", "unknown"};
  return names[static_cast<std::size_t>(value)];
}

result<requirement> parse_requirement(std::string_view text) {
  text = text::trim(text);
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return wrong_requirement(text, "is no NAME=VALUE", "--require link=gen4x16");
  }
  requirement made{std::string(text::trim(text.substr(0, equals))),
                   std::string(text::trim(text.substr(equals + 1)))};
  if (const auto* const value = find_value(made.name)) {
    if (!value->is_valid(made.wanted)) {
      return wrong_requirement(text,
                               fmt::format("has a value that \"{}\" does not take", made.name),
                               fmt::format("it takes {}", value->takes));
    }
    return made;
  }
  if (find_check(made.name) == nullptr) {
    return wrong_requirement(text, "names nothing that can be required",
                             fmt::format("known: {}", all_names()));
  }
  if (!verdict_wanted(made.wanted)) {
    return wrong_requirement(text, "has no verdict that a check may be held to",
                             "the worst that is accepted: normal, unknown or limit");
  }
  return made;
}

result<std::vector<requirement>> parse_requirements(std::string_view text,
                                                    const std::string& file) {
  std::vector<requirement> all;
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text::trim(text.substr(0, std::min(end, text.find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) {
      continue;
    }
    auto one = parse_requirement(line);
    if (!one) {
      return error(one.error().code(), one.error().message(),
                   fmt::format("{}, line {}", file, number), one.error().hint());
    }
    all.push_back(*std::move(one));
  }
  if (all.empty()) {
    return error(errc::usage, "it requires nothing", file, "one NAME=VALUE a line: link=gen4x16");
  }
  return all;
}

requirement_result examine(const requirement& what, const machine::survey& seen,
                           const checkup& found) {
  const auto* const value = find_value(what.name);
  auto [is, text] = value != nullptr ? value->judge(what.wanted, seen) : judge_check(what, found);
  return {what, is, std::move(text)};
}

}  // namespace berth::diagnose
