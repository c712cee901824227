// SPDX-License-Identifier: Apache-2.0
// make_trace: a large trace out of a real one, for benchmarks. The events of the real trace are
// written again and again; each copy lies behind the one before it in time, and its numbers that
// tie events together (correlations, flows) are its own, as in one long recording.
//
// Usage: make_trace SOURCE TARGET MINIMUM_BYTES MINIMUM_EVENTS
// SOURCE is a Kineto trace, .json or .json.gz, that fits into memory.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "trace/import/byte_source.hpp"
#include "trace/import/decimal.hpp"

namespace {

namespace trace = berth::trace;

enum class shift : std::uint8_t { time, number };

struct shifted_member {
  std::string_view key;
  shift how;
};

constexpr std::array shifted_members{
    shifted_member{"\"ts\": ", shift::time},
    shifted_member{"\"correlation\": ", shift::number},
    shifted_member{"\"External id\": ", shift::number},
    shifted_member{"\"id\": ", shift::number},
};

// Text that is the same in each copy, and the number behind it that is not.
struct piece {
  std::string_view text;
  shift how;
  std::int64_t value;  // nanoseconds, or the number itself
};

// The real trace, cut where its copies differ. The views point into the text that it was made of.
struct pattern {
  std::string_view head;  // up to the events
  std::vector<piece> pieces;
  std::string_view rest;  // of the last event
  std::string_view tail;  // behind the events
  std::uint64_t events = 0;
  std::int64_t period_ns = 0;  // a copy's distance from the next
  std::int64_t stride = 0;     // what a copy's numbers exceed those of the one before by
};

std::string read_whole(const std::string& path) {
  auto source = trace::byte_source::open(path).value();
  std::string text;
  std::vector<char> part(berth::mib);
  while (const auto count = source.read(part).value()) {
    text.append(part.data(), count);
  }
  return text;
}

std::string_view number_at(std::string_view text, std::size_t at) {
  const auto end = text.find_first_not_of("-0123456789.", at);
  return text.substr(at, end - at);
}

// Where the next number to shift stands; `key` is null if there is none.
struct next_number {
  std::size_t at = std::string_view::npos;
  const shifted_member* key = nullptr;
};

next_number find_next(std::string_view events, std::size_t from) {
  for (auto at = events.find('"', from); at != std::string_view::npos;
       at = events.find('"', at + 1)) {
    for (const auto& candidate : shifted_members) {
      if (events.substr(at).starts_with(candidate.key)) {
        return {at + candidate.key.size(), &candidate};
      }
    }
  }
  return {};
}

pattern pattern_of(std::string_view text) {
  constexpr std::string_view opening = "\"traceEvents\": [";
  const auto open = text.find(opening);
  const auto close = text.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    throw std::runtime_error("the source has no \"traceEvents\"");
  }
  const auto first = open + opening.size();
  pattern made;
  made.head = text.substr(0, first);
  made.tail = text.substr(close);
  const auto events = text.substr(first, close - first);

  std::int64_t earliest = 0;
  std::int64_t latest = 0;
  std::size_t done = 0;
  for (auto next = find_next(events, 0); next.key != nullptr; next = find_next(events, done)) {
    const auto number = number_at(events, next.at);
    const auto value = next.key->how == shift::time ? trace::nanoseconds_of_microseconds(number)
                                                    : trace::signed_of(number);
    if (!value) {
      throw std::runtime_error(fmt::format("not a number: '{}'", number));
    }
    made.pieces.push_back({events.substr(done, next.at - done), next.key->how, *value});
    done = next.at + number.size();
    if (next.key->how == shift::time) {
      ++made.events;  // each event has one time
      earliest = made.events == 1 ? *value : std::min(earliest, *value);
      latest = std::max(latest, *value);
    } else {
      made.stride = std::max(made.stride, *value + 1);
    }
  }
  made.rest = events.substr(done);
  constexpr std::int64_t pause_ns = 1'000'000;
  made.period_ns = latest - earliest + pause_ns;
  return made;
}

void append_copy(std::string& out, const pattern& source, std::int64_t copy) {
  const auto end = std::back_inserter(out);
  for (const auto& part : source.pieces) {
    out += part.text;
    if (part.how == shift::time) {
      const auto time = part.value + copy * source.period_ns;
      fmt::format_to(end, "{}.{:03}", time / 1000, time % 1000);
    } else {
      fmt::format_to(end, "{}", part.value + copy * source.stride);
    }
  }
  out += source.rest;
}

void make(const std::string& from, const std::string& to, std::uint64_t least_bytes,
          std::uint64_t least_events) {
  const auto text = read_whole(from);
  const auto source = pattern_of(text);
  std::ofstream out(to, std::ios::binary);
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out << source.head;
  std::uint64_t bytes = source.head.size() + source.tail.size();
  std::int64_t copies = 0;
  std::string copy;
  for (; bytes < least_bytes || static_cast<std::uint64_t>(copies) * source.events < least_events;
       ++copies) {
    copy.assign(copies > 0 ? "," : "");
    append_copy(copy, source, copies);
    out << copy;
    bytes += copy.size();
  }
  out << source.tail;
  out.close();
  fmt::print("{}: {} ({} bytes), {} events, {} copies of {}\n", to, berth::format_bytes(bytes),
             bytes, static_cast<std::uint64_t>(copies) * source.events, copies, from);
}

int run(std::span<char*> arguments) {
  if (arguments.size() != 5) {
    fmt::print(stderr, "usage: make_trace SOURCE TARGET MINIMUM_BYTES MINIMUM_EVENTS\n");
    return 2;
  }
  const auto events = trace::unsigned_of(arguments[4]);
  if (!events) {
    throw std::runtime_error("MINIMUM_EVENTS is not a number");
  }
  make(arguments[1], arguments[2], berth::parse_bytes(arguments[3]), *events);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& failure) {
    fmt::print(stderr, "make_trace: {}\n", failure.what());
    return 1;
  }
}
