// SPDX-License-Identifier: Apache-2.0
// Any bytes as a recording: read, converted, diagnosed, rendered and exported. Checksums would stop
// nearly every change of a byte, so the mutator below mends those of all blocks, and keeps the rest
// wrong. Beside the sanitizers' checks these must hold: nothing throws, an error names the file, no
// event is invented, and what is written is JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "diagnose/diagnosis.hpp"
#include "report/model.hpp"
#include "report/render.hpp"
#include "trace/export/chrome.hpp"
#include "trace/import/byte_source.hpp"
#include "trace/import/import.hpp"
#include "trace/recording/layout.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

namespace trace = berth::trace;
namespace recording = berth::trace::recording;

constexpr std::string_view name = "fuzzed.berth";
// More of one input only takes time.
constexpr std::size_t largest_input = 1 << 17;
// What one call may become: itself and the copies of a batch.
constexpr std::size_t most_batched = 1 << 20;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

void check_error(const berth::error& why) {
  require(why.where().starts_with(name), "an error names the file");
  require(!why.message().empty(), "an error says what happened");
  require(why.code() != berth::errc::internal, "an error is the input's, not berth's");
}

void check_events(const trace::trace& events, std::size_t bytes) {
  // An event takes four bytes at least, and is at most a call and a copy. Compressed it takes less.
  require(events.size() <= 300 * bytes + most_batched, "no event is invented");
  for (trace::row row = 0; row < events.size(); ++row) {
    require(events.duration(row) >= 0, "durations are not negative");
    require(events.end(row) >= events.begin(row), "ends do not overflow");
    const auto* const details = events.details(row);
    const bool moves =
        events.kind(row) == trace::event_kind::copy || events.kind(row) == trace::event_kind::fill;
    require(!moves || details != nullptr, "copies and fills have details");
    require(
        details == nullptr || details->time != trace::timing::unknown || events.duration(row) == 0,
        "an unknown time is no time");
  }
}

void check_export(const trace::trace& events) {
  std::string text;
  trace::write_chrome(events, [&](std::string_view part) { text += part; });
  require(nlohmann::json::accept(text), "the export is JSON");
}

void check(std::vector<char> content) {
  const auto bytes = content.size();
  auto source = trace::byte_source::from_memory(std::string(name), std::move(content));
  if (!source) {
    return check_error(source.error());
  }
  auto read = trace::try_import(std::move(*source));
  if (!read) {
    return check_error(read.error());
  }
  check_events(read->events, bytes);
  if (read->cut) {
    check_error(read->cut->why);
    require(read->cut->lost_bytes <= bytes, "no more is lost than there was");
  }
  // What becomes of very many copies is the same as of some, and takes seconds.
  if (read->events.size() > 20'000) {
    return;
  }
  check_export(read->events);
  berth::report::document whole;
  auto& shown = whole.traces.emplace_back();
  shown.file = name;
  shown.diagnosis = berth::diagnose::diagnose(read->events);
  shown.about = std::move(read->events.about);
  shown.cut = std::move(read->cut);
  require(nlohmann::json::accept(berth::report::to_json(whole)), "the JSON report is JSON");
  require(!berth::report::to_text(whole, berth::report::colour::off).empty(), "there is a text");
}

// Writes the right checksum into whatever stands where a block begins.
void mend(std::span<std::uint8_t> file) {
  auto at = recording::file_header_bytes;
  while (at + recording::block_header_bytes <= file.size()) {
    recording::byte_reader in(std::as_bytes(file.subspan(at)));
    if (in.get_fixed(4) != recording::block_magic) {
      ++at;
      continue;
    }
    in.get_fixed(4);
    const auto stored = in.get_fixed(4);
    if (stored > file.size() - at - recording::block_header_bytes) {
      ++at;
      continue;
    }
    constexpr std::size_t checked = recording::block_header_bytes - 4;
    const auto header = std::as_bytes(file.subspan(at, checked));
    const auto payload = std::as_bytes(file.subspan(at + recording::block_header_bytes, stored));
    const auto sum = recording::crc32(payload, recording::crc32(header));
    for (std::size_t index = 0; index < 4; ++index) {
      file[at + checked + index] = static_cast<std::uint8_t>(sum >> (8 * index));
    }
    at += recording::block_header_bytes + stored;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  const auto changed = LLVMFuzzerMutate(data, size, most);
  if (seed % 16 != 0) {
    mend({data, changed});
  }
  return changed;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size <= largest_input) {
    check(std::vector<char>(data, data + size));
  }
  return 0;
}
