// SPDX-License-Identifier: Apache-2.0
// What a recording says, event by event as it was written: for tests of the recorder. The importer
// (src/trace/import/recording.hpp) makes a trace of it; this keeps calls, statuses and values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/recording/block_reader.hpp"

namespace berth::test {

struct recorded_event {
  std::string call;
  std::string api;
  std::string operation;
  std::uint64_t thread = 0;
  std::uint64_t begin = 0;
  std::uint64_t duration = 0;
  std::int64_t status = 0;
  std::map<std::string, std::uint64_t> values{};
  std::map<std::string, std::uint64_t> extras{};

  // 0 where it has no such role.
  [[nodiscard]] std::uint64_t operator[](const std::string& role) const {
    const auto found = values.find(role);
    return found == values.end() ? 0 : found->second;
  }
};

struct recorded_schema {
  std::string name;
  std::string api;
  std::string operation;
  std::vector<std::string> roles;
};

class recorded_file {
public:
  bool readable = false;  // a recording at all
  std::map<std::string, std::string> process;
  std::map<std::string, std::string> coverage;
  std::map<std::string, std::string> end;  // empty: cut
  std::map<std::uint64_t, recorded_schema> calls;
  std::vector<recorded_event> events;
  std::map<std::uint64_t, std::vector<std::uint64_t>> stacks;
  std::map<std::uint64_t, std::string> strings;
  std::vector<std::string> modules;
  std::uint64_t dropped = 0;
  bool whole_events = true;  // all payloads are as the grammar has them
  trace::recording::damage losses;
  std::uint64_t blocks = 0;

  // A file that can't be read at all is not `readable`.
  [[nodiscard]] static recorded_file read(const std::string& path) {
    recorded_file into;
    auto source = trace::byte_source::open(path);
    if (!source) {
      return into;
    }
    auto reader = trace::recording::block_reader::open(std::move(*source));
    if (!reader) {
      return into;
    }
    into.readable = true;
    while (const auto block = reader->next().value()) {
      into.take(*block);
    }
    into.losses = reader->losses();
    into.blocks = reader->blocks_read();
    return into;
  }

  [[nodiscard]] std::vector<recorded_event> of(std::string_view call) const {
    std::vector<recorded_event> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found),
                 [&](const auto& one) { return one.call == call; });
    return found;
  }
  [[nodiscard]] std::uint64_t count(std::string_view call) const { return of(call).size(); }
  [[nodiscard]] std::vector<recorded_event> copies() const {
    std::vector<recorded_event> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found), [](const auto& one) {
      return one.api != "device" && one.operation.starts_with("copy");
    });
    return found;
  }
  [[nodiscard]] std::uint64_t copied_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& one : copies()) {
      bytes += one["bytes"];
    }
    return bytes;
  }
  // How the calls of a mapped runtime whose path has `part` reach the recorder; empty: not mapped.
  [[nodiscard]] std::string how(std::string_view part) const {
    for (const auto& [key, value] : coverage) {
      if (key.ends_with(".path") && value.find(part) != std::string::npos) {
        const auto found = coverage.find(key.substr(0, key.size() - 5) + ".how");
        return found == coverage.end() ? "" : found->second;
      }
    }
    return "";
  }

private:
  using byte_reader = trace::recording::byte_reader;

  static void take_pairs(byte_reader& from, std::map<std::string, std::string>& into) {
    for (auto left = from.get_varint(); left > 0 && from.good(); --left) {
      const std::string key(from.get_string());
      into[key] = from.get_string();
    }
  }

  void take_calls(byte_reader& from) {
    for (auto left = from.get_varint(); left > 0 && from.good(); --left) {
      auto& call = calls[from.get_varint()];
      call.name = from.get_string();
      call.api = from.get_string();
      call.operation = from.get_string();
      for (auto roles = from.get_varint(); roles > 0 && from.good(); --roles) {
        call.roles.emplace_back(from.get_string());
      }
    }
  }

  void take_events(byte_reader& from) {
    std::map<std::string, std::uint64_t> last;
    const auto value_of = [&](const std::string& role) {
      return last[role] += static_cast<std::uint64_t>(from.get_signed());
    };
    const auto thread = from.get_varint();
    auto begin = static_cast<std::uint64_t>(from.get_signed());
    while (from.good() && !from.at_end()) {
      const auto found = calls.find(from.get_varint());
      whole_events = whole_events && found != calls.end();
      if (found == calls.end()) {
        return;
      }
      recorded_event event{.call = found->second.name,
                           .api = found->second.api,
                           .operation = found->second.operation,
                           .thread = thread};
      begin += static_cast<std::uint64_t>(from.get_signed());
      event.begin = begin;
      event.duration = from.get_varint();
      const auto flags = from.get_varint();
      event.status = (flags & trace::recording::event_failed) != 0 ? from.get_signed() : 0;
      if ((flags & trace::recording::event_has_extras) != 0) {
        for (auto left = from.get_varint(); left > 0 && from.good(); --left) {
          const auto index = from.get_varint();
          const auto& role = calls[0].roles.at(static_cast<std::size_t>(index));
          event.extras[role] = value_of(role);
        }
      }
      for (const auto& role : found->second.roles) {
        event.values[role] = value_of(role);
      }
      events.push_back(std::move(event));
    }
  }

  void take_stacks(byte_reader& from) {
    while (from.good() && !from.at_end()) {
      auto& frames = stacks[from.get_varint()];
      std::uint64_t address = 0;
      for (auto left = from.get_varint(); left > 0 && from.good(); --left) {
        frames.push_back(address += static_cast<std::uint64_t>(from.get_signed()));
      }
    }
  }

  void take_modules(byte_reader& from) {
    while (from.good() && !from.at_end()) {
      static_cast<void>(from.get_varint());
      static_cast<void>(from.get_varint());
      static_cast<void>(from.get_varint());
      modules.emplace_back(from.get_string());
      static_cast<void>(from.get_string());
    }
  }

  void take(const trace::recording::block& block) {
    using trace::recording::block_type;
    byte_reader from(block.payload);
    switch (block.type) {
      case block_type::process:
        take_pairs(from, process);
        break;
      case block_type::coverage:
        take_pairs(from, coverage);
        break;
      case block_type::end:
        take_pairs(from, end);
        break;
      case block_type::calls:
        take_calls(from);
        break;
      case block_type::events:
        take_events(from);
        break;
      case block_type::stacks:
        take_stacks(from);
        break;
      case block_type::modules:
        take_modules(from);
        break;
      case block_type::strings:
        while (from.good() && !from.at_end()) {
          const auto id = from.get_varint();
          strings[id] = from.get_string();
        }
        break;
      case block_type::dropped:
        while (from.good() && !from.at_end()) {
          static_cast<void>(from.get_varint());
          dropped += from.get_varint();
          static_cast<void>(from.get_varint());
          static_cast<void>(from.get_varint());
        }
        break;
    }
    whole_events = whole_events && from.good() && from.at_end();
  }
};

}  // namespace berth::test
