// SPDX-License-Identifier: Apache-2.0
// Writes recordings (docs/trace-format.md) for tests, without a recorder:
//
//   recording_builder made;
//   made.event("hipMalloc", 0, 10, {0x7000, 4096}).event("hipMemcpy", 20, 30, {0x7000, 0x10, 64,
//   1}); made.end(); import(made.file());
//
// Events are of the thread of the last `on_thread`, and are called by their function's name;
// `calls` below lists what is known from the start, with the order of the values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zstd.h>

#include "trace/recording/layout.hpp"

namespace berth::test {

struct recorded_call {
  std::string name;
  std::string api;
  std::string operation;
  std::vector<std::string> roles;
};

using recorded_pairs = std::vector<std::pair<std::string, std::string>>;

class recording_builder {
public:
  using encoding = trace::recording::block_encoding;
  using type = trace::recording::block_type;

  explicit recording_builder(encoding how = encoding::plain) : encoding_(how), calls_(calls()) {
    std::vector<std::byte> header(trace::recording::file_header_bytes);
    trace::recording::byte_writer to(header);
    trace::recording::put_file_header(to);
    append(to.written());
  }

  [[nodiscard]] static std::vector<recorded_call> calls() {
    return {
        {"",
         "",
         "",
         {"stack", "host_pages", "host_node", "content", "call_stream", "correlation", "fixed"}},
        {"hipMalloc", "hip", "allocate_device", {"memory", "bytes"}},
        {"hipFree", "hip", "free_device", {"memory"}},
        {"hipHostMalloc", "hip", "allocate_pinned", {"memory", "bytes", "flags"}},
        {"hipHostFree", "hip", "free_pinned", {"memory"}},
        {"hipMallocManaged", "hip", "allocate_managed", {"memory", "bytes", "flags"}},
        {"hipHostRegister", "hip", "register_host", {"memory", "bytes", "flags"}},
        {"hipHostUnregister", "hip", "unregister_host", {"memory"}},
        {"hipMemcpy", "hip", "copy", {"dst", "src", "bytes", "way"}},
        {"hipMemcpyAsync", "hip", "copy_async", {"dst", "src", "bytes", "way", "stream"}},
        {"hipMemcpyBatchAsync", "hip", "copy_batch_async", {"bytes", "batch", "way", "stream"}},
        {"hipMemsetAsync", "hip", "fill_async", {"dst", "bytes", "stream"}},
        {"hipModuleLaunchKernel", "hip", "launch", {"stream"}},
        {"hipStreamSynchronize", "hip", "synchronize_stream", {"stream"}},
        {"hipMemPrefetchAsync", "hip", "prefetch_async", {"memory", "bytes", "device", "stream"}},
        {"hipMemAdvise", "hip", "advise", {"memory", "bytes", "advice", "device"}},
        {"hipEventRecord", "hip", "record_event", {"event", "stream"}},
        {"gpu_copy",
         "device",
         "copy",
         {"bytes", "way", "dst_memory", "src_memory", "device", "stream"}},
        {"gpu_fill", "device", "fill", {"bytes", "device", "stream"}},
        {"gpu_kernel", "device", "kernel", {"name", "device", "stream"}},
        {"gpu_migration", "device", "migration", {"memory", "bytes", "way", "device", "stream"}},
        {"window", "berth", "window", {"value"}},
    };
  }

  recording_builder& on_thread(std::uint64_t number) {
    flush();
    thread_ = number;
    return *this;
  }
  // Makes another call known.
  recording_builder& declare(recorded_call call) {
    flush();
    calls_.push_back(std::move(call));
    calls_written_ = false;
    return *this;
  }
  recording_builder& event(std::string_view call, std::int64_t begin, std::uint64_t duration,
                           const std::vector<std::uint64_t>& values,
                           const std::map<std::string, std::uint64_t>& extras = {},
                           std::int64_t status = 0) {
    pending_.push_back({index_of(call), begin, duration, values, extras, status});
    return *this;
  }

  recording_builder& process(const recorded_pairs& pairs) {
    return pairs_block(type::process, pairs);
  }
  recording_builder& coverage(const recorded_pairs& pairs) {
    return pairs_block(type::coverage, pairs);
  }
  recording_builder& end(const recorded_pairs& pairs = {{"reason", "exit"}}) {
    return pairs_block(type::end, pairs);
  }
  recording_builder& string(std::uint64_t id, std::string_view text) {
    return block(type::strings, [&](auto& to) {
      to.put_varint(id);
      to.put_string(text);
    });
  }
  // Innermost first.
  recording_builder& stack(std::uint64_t id, const std::vector<std::uint64_t>& addresses) {
    return block(type::stacks, [&](auto& to) {
      to.put_varint(id);
      to.put_varint(addresses.size());
      std::uint64_t last = 0;
      for (const auto address : addresses) {
        to.put_signed(static_cast<std::int64_t>(address - last));
        last = address;
      }
    });
  }
  recording_builder& module(std::uint64_t begin, std::uint64_t size, std::uint64_t offset,
                            std::string_view path, std::string_view build_id) {
    return block(type::modules, [&](auto& to) {
      to.put_varint(begin);
      to.put_varint(size);
      to.put_varint(offset);
      to.put_string(path);
      to.put_string(build_id);
    });
  }
  recording_builder& dropped(std::uint64_t thread, std::uint64_t events, std::uint64_t first,
                             std::uint64_t last) {
    return block(type::dropped, [&](auto& to) {
      for (const auto value : {thread, events, first, last}) {
        to.put_varint(value);
      }
    });
  }

  // A block with any payload; `write` gets a byte_writer.
  template <typename Write>
  recording_builder& block(type which, Write write) {
    flush();
    std::vector<std::byte> payload(trace::recording::most_block_bytes);
    trace::recording::byte_writer to(payload);
    write(to);
    append_block(which, to.written());
    return *this;
  }

  // Leaves out a number, as if a block had been lost.
  recording_builder& skip_sequence() {
    flush();
    ++sequence_;
    return *this;
  }
  // Where the next block begins.
  [[nodiscard]] std::size_t position() {
    flush();
    return bytes_.size();
  }

  // All that was written so far.
  [[nodiscard]] std::string file() {
    flush();
    return bytes_;
  }

private:
  struct pending_event {
    std::size_t call;
    std::int64_t begin;
    std::uint64_t duration;
    std::vector<std::uint64_t> values;
    std::map<std::string, std::uint64_t> extras;
    std::int64_t status;
  };

  [[nodiscard]] std::size_t index_of(std::string_view name) const {
    for (std::size_t index = 1; index < calls_.size(); ++index) {
      if (calls_[index].name == name) {
        return index;
      }
    }
    throw std::invalid_argument("no such call: " + std::string(name));
  }

  recording_builder& pairs_block(type which, const recorded_pairs& pairs) {
    return block(which, [&](auto& to) {
      to.put_varint(pairs.size());
      for (const auto& [key, value] : pairs) {
        to.put_string(key);
        to.put_string(value);
      }
    });
  }

  // Roles are numbered by the order of their words.
  [[nodiscard]] std::size_t role_number(const std::string& word) {
    return roles_.try_emplace(word, roles_.size()).first->second;
  }

  void write_calls() {
    std::vector<std::byte> payload(1 << 16);
    trace::recording::byte_writer to(payload);
    to.put_varint(calls_.size());
    for (std::size_t index = 0; index < calls_.size(); ++index) {
      const auto& call = calls_[index];
      to.put_varint(index);
      to.put_string(call.name);
      to.put_string(call.api);
      to.put_string(call.operation);
      to.put_varint(call.roles.size());
      for (const auto& role : call.roles) {
        to.put_string(role);
      }
    }
    append_block(type::calls, to.written());
    calls_written_ = true;
  }

  void flush() {
    if (pending_.empty()) {
      return;
    }
    if (!calls_written_) {
      write_calls();
    }
    const auto events = std::exchange(pending_, {});
    constexpr std::size_t most_in_a_block = 20'000;
    for (std::size_t first = 0; first < events.size(); first += most_in_a_block) {
      write_events(
          std::span(events).subspan(first, std::min(most_in_a_block, events.size() - first)));
    }
  }

  void write_events(std::span<const pending_event> events) {
    std::vector<std::byte> payload(trace::recording::most_block_bytes);
    trace::recording::byte_writer to(payload);
    trace::recording::event_values values;
    to.put_varint(thread_);
    std::int64_t last = events.front().begin;
    to.put_signed(last);
    for (const auto& event : events) {
      to.put_varint(event.call);
      to.put_signed(event.begin - last);
      last = event.begin;
      to.put_varint(event.duration);
      to.put_varint((event.status != 0 ? trace::recording::event_failed : 0) |
                    (event.extras.empty() ? 0 : trace::recording::event_has_extras));
      if (event.status != 0) {
        to.put_signed(event.status);
      }
      put_extras(to, values, event);
      put_values(to, values, event);
    }
    append_block(type::events, to.written());
  }

  void put_extras(trace::recording::byte_writer& to, trace::recording::event_values& values,
                  const pending_event& event) {
    if (event.extras.empty()) {
      return;
    }
    to.put_varint(event.extras.size());
    const auto& known = calls_[trace::recording::extras_call].roles;
    for (const auto& [word, value] : event.extras) {
      const auto place = std::find(known.begin(), known.end(), word);
      to.put_varint(static_cast<std::uint64_t>(place - known.begin()));
      to.put_signed(values.difference(role_number(word), value));
    }
  }

  void put_values(trace::recording::byte_writer& to, trace::recording::event_values& values,
                  const pending_event& event) {
    const auto& roles = calls_[event.call].roles;
    if (roles.size() != event.values.size()) {
      throw std::invalid_argument("values of " + calls_[event.call].name);
    }
    for (std::size_t index = 0; index < roles.size(); ++index) {
      to.put_signed(values.difference(role_number(roles[index]), event.values[index]));
    }
  }

  void append(std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void append_block(type which, std::span<const std::byte> payload) {
    std::vector<std::byte> stored(payload.begin(), payload.end());
    if (encoding_ == encoding::zstd) {
      stored.resize(ZSTD_compressBound(payload.size()));
      stored.resize(ZSTD_compress(stored.data(), stored.size(), payload.data(), payload.size(), 1));
    }
    std::vector<std::byte> header(trace::recording::block_header_bytes);
    trace::recording::byte_writer to(header);
    put_block_header(to,
                     {.type = which,
                      .encoding = encoding_,
                      .plain_bytes = static_cast<std::uint32_t>(payload.size()),
                      .sequence = sequence_++},
                     stored);
    append(to.written());
    append(stored);
  }

  encoding encoding_;
  std::string bytes_;
  std::uint32_t sequence_ = 0;
  std::uint64_t thread_ = 1;
  std::vector<recorded_call> calls_;
  bool calls_written_ = false;
  std::map<std::string, std::size_t> roles_;
  std::vector<pending_event> pending_;
};

}  // namespace berth::test
