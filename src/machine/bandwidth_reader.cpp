// SPDX-License-Identifier: Apache-2.0
#include "machine/bandwidth_reader.hpp"

#include <limits>

#include <fmt/format.h>

#include "machine/json_document.hpp"

namespace berth::machine {
namespace {

constexpr std::string_view results_schema = "berth.bandwidth/1";
constexpr double longest_copy_ns = 1e15;

// "fresh_pages, numa_remote"
trait_set read_trait_list(const json_cursor& at) {
  trait_set all;
  const auto field = at.find("traits");
  std::string_view rest;
  std::string text;
  if (field) {
    // An empty text is no text to the document.
    try {
      text = field->text();
    } catch (const input_error&) {
      return all;
    }
    rest = text;
  }
  while (!rest.empty()) {
    const auto comma = rest.find(", ");
    const auto one = parse_trait(rest.substr(0, comma));
    if (!one) {
      field->fail(fmt::format("no trait is called \"{}\"", rest.substr(0, comma)));
    }
    all = all.with(*one);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 2);
  }
  return all;
}

template <class Value, class Parse>
Value read_word(const json_cursor& at, std::string_view field, Parse parse) {
  const auto found = at.at(field);
  const auto value = parse(found.text());
  if (!value) {
    found.fail(fmt::format("\"{}\" is no {}", found.text(), field));
  }
  return *value;
}

bandwidth_figure read_figure(const json_cursor& at) {
  bandwidth_figure made;
  made.device = static_cast<int>(at.at("device").integer(0, 1024));
  made.where.way = read_word<direction>(at, "direction", parse_direction);
  made.where.host = read_word<memory_kind>(at, "host_memory", parse_memory_kind);
  made.where.by = read_word<engine>(at, "engine", parse_engine);
  made.where.traits = read_trait_list(at);
  made.bytes = at.at("bytes").integer(1, std::numeric_limits<std::uint64_t>::max());
  if (const auto why = at.find("not_measured")) {
    made.why_not = why->text();
    return made;
  }
  statistics::summary times{};
  times.median = at.at("median_ns").number(0, longest_copy_ns);
  times.p5 = at.at("p5_ns").number(0, longest_copy_ns);
  times.p95 = at.at("p95_ns").number(0, longest_copy_ns);
  times.count = at.at("samples").integer(1, std::numeric_limits<std::uint32_t>::max());
  if (times.p5 > times.p95) {
    at.fail("the 5th percentile is above the 95th", errc::input_out_of_range);
  }
  made.ns = times;
  return made;
}

bandwidth_results read_results(const json_cursor& root) {
  if (root.at("schema").text() != results_schema) {
    root.at("schema").fail(fmt::format("not {}", results_schema));
  }
  bandwidth_results made;
  made.runtime = root.at("runtime").text();
  for (const auto& one : root.at("devices").items()) {
    made.devices.push_back(
        {static_cast<int>(one.at("index").integer(0, 1024)), one.at("name").text(), std::string()});
  }
  for (const auto& one : root.at("figures").items()) {
    made.figures.push_back(read_figure(one));
  }
  return made;
}

}  // namespace

result<bandwidth_results> try_parse_bandwidth(std::string_view text, std::string_view file) {
  try {
    const json_document document(text, file);
    return read_results(document.root());
  } catch (const input_error& wrong) {
    return wrong.details();
  }
}

}  // namespace berth::machine
