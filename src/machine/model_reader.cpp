// SPDX-License-Identifier: Apache-2.0
// From the text of a machine file to a model; docs/machine-files.md describes the format.
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "machine/catalogue.hpp"
#include "machine/enum_names.hpp"
#include "machine/hardware_reader.hpp"
#include "machine/json_document.hpp"
#include "machine/model.hpp"

namespace berth::machine {
namespace {

using namespace std::string_view_literals;

constexpr std::array kind_names{"gpu"sv, "node"sv, "link"sv};
constexpr std::string_view schema = "berth.machine/1";

// No machine file needs more; a wrong file that is huge is refused before it is read.
constexpr std::uintmax_t largest_file = 16 * mib;

constexpr double longest_ns = 3.6e12;   // an hour
constexpr double slowest_rate = 1e-6;   // GB/s
constexpr double fastest_rate = 1e6;    // GB/s
constexpr double largest_value = 1e12;  // of a quantity
constexpr std::uint64_t largest_count = 1U << 20U;

struct origin {
  provenance known;
  std::string source;
};

// "sources": {"id": "text"}. A figure names an id.
using source_table = std::map<std::string, std::string>;

origin read_origin(const json_cursor& row, const source_table& sources) {
  const auto known_cursor = row.at("provenance");
  const auto known = read_word(known_cursor, parse_provenance);
  if (known == provenance::unknown) {
    known_cursor.fail("a figure must be measured, nominal or modelled");
  }
  const auto source_cursor = row.at("source");
  const auto found = sources.find(source_cursor.text());
  if (found == sources.end()) {
    source_cursor.fail("no such entry in 'sources'");
  }
  std::string text = found->second;
  if (const auto note = row.find("note")) {
    text += fmt::format(" ({})", note->text());
  }
  return {.known = known, .source = std::move(text)};
}

trait_set read_traits(const json_cursor& row) {
  trait_set all;
  if (const auto list = row.find("traits")) {
    for (const auto& item : list->items()) {
      all = all.with(read_word(item, parse_trait));
    }
  }
  return all;
}

// One observation: a size, and its time or its rate.
cost::knot read_point(const json_cursor& point) {
  point.allow_only({"bytes", "gb_per_s", "ns", "us", "ms"});
  const bytes_t size = point.at("bytes").bytes();
  constexpr std::array<std::pair<std::string_view, double>, 3> time_units{
      {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}}};
  for (const auto& [unit, factor] : time_units) {
    if (const auto time = point.find(unit)) {
      return {.bytes = size, .ns = time->number(0, longest_ns / factor) * factor};
    }
  }
  const double rate = point.at("gb_per_s").number(slowest_rate, fastest_rate);
  return {.bytes = size, .ns = static_cast<double>(size) / rate};
}

cost read_cost(const json_cursor& value) {
  value.allow_only({"a_ns", "gb_per_s", "points"});
  if (const auto points = value.find("points")) {
    std::vector<cost::knot> observed;
    for (const auto& point : points->items()) {
      observed.push_back(read_point(point));
    }
    if (!cost::valid_knots(observed)) {
      points->fail("sizes must ascend and times must not fall", errc::input_out_of_range);
    }
    return cost::through(std::move(observed));
  }
  const double a_ns = value.at("a_ns").number(0, longest_ns);
  const auto rate = value.find("gb_per_s");
  return rate ? cost::linear(a_ns, rate->number(slowest_rate, fastest_rate)) : cost::constant(a_ns);
}

std::optional<figure> read_call_overhead(const json_cursor& row, const origin& from,
                                         const source_table& sources) {
  const auto overhead = row.find("call_overhead_ns");
  if (!overhead) {
    return std::nullopt;
  }
  if (overhead->is_object()) {
    overhead->allow_only({"value", "provenance", "source", "note"});
    const auto own = read_origin(*overhead, sources);
    return figure{overhead->at("value").number(0, longest_ns), own.known, own.source};
  }
  return figure{overhead->number(0, longest_ns), from.known, from.source};
}

path_cost read_path(const json_cursor& row, const source_table& sources) {
  row.allow_only({"direction", "host", "engine", "traits", "parallelism", "cost", "includes_call",
                  "call_overhead_ns", "provenance", "source", "note"});
  path where;
  where.way = read_known_word(row.at("direction"), parse_direction);
  const bool has_host_end =
      where.way != direction::device_to_device && where.way != direction::peer_to_peer;
  where.host =
      has_host_end ? read_known_word(row.at("host"), parse_memory_kind) : memory_kind::device;
  where.by = read_known_word(row.at("engine"), parse_engine);
  where.traits = read_traits(row);
  if (const auto count = row.find("parallelism")) {
    where.parallelism = static_cast<std::uint32_t>(count->integer(1, largest_count));
  }
  auto from = read_origin(row, sources);
  auto overhead = read_call_overhead(row, from, sources);
  auto time = read_cost(row.at("cost"));
  if (const auto includes = row.find("includes_call"); includes && includes->truth()) {
    if (!overhead) {
      includes->fail("needs call_overhead_ns, to tell it from the device time");
    }
    time = time.shifted(-overhead->value);
  }
  return {.where = where,
          .device_time = std::move(time),
          .known = from.known,
          .source = std::move(from.source),
          .call_overhead_ns = std::move(overhead)};
}

operation_cost read_operation(const json_cursor& row, const source_table& sources) {
  row.allow_only({"operation", "traits", "cost", "provenance", "source", "note"});
  auto from = read_origin(row, sources);
  return {.what = read_word(row.at("operation"), parse_operation),
          .traits = read_traits(row),
          .time = read_cost(row.at("cost")),
          .known = from.known,
          .source = std::move(from.source)};
}

named_quantity read_quantity(const json_cursor& row, const source_table& sources) {
  row.allow_only({"quantity", "value", "provenance", "source", "note"});
  auto from = read_origin(row, sources);
  return {.what = read_word(row.at("quantity"), parse_quantity),
          .number = {row.at("value").number(0, largest_value), from.known, std::move(from.source)}};
}

bool same_subject(const path_cost& a, const path_cost& b) {
  return a.where == b.where;
}
bool same_subject(const operation_cost& a, const operation_cost& b) {
  return a.what == b.what && a.traits == b.traits;
}
bool same_subject(const named_quantity& a, const named_quantity& b) {
  return a.what == b.what;
}

// The file's own rows, then those of the model it builds on that it does not replace.
template <typename Row, typename Read>
std::vector<Row> read_rows(const json_cursor& root, std::string_view field,
                           std::span<const Row> inherited, const Read& read) {
  std::vector<Row> rows;
  const auto known = [&rows](const Row& row) {
    return std::any_of(rows.begin(), rows.end(),
                       [&row](const Row& other) { return same_subject(other, row); });
  };
  if (const auto list = root.find(field)) {
    for (const auto& item : list->items()) {
      Row row = read(item);
      if (known(row)) {
        item.fail("the same thing stands here a second time");
      }
      rows.push_back(std::move(row));
    }
  }
  for (const auto& row : inherited) {
    if (!known(row)) {
      rows.push_back(row);
    }
  }
  return rows;
}

source_table read_sources(const json_cursor& root) {
  source_table sources;
  if (const auto all = root.find("sources")) {
    for (const auto& name : all->field_names()) {
      sources.emplace(name, all->at(name).text());
    }
  }
  return sources;
}

std::vector<std::string> read_texts(const json_cursor& root, std::string_view field) {
  std::vector<std::string> all;
  if (const auto list = root.find(field)) {
    for (const auto& item : list->items()) {
      all.push_back(item.text());
    }
  }
  return all;
}

std::string read_short_name(const json_cursor& value) {
  auto name = value.text();
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  if (!plain) {
    value.fail("a short name has lower-case letters, digits, '-', '_' and '.' only");
  }
  return name;
}

const model* read_base(const json_cursor& root, const model_resolver& resolve) {
  const auto extends = root.find("extends");
  if (!extends) {
    return nullptr;
  }
  const auto name = extends->text();
  const auto* const base = resolve.find(name);
  if (base == nullptr) {
    const auto close = resolve.suggest(name);
    extends->fail(fmt::format("no model '{}'", name), errc::input_malformed,
                  close.empty() ? "" : fmt::format("close: {}", fmt::join(close, ", ")));
  }
  return base;
}

void check_schema(const json_cursor& root) {
  const auto named = root.at("schema");
  if (named.text() != schema) {
    named.fail(fmt::format("'{}' is not the format that this berth reads", named.text()),
               errc::input_unknown_format, fmt::format("it reads \"{}\"", schema));
  }
}

model read_model(const json_cursor& root, const model_resolver& resolve) {
  root.allow_only({"schema", "kind", "name", "title", "extends", "device_names", "sources", "gpu",
                   "machine", "paths", "operations", "quantities"});
  check_schema(root);
  const model* const base = read_base(root, resolve);
  const auto sources = read_sources(root);
  model read;
  read.kind = read_word(root.at("kind"), parse_model_kind);
  read.name = read_short_name(root.at("name"));
  read.title = root.at("title").text();
  read.device_names = read_texts(root, "device_names");
  read.hardware = read_hardware(root, read.kind, base);
  read.hardware.name = read.name;
  for (auto& one : read.hardware.gpus) {
    one.model = one.model.empty() ? read.name : one.model;
    one.title = one.title.empty() ? read.title : one.title;
  }
  const machine_profile nothing;
  const auto& inherited = base != nullptr ? base->profile : nothing;
  read.profile = machine_profile(
      read.name,
      read_rows(root, "paths", inherited.paths(),
                [&](const json_cursor& row) { return read_path(row, sources); }),
      read_rows(root, "operations", inherited.operations(),
                [&](const json_cursor& row) { return read_operation(row, sources); }),
      read_rows(root, "quantities", inherited.quantities(),
                [&](const json_cursor& row) { return read_quantity(row, sources); }));
  return read;
}

}  // namespace

std::string_view to_string(model_kind value) noexcept {
  return name_of(kind_names, value);
}
std::optional<model_kind> parse_model_kind(std::string_view text) noexcept {
  return value_of<model_kind>(kind_names, text);
}

result<model> try_parse_model(std::string_view text, std::string_view file,
                              const model_resolver& resolve) {
  try {
    const json_document document(text, file);
    return read_model(document.root(), resolve);
  } catch (const exception& why) {
    return why.details();
  }
}

result<model> try_parse_model(std::string_view text, std::string_view file) {
  return try_parse_model(text, file, {.find = find_by_name, .suggest = close_names});
}

result<model> try_load_model(const std::filesystem::path& file) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed) {
    return error(errc::file_unreadable, failed.message(), file.string());
  }
  if (size > largest_file) {
    return error(errc::input_out_of_range,
                 fmt::format("{} is too large for a machine file", format_bytes(size)),
                 file.string(), fmt::format("at most {}", format_bytes(largest_file)));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.is_open() || stream.bad()) {
    return error(errc::file_unreadable, "cannot be opened or read", file.string());
  }
  return try_parse_model(text, file.string());
}

}  // namespace berth::machine
