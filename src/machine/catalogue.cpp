// SPDX-License-Identifier: Apache-2.0
// The embedded models, and finding one by the many spellings of a GPU's name.
#include "machine/catalogue.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text.hpp"
#include "machine/embedded_models.hpp"
#include "machine/hardware_facts.hpp"
#include "machine/hardware_reader.hpp"

namespace berth::machine {
namespace {

using namespace std::string_view_literals;

using words = std::vector<std::string>;

// Words of makers and product lines: printed by one tool and left out by the next.
constexpr std::array marketing_words{"amd"sv,    "ati"sv,   "nvidia"sv,  "instinct"sv,
                                     "radeon"sv, "tesla"sv, "geforce"sv, "tm"sv,
                                     "r"sv,      "gpu"sv,   "series"sv,  "graphics"sv};

// Variants that share a card's name but not its link or memory.
constexpr std::array other_hardware{"laptop"sv, "mobile"sv, "max-q"sv, "mig"sv, "vgpu"sv};

constexpr bool is_word_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_marketing(std::string_view word) {
  return std::find(marketing_words.begin(), marketing_words.end(), word) != marketing_words.end();
}

// "NVIDIA A100-SXM4-80GB" is {a100, sxm4, 80gb}.
words words_of(std::string_view name) {
  words all;
  std::string word;
  const auto finish = [&] {
    if (!word.empty() && !is_marketing(word)) {
      all.push_back(word);
    }
    word.clear();
  };
  for (const char c : text::to_lower(name)) {
    if (is_word_character(c)) {
      word += c;
    } else {
      finish();
    }
  }
  finish();
  return all;
}

// The words of `part` stand in `all` in a row: lspci puts a code name before the product.
bool contains_in_a_row(const words& all, const words& part) {
  return !part.empty() &&
         std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

// Parses the embedded files; a file that extends another one parses that first.
class embedded_parser {
public:
  const model* find(std::string_view name) {
    const auto found = parsed_.find(name);
    if (found != parsed_.end()) {
      return &found->second;
    }
    const auto file = fmt::format("{}.json", name);
    for (const auto& embedded : embedded_models()) {
      if (embedded.file == file && !is_being_parsed(name)) {
        return &parse(std::string(name), embedded);
      }
    }
    return nullptr;
  }

  std::vector<model> all() {
    std::vector<model> sorted;
    for (const auto& embedded : embedded_models()) {
      const auto name = embedded.file.substr(0, embedded.file.rfind('.'));
      if (const auto* const one = find(name)) {
        sorted.push_back(*one);
      }
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const model& a, const model& b) { return a.name < b.name; });
    return sorted;
  }

private:
  bool is_being_parsed(std::string_view name) const {
    return std::find(open_.begin(), open_.end(), name) != open_.end();
  }

  const model& parse(std::string name, const embedded_model& embedded) {
    open_.push_back(name);
    // No suggestions: they would ask the catalogue that is being built.
    auto read =
        try_parse_model(embedded.text, embedded.file,
                        {.find = [this](std::string_view base) { return find(base); },
                         .suggest = [](std::string_view) { return std::vector<std::string>{}; }});
    open_.pop_back();
    if (!read) {
      throw_error(
          error(errc::internal, "an embedded model does not parse", read.error().to_string()));
    }
    return parsed_.emplace(std::move(name), std::move(*read)).first->second;
  }

  std::map<std::string, model, std::less<>> parsed_;
  std::vector<std::string> open_;
};

const std::vector<model>& models() {
  static const std::vector<model> all = embedded_parser().all();
  return all;
}

// How many letters differ (Levenshtein), for suggestions.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t column = 0; column <= b.size(); ++column) {
    row[column] = column;
  }
  for (std::size_t line = 1; line <= a.size(); ++line) {
    std::size_t diagonal = std::exchange(row[0], line);
    for (std::size_t column = 1; column <= b.size(); ++column) {
      const std::size_t replaced = diagonal + (a[line - 1] == b[column - 1] ? 0U : 1U);
      diagonal = row[column];
      row[column] = std::min({replaced, row[column] + 1, row[column - 1] + 1});
    }
  }
  return row.back();
}

std::string joined(std::string_view name) {
  return fmt::format("{}", fmt::join(words_of(name), ""));
}

// Nothing where the two are too different to be a slip.
std::optional<std::size_t> likeness(std::string_view wanted, const model& candidate) {
  const auto typed = joined(wanted);
  const auto known = joined(candidate.name);
  const auto distance = edits_between(typed, known);
  const bool contained = typed.size() >= 3 && (typed.find(known) != std::string::npos ||
                                               known.find(typed) != std::string::npos);
  if (contained) {
    return 0;
  }
  return !typed.empty() && distance <= std::max<std::size_t>(1, known.size() / 3)
             ? std::optional(distance)
             : std::nullopt;
}

provenance not_from_here(provenance known) noexcept {
  return known == provenance::measured ? provenance::nominal : known;
}

// Memory operations whose bytes go over the link to the host.
struct link_operation {
  operation what;
  direction way;
};
constexpr std::array link_operations{
    link_operation{operation::managed_touch_by_device, direction::host_to_device},
    link_operation{operation::managed_touch_by_host, direction::device_to_host},
    link_operation{operation::managed_prefetch_to_device, direction::host_to_device},
    link_operation{operation::managed_prefetch_to_host, direction::device_to_host},
    link_operation{operation::managed_remote_read, direction::host_to_device},
    link_operation{operation::managed_remote_write, direction::device_to_host},
    link_operation{operation::zero_copy_read, direction::host_to_device},
    link_operation{operation::zero_copy_write, direction::device_to_host},
};

// With a link of that share of the rate. What the CPU limits stays as it is, up to what the link
// carries then.
machine_profile on_a_lesser_link(const machine_profile& full, std::string name, double share,
                                 const std::string& note) {
  std::vector<path_cost> paths(full.paths().begin(), full.paths().end());
  const auto carried = [&](direction way) -> std::optional<double> {
    const auto pinned =
        full.lookup({.way = way, .host = memory_kind::pinned, .by = engine::dma, .traits = {}});
    return pinned ? std::optional(pinned->device_time.large_gb_per_s() * share) : std::nullopt;
  };
  for (auto& row : paths) {
    const bool has_host =
        row.where.way == direction::host_to_device || row.where.way == direction::device_to_host;
    if (const auto most = has_host ? carried(row.where.way) : std::nullopt) {
      const double slower = std::max(1.0, row.device_time.large_gb_per_s() / *most);
      row.device_time = row.device_time.with_rate_divided_by(slower);
    }
    if (has_host) {
      row.known = provenance::modelled;
      row.source += note;
    }
  }
  std::vector<operation_cost> operations(full.operations().begin(), full.operations().end());
  for (auto& row : operations) {
    const auto* const crossing =
        std::find_if(link_operations.begin(), link_operations.end(),
                     [&](const link_operation& one) { return one.what == row.what; });
    const auto most =
        crossing != link_operations.end() ? carried(crossing->way) : std::optional<double>();
    if (most && row.time.large_gb_per_s() > *most) {
      row.time = row.time.with_rate_divided_by(row.time.large_gb_per_s() / *most);
      row.known = provenance::modelled;
      row.source += note;
    }
  }
  std::vector<named_quantity> quantities(full.quantities().begin(), full.quantities().end());
  for (auto& row : quantities) {
    if (row.what == quantity::host_link_gb_per_s ||
        row.what == quantity::host_bidirectional_gb_per_s) {
      row.number.value *= share;
      row.number.known = provenance::modelled;
      row.number.source += note;
    }
  }
  return {std::move(name), std::move(paths), std::move(operations), std::move(quantities)};
}

}  // namespace

std::span<const model> catalogue() {
  return models();
}

const model* find_by_name(std::string_view short_name) {
  const auto wanted = text::to_lower(text::trim(short_name));
  for (const auto& one : models()) {
    if (one.name == wanted) {
      return &one;
    }
  }
  return nullptr;
}

const model* find_by_device_name(std::string_view device_name) {
  const auto wanted = words_of(device_name);
  if (std::any_of(other_hardware.begin(), other_hardware.end(), [&](std::string_view variant) {
        return contains_in_a_row(wanted, words_of(variant));
      })) {
    return nullptr;
  }
  const model* best = nullptr;
  std::size_t most_words = 0;
  for (const auto& one : models()) {
    for (const auto& name : one.device_names) {
      const auto known = words_of(name);
      if (known.size() > most_words && contains_in_a_row(wanted, known)) {
        most_words = known.size();
        best = &one;
      }
    }
  }
  return best;
}

std::vector<std::string> close_names(std::string_view name) {
  constexpr std::size_t longest_name = 128;
  if (name.size() > longest_name) {
    return {};
  }
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const auto& one : models()) {
    if (const auto distance = likeness(name, one)) {
      found.emplace_back(*distance, one.name);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  constexpr std::size_t most = 3;
  for (std::size_t index = 0; index < std::min(most, found.size()); ++index) {
    names.push_back(found[index].second);
  }
  return names;
}

result<model> try_get_model(std::string_view short_name) {
  if (const auto* const found = find_by_name(short_name)) {
    return *found;
  }
  const auto close = close_names(short_name);
  std::vector<std::string> all;
  for (const auto& one : models()) {
    all.push_back(one.name);
  }
  return error(errc::usage, fmt::format("no machine model '{}'", text::printable(short_name)), {},
               close.empty() ? fmt::format("known: {}", fmt::join(all, ", "))
                             : fmt::format("close: {}", fmt::join(close, ", ")));
}

machine_profile nominal_profile(const model& of) {
  std::vector<path_cost> paths(of.profile.paths().begin(), of.profile.paths().end());
  for (auto& row : paths) {
    row.known = not_from_here(row.known);
    if (row.call_overhead_ns) {
      row.call_overhead_ns->known = not_from_here(row.call_overhead_ns->known);
    }
  }
  std::vector<operation_cost> operations(of.profile.operations().begin(),
                                         of.profile.operations().end());
  for (auto& row : operations) {
    row.known = not_from_here(row.known);
  }
  std::vector<named_quantity> quantities(of.profile.quantities().begin(),
                                         of.profile.quantities().end());
  for (auto& row : quantities) {
    row.number.known = not_from_here(row.number.known);
  }
  return {of.name, std::move(paths), std::move(operations), std::move(quantities)};
}

machine_profile nominal_profile(const model& of, const pcie_link& link) {
  auto full = nominal_profile(of);
  const auto can = of.hardware.gpus.size() == 1 ? pcie_gb_per_s(of.hardware.gpus.front().host_link)
                                                : std::optional<double>();
  const auto has = pcie_gb_per_s(link);
  if (!can || !has || *has >= *can) {
    return full;
  }
  return on_a_lesser_link(full, full.name(), *has / *can,
                          fmt::format("; scaled to {} GT/s x{}",
                                      pcie_speed_of(link.generation.value_or(0)), *link.width));
}

std::optional<machine_profile> generic_profile(std::uint32_t pcie_generation,
                                               std::uint32_t pcie_width) {
  constexpr std::uint32_t full_width = 16;
  const auto* const full = find_by_name(fmt::format("pcie{}", pcie_generation));
  const bool real_width = is_pcie_width(pcie_width) && pcie_width <= full_width;
  if (full == nullptr || !real_width) {
    return std::nullopt;
  }
  auto profile = nominal_profile(*full);
  if (pcie_width == full_width) {
    return profile;
  }
  return on_a_lesser_link(profile, fmt::format("pcie{}-x{}", pcie_generation, pcie_width),
                          static_cast<double>(pcie_width) / full_width,
                          fmt::format("; scaled to {} of 16 lanes", pcie_width));
}

}  // namespace berth::machine
