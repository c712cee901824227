// SPDX-License-Identifier: Apache-2.0
// What the blocks of a recording say, decoded: the calls that were made, in the order of the file,
// and what describes them. Nothing is interpreted here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "berth/result.hpp"
#include "trace/recording/block_reader.hpp"

namespace berth::trace::recording {

// Words of docs/trace-format.md. Those of others are passed over.
enum class role : std::uint8_t {
  unknown,
  dst,
  src,
  dst_memory,
  src_memory,
  bytes,
  rows,
  way,
  memory,
  flags,
  stream,
  event,
  device,
  peer,
  dst_device,
  src_device,
  advice,
  location,
  mode,
  value,
  name,
  batch,
  stack,
  host_pages,
  host_node,
  content,
  fixed,
  call_stream,
  correlation,
};
inline constexpr std::size_t role_count = static_cast<std::size_t>(role::correlation) + 1;

// One row of the table of calls.
struct call {
  std::string name;
  std::string api;
  std::string operation;
  std::vector<std::uint32_t> words;  // indices of the words of its values, in their order
  std::array<std::int16_t, role_count> place{};  // of a role's value among them; -1: it has none
  bool known = false;                            // a block named it
};

struct event {
  std::int64_t begin = 0;
  std::int64_t duration = 0;
  std::uint64_t values = 0;  // where they begin
  std::uint32_t call = 0;
  std::uint32_t extras = 0;  // how many; they follow the call's own
  std::uint32_t thread = 0;  // index into `threads`
  std::int32_t status = 0;
};

struct mapped_module {
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::string path;
  std::string build_id;
};

struct dropped_events {
  std::uint64_t thread = 0;
  std::uint64_t events = 0;
  std::uint64_t first_time = 0;
  std::uint64_t last_time = 0;
};

using pairs = std::map<std::string, std::string, std::less<>>;

// What was passed over, so that a report can say so.
struct passed_over {
  std::uint64_t unknown_blocks = 0;  // of types that this reader does not know
  std::uint64_t broken_blocks = 0;   // whole by their checksum, but they break the grammar
  std::uint64_t unknown_calls = 0;   // events of calls that no block names, with all behind them
  std::uint64_t absurd_times = 0;    // events that lie more than a year from the first
};

class content {
public:
  std::vector<call> calls;
  std::vector<event> events;
  std::vector<std::uint64_t> threads;  // their numbers in the system; 0 are the devices
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> stacks;  // innermost first
  std::unordered_map<std::uint64_t, std::string> strings;
  std::map<std::uint64_t, mapped_module> modules;  // by begin, disjoint
  std::vector<dropped_events> dropped;
  pairs process;
  pairs coverage;
  std::optional<pairs> end;  // nothing: the file was cut
  passed_over passed;

  // What the event has for a role, of its own or as an extra.
  [[nodiscard]] std::optional<std::uint64_t> get(const event& of, role what) const noexcept;
  [[nodiscard]] const call& call_of(const event& of) const noexcept { return calls[of.call]; }
  [[nodiscard]] std::int64_t end_of(const event& of) const noexcept {
    return of.begin + of.duration;
  }

  // Takes what a block says. What breaks the grammar is counted; what came before it stays.
  void add(const block& one);

private:
  friend class block_decoder;

  std::int64_t duration_sum_ = 0;  // scaled down: see keep()
  std::vector<std::uint64_t> values_;
  std::vector<std::uint8_t> extra_roles_;  // of each value; role::unknown for a call's own
  std::vector<std::string> words_;
  std::vector<role> word_roles_;
  std::unordered_map<std::string, std::uint32_t> word_ids_;
  std::unordered_map<std::uint64_t, std::uint32_t> thread_ids_;
};

// Reads blocks to the end of the file.
// @errors as block_reader::next()
[[nodiscard]] result<content> read_content(
    block_reader& blocks, const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace berth::trace::recording
