// SPDX-License-Identifier: Apache-2.0
#include "trace/export/chrome.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "berth/units.hpp"

namespace berth::trace {
namespace {

constexpr std::size_t part_bytes = 1 << 16;
constexpr std::size_t most_lanes = 16;  // of one stream; more overlap on the last

struct track {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
};

// Text of a foreign file as a JSON string, with the quotes; what is no UTF-8 is replaced.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Nanoseconds as microseconds, exactly.
void put_us(std::string& to, std::int64_t time_ns) {
  const auto magnitude =
      time_ns < 0 ? ~static_cast<std::uint64_t>(time_ns) + 1 : static_cast<std::uint64_t>(time_ns);
  fmt::format_to(std::back_inserter(to), "{}{}.{:03}", time_ns < 0 ? "-" : "", magnitude / 1000,
                 magnitude % 1000);
}

std::string_view category_of(event_kind kind) noexcept {
  constexpr std::array<std::string_view, 13> names{
      "copy",        "fill", "kernel",          "migration",
      "allocation",  "free", "synchronisation", "copy_call",
      "launch_call", "call", "operator",        "python",
      "annotation"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view words_of(timing time) noexcept {
  constexpr std::array<std::string_view, 3> words{"device", "of the call", "unknown"};
  return words[static_cast<std::size_t>(time)];
}

std::string_view words_of(host_pages pages) noexcept {
  constexpr std::array<std::string_view, 4> words{"unknown", "resident", "never touched",
                                                  "of a file"};
  return words[static_cast<std::size_t>(pages)];
}

// The members of an object "args", one by one.
class arguments {
public:
  explicit arguments(std::string& to) : to_(to) {}

  void put(std::string_view name, std::uint64_t value) { fmt::format_to(begin(name), "{}", value); }
  void put(std::string_view name, std::int64_t value) { fmt::format_to(begin(name), "{}", value); }
  void put(std::string_view name, std::string_view word) {
    fmt::format_to(begin(name), "\"{}\"", word);
  }
  void put_address(std::string_view name, std::uint64_t value) {
    fmt::format_to(begin(name), "\"{:#x}\"", value);
  }
  void put_rate(std::string_view name, double value) {
    fmt::format_to(begin(name), "{:.3f}", value);
  }
  void put_quoted(std::string_view name, std::string_view text) {
    fmt::format_to(begin(name), "{}", text);
  }

private:
  std::back_insert_iterator<std::string> begin(std::string_view name) {
    fmt::format_to(std::back_inserter(to_), "{}\"{}\":", is_first_ ? "" : ",", name);
    is_first_ = false;
    return std::back_inserter(to_);
  }

  std::string& to_;
  bool is_first_ = true;
};

// Tracks of a stream: events that run side by side lie on several.
struct stream_tracks {
  std::vector<track> lanes;
  std::vector<std::int64_t> ends;
};

class writer {
public:
  writer(const trace& events, const std::function<void(std::string_view)>& sink)
      : events_(events), sink_(sink), names_(events.name_count()) {}

  void write() {
    put_head();
    find_order();
    find_calls();
    name_threads();
    for (const auto index : order_) {
      put_event(index);
    }
    put_counters();
    text_ += "\n]}\n";
    flush();
  }

private:
  using stream_key = std::pair<std::optional<std::uint32_t>, std::optional<std::int64_t>>;

  void flush() {
    sink_(text_);
    text_.clear();
  }

  // Before each element of the array.
  void next() {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    if (text_.size() >= part_bytes) {
      flush();
    }
  }

  void put_head() {
    const auto& about = events_.about;
    text_ += fmt::format(R"({{"{}":1,"displayTimeUnit":"ns","otherData":{{"file":{},"format":{})",
                         chrome_export_member, json_text(about.file), json_text(about.format));
    for (const auto& [key, value] : about.facts) {
      text_ += fmt::format(",{}:{}", json_text(key), json_text(value));
    }
    text_ += R"(},"traceEvents":[)";
  }

  void find_order() {
    order_.resize(events_.size());
    std::iota(order_.begin(), order_.end(), row{0});
    // Of two events that begin together the longer one holds the other.
    std::sort(order_.begin(), order_.end(), [&](row a, row b) {
      return std::tuple(events_.begin(a), -events_.duration(a), a) <
             std::tuple(events_.begin(b), -events_.duration(b), b);
    });
  }

  // Recorders start their numbers anew now and then: the calls of a number by rising begin.
  void find_calls() {
    for (const auto index : order_) {
      const auto kind = events_.kind(index);
      if (kind == event_kind::copy_call || kind == event_kind::launch_call) {
        if (const auto number = events_.correlation(index)) {
          calls_[*number].push_back(index);
        }
      }
    }
  }

  // The latest call with the activity's number that began before its end.
  [[nodiscard]] row call_of(row activity) const {
    const auto number = events_.correlation(activity);
    const auto found = number ? calls_.find(*number) : calls_.end();
    if (found == calls_.end()) {
      return no_row;
    }
    const auto end = events_.end(activity);
    const auto behind =
        std::upper_bound(found->second.begin(), found->second.end(), end,
                         [&](std::int64_t time, row call) { return time < events_.begin(call); });
    return behind == found->second.begin() ? no_row : *std::prev(behind);
  }

  // --- Tracks -----------------------------------------------------------------------------------

  void put_name(std::string_view what, track where, std::string_view name) {
    next();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                   where.process, where.thread, json_text(name));
  }

  std::uint32_t process_of(const std::string& name) {
    const auto [place, is_new] =
        processes_.try_emplace(name, static_cast<std::uint32_t>(processes_.size() + 1));
    if (is_new) {
      const auto program = events_.about.facts.find("process.program");
      const auto prefix = program == events_.about.facts.end()
                              ? std::string("process")
                              : std::filesystem::path(program->second).filename().string();
      put_name("process_name", {place->second, 0},
               name.empty() ? prefix : fmt::format("{} {}", prefix, name));
    }
    return place->second;
  }

  void name_threads() {
    for (std::uint32_t index = 0; index < events_.thread_count(); ++index) {
      const auto& [process, id] = events_.thread_at(index);
      threads_.push_back({process_of(process), index + 1});
      put_name("thread_name", threads_.back(), fmt::format("thread {}", id));
    }
  }

  std::uint32_t gpu_of(std::optional<std::uint32_t> device) {
    // Behind the processes, whose number is known by now.
    const auto [place, is_new] =
        gpus_.try_emplace(device, static_cast<std::uint32_t>(processes_.size() + gpus_.size() + 1));
    if (is_new) {
      std::string name = device ? fmt::format("GPU {}", *device) : "GPU";
      for (const auto& known : events_.about.devices) {
        name += device && known.index == *device ? fmt::format(": {}", known.name) : "";
      }
      put_name("process_name", {place->second, 0}, name);
    }
    return place->second;
  }

  track lane_of(row activity) {
    const auto where = events_.stream_of(activity);
    auto& [lanes, ends] = streams_[stream_key(where.device, where.id)];
    std::size_t lane = 0;
    while (lane < ends.size() && ends[lane] > events_.begin(activity) && lane + 1 < most_lanes) {
      ++lane;
    }
    if (lane == ends.size()) {
      ends.push_back(0);
      lanes.push_back({gpu_of(where.device), ++lane_count_});
      auto name = where.id ? fmt::format("stream {}", *where.id) : std::string("stream unknown");
      put_name("thread_name", lanes.back(), lane == 0 ? name : name + ", side by side");
    }
    ends[lane] = events_.end(activity);
    return lanes[lane];
  }

  track track_of(row index) {
    if (is_device_activity(events_.kind(index))) {
      return lane_of(index);
    }
    const auto thread = events_.thread_of(index);
    return thread ? threads_[*thread] : track{process_of(""), 0};
  }

  // --- Events -----------------------------------------------------------------------------------

  const std::string& name_of(row index) {
    auto& known = names_[events_.name(index)];
    if (known.empty()) {
      known = json_text(events_.name_text(index));
    }
    return known;
  }

  void put_event(row index) {
    const auto where = track_of(index);
    next();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":)",
                   category_of(events_.kind(index)), name_of(index), where.process, where.thread);
    put_us(text_, events_.begin(index));
    text_ += R"(,"dur":)";
    put_us(text_, events_.duration(index));
    text_ += R"(,"args":{)";
    put_arguments(index);
    text_ += "}}";
    if (is_device_activity(events_.kind(index))) {
      put_flow(index, where);
    }
  }

  void put_arguments(row index) {
    arguments to(text_);
    if (const auto* const details = events_.details(index)) {
      put_details(to, *details, events_.duration(index));
    }
    if (const auto number = events_.correlation(index)) {
      to.put("correlation", *number);
    }
    if (const auto status = events_.status(index); status != 0) {
      to.put("status", std::int64_t{status});
    }
    if (const auto* const site = events_.site(index)) {
      put_stack(to, *site);
    }
  }

  static void put_details(arguments& to, const transfer& details, std::int64_t duration) {
    if (details.bytes) {
      to.put("bytes", *details.bytes);
      if (details.time != timing::unknown && duration > 0 &&
          details.direction != direction::unknown) {
        to.put_rate("GB/s", gb_per_s(*details.bytes, std::chrono::nanoseconds(duration)));
      }
    }
    if (details.direction != direction::unknown) {
      to.put("direction", to_string(details.direction));
      to.put("source_kind", to_string(details.source_kind));
      to.put("time", words_of(details.time));
    }
    to.put("kind", to_string(details.destination_kind));
    if (details.source_address) {
      to.put_address("source", *details.source_address);
    }
    if (details.destination_address) {
      to.put_address("address", *details.destination_address);
    }
    if (details.engine != engine::unknown) {
      to.put("engine", to_string(details.engine));
    }
    if (details.pages != host_pages::unknown) {
      to.put("host_pages", words_of(details.pages));
    }
    if (details.host_node) {
      to.put("host_node", std::int64_t{*details.host_node});
    }
    if (details.flags) {
      to.put_address("flags", *details.flags);
    }
  }

  void put_stack(arguments& to, const call_site& site) {
    std::string frames;
    for (const auto frame : site.frames) {
      frames += frames.empty() ? "" : " < ";
      frames += events_.text(frame);
    }
    to.put_quoted("called from", json_text(frames));
  }

  // An arrow from the call to what it started.
  void put_flow(row activity, track where) {
    const auto call = call_of(activity);
    const auto thread = call != no_row ? events_.thread_of(call) : std::nullopt;
    if (!thread) {
      return;
    }
    put_flow_end("s", events_.begin(call), threads_[*thread], "");
    put_flow_end("f", events_.begin(activity), where, R"(,"bp":"e")");
    ++flows_;
  }

  void put_flow_end(std::string_view phase, std::int64_t time, track where, std::string_view more) {
    next();
    fmt::format_to(
        std::back_inserter(text_),
        R"({{"ph":"{}","cat":"started","name":"started","id":{},"pid":{},"tid":{}{},"ts":)", phase,
        flows_, where.process, where.thread, more);
    put_us(text_, time);
    text_ += "}";
  }

  // --- Allocated bytes --------------------------------------------------------------------------

  struct block {
    memory_kind kind = memory_kind::unknown;
    bytes_t bytes = 0;
  };

  // Allocations at their end, frees at their begin; only those that have worked and say enough.
  [[nodiscard]] std::vector<std::pair<std::int64_t, row>> changes() const {
    std::vector<std::pair<std::int64_t, row>> found;
    for (const auto index : order_) {
      const auto kind = events_.kind(index);
      const auto* const details = events_.details(index);
      if (details == nullptr || !details->destination_address || events_.status(index) != 0) {
        continue;
      }
      if (kind == event_kind::allocation && details->bytes) {
        found.emplace_back(events_.end(index), index);
      } else if (kind == event_kind::free) {
        found.emplace_back(events_.begin(index), index);
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return found;
  }

  void put_counters() {
    std::map<std::uint64_t, block> blocks;  // by address
    std::map<memory_kind, bytes_t> sums;
    for (const auto& [time, index] : changes()) {
      const auto& details = *events_.details(index);
      const auto address = *details.destination_address;
      if (const auto old = blocks.find(address); old != blocks.end()) {
        sums[old->second.kind] -= old->second.bytes;
        blocks.erase(old);
      } else if (events_.kind(index) == event_kind::free) {
        continue;
      }
      if (events_.kind(index) == event_kind::allocation) {
        blocks[address] = {details.destination_kind, *details.bytes};
        sums[details.destination_kind] += *details.bytes;
      }
      put_counter(time, index, sums);
    }
  }

  void put_counter(std::int64_t time, row index, const std::map<memory_kind, bytes_t>& sums) {
    const auto where = track_of(index);
    next();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"C","name":"allocated bytes","pid":{},"ts":)", where.process);
    put_us(text_, time);
    text_ += R"(,"args":{)";
    arguments to(text_);
    for (const auto& [kind, bytes] : sums) {
      to.put(to_string(kind), bytes);
    }
    text_ += "}}";
  }

  const trace& events_;
  const std::function<void(std::string_view)>& sink_;
  std::string text_;
  bool is_first_ = true;
  std::vector<row> order_;
  std::vector<std::string> names_;  // quoted, as needed
  std::unordered_map<std::uint64_t, std::vector<row>> calls_;
  std::map<std::string, std::uint32_t> processes_;
  std::vector<track> threads_;
  std::map<std::optional<std::uint32_t>, std::uint32_t> gpus_;
  std::map<stream_key, stream_tracks> streams_;
  std::uint32_t lane_count_ = 0;
  std::uint64_t flows_ = 0;
};

}  // namespace

void write_chrome(const trace& events, const std::function<void(std::string_view)>& sink) {
  writer(events, sink).write();
}

}  // namespace berth::trace
