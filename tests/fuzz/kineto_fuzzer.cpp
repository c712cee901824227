// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file for `berth analyze`: imported, diagnosed and rendered. Beside the sanitizers'
// checks these must hold: nothing throws, an error says which file, nothing is counted that is not
// in the file, and the JSON report is JSON.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "diagnose/diagnosis.hpp"
#include "report/model.hpp"
#include "report/render.hpp"
#include "trace/import/byte_source.hpp"
#include "trace/import/import.hpp"

namespace {

namespace trace = berth::trace;

constexpr std::string_view name = "fuzzed.json";
// Compressed input can be a bomb: what matters is found in less, and the rest is time.
constexpr std::size_t largest_text = 1 << 20;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

// The content as the importer sees it, or as much of it as is worth looking at.
std::vector<char> decompressed(std::vector<char> content) {
  auto source = trace::byte_source::from_memory(std::string(name), std::move(content));
  std::vector<char> text(largest_text);
  const auto count = source ? source->read(text) : berth::result<std::size_t>(std::size_t{0});
  text.resize(count ? *count : 0);
  return text;
}

void check_error(const berth::error& why) {
  require(why.where().starts_with(name), "an error names the file");
  require(!why.message().empty(), "an error says what happened");
  require(why.code() != berth::errc::internal, "an error is the input's, not berth's");
}

void check_events(const trace::trace& events, std::size_t braces) {
  require(events.size() <= braces, "no event is invented");
  for (trace::row row = 0; row < events.size(); ++row) {
    require(events.duration(row) >= 0, "durations are not negative");
    require(events.end(row) >= events.begin(row), "ends do not overflow");
    const bool moves =
        events.kind(row) == trace::event_kind::copy || events.kind(row) == trace::event_kind::fill;
    require(!moves || events.details(row) != nullptr, "copies and fills have details");
  }
}

void check_totals(const trace::trace& events, const berth::diagnose::diagnosis& found) {
  std::uint64_t copies = 0;
  for (const auto& group : found.totals.copies) {
    copies += group.count;
    require(group.without_bytes <= group.count, "copies without bytes are copies");
  }
  const auto of_kind = [&](trace::event_kind kind) {
    return static_cast<std::uint64_t>(
        std::count(events.kinds().begin(), events.kinds().end(), kind));
  };
  require(copies == of_kind(trace::event_kind::copy), "every copy is counted once");
  require(found.totals.kernels == of_kind(trace::event_kind::kernel), "every kernel is counted");
  require(found.totals.fills == of_kind(trace::event_kind::fill), "every fill is counted");
  require(found.totals.busy_ns >= found.totals.kernel_busy_ns, "kernels are work");
  require(found.totals.copy_beside_kernels_ns <= found.totals.copy_busy_ns, "overlap is a part");
  require(!found.verdict.empty(), "there is a verdict");
}

void check_reports(const berth::report::document& shown) {
  const auto json = nlohmann::json::parse(berth::report::to_json(shown), nullptr, false);
  require(!json.is_discarded(), "the JSON report is JSON");
  require(!berth::report::to_text(shown, berth::report::colour::off).empty(), "there is a text");
  require(!berth::report::to_text(shown, berth::report::colour::on).empty(), "there is a text");
}

void check(std::vector<char> content) {
  berth::report::trace_report shown;
  shown.file = name;
  const auto text = decompressed(content);
  if (text.size() == largest_text) {
    return;
  }
  const auto braces = static_cast<std::size_t>(std::count(text.begin(), text.end(), '{'));
  auto source = trace::byte_source::from_memory(std::string(name), std::move(content));
  if (!source) {
    check_error(source.error());
    return;
  }
  auto read = trace::try_import(std::move(*source));
  if (!read) {
    check_error(read.error());
    shown.failure = read.error();
  } else {
    check_events(read->events, braces);
    if (read->cut) {
      check_error(read->cut->why);
      require(read->cut->whole_events <= braces, "whole events are in the file");
      require(read->cut->lost_bytes <= text.size(), "no more is lost than there was");
    }
    shown.diagnosis = berth::diagnose::diagnose(read->events);
    check_totals(read->events, shown.diagnosis);
    shown.about = std::move(read->events.about);
    shown.cut = std::move(read->cut);
  }
  berth::report::document whole;
  whole.traces.push_back(std::move(shown));
  check_reports(whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(std::vector<char>(data, data + size));
  return 0;
}
