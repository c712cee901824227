// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/conversion.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "trace/import/api_names.hpp"
#include "trace/import/recording/address_replay.hpp"
#include "trace/import/recording/call_sites.hpp"
#include "trace/import/recording/copy_matching.hpp"
#include "trace/import/recording/operations.hpp"
#include "trace/import/symbols.hpp"

namespace berth::trace::recording {
namespace {

// Beyond these a size or a count is a fault of the file.
constexpr bytes_t largest_transfer = 1024 * tib;
constexpr bytes_t largest_sum = 1024 * largest_transfer;
constexpr std::uint64_t largest_batch = 1U << 16;
constexpr std::uint64_t most_batched = 1U << 20;  // in all

enum class source_of_event : std::uint8_t { call, device, recorder, unknown };

source_of_event source_of(std::string_view api) noexcept {
  if (api == "hip" || api == "cuda") {
    return source_of_event::call;
  }
  if (api == "device") {
    return source_of_event::device;
  }
  return api == "berth" ? source_of_event::recorder : source_of_event::unknown;
}

// As profilers spell it.
std::string_view name_of(direction way) noexcept {
  constexpr std::array<std::string_view, 6> names{"copy",        "Memcpy HtoD", "Memcpy DtoH",
                                                  "Memcpy DtoD", "Memcpy PtoP", "Memcpy HtoH"};
  return names[static_cast<std::size_t>(way)];
}

std::string_view name_of(memory_kind kind) noexcept {
  constexpr std::array<std::string_view, 6> names{"Unknown", "Pageable", "Registered",
                                                  "Pinned",  "Managed",  "Device"};
  return names[static_cast<std::size_t>(kind)];
}

class converter {
public:
  converter(const content& recorded, ranges_known known, trace& into)
      : recorded_(recorded), known_(known), into_(into), sites_(recorded, into) {
    for (const auto& each : recorded.calls) {
      operations_.push_back(operation_of(each.operation));
      sources_.push_back(source_of(each.api));
      names_.push_back(into.intern(each.name));
    }
    const auto process = recorded.process.find("pid");
    for (const auto number : recorded.threads) {
      threads_.push_back(into.intern_thread(
          process != recorded.process.end() ? process->second : "", fmt::format("{}", number)));
    }
  }

  conversion run() {
    into_.reserve(recorded_.events.size());
    ranges_.emplace(recorded_, operations_);
    find_order();
    find_device();
    match();
    for (const auto index : order_) {
      add(index);
    }
    return done_;
  }

private:
  // How a copy or fill of the recording goes on: the other half, and what both know.
  struct link {
    std::uint64_t correlation = 0;  // 0: none
    std::uint32_t other = no_row;   // of a device's record: the event of its call
    bool is_matched = false;        // of a call: a device's record is its own
    bool is_block = false;          // of a device's record: a part of a copy that was fixed
  };

  void find_order() {
    const auto& events = recorded_.events;
    order_.resize(events.size());
    std::iota(order_.begin(), order_.end(), 0U);
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(events[a].begin, a) < std::tie(events[b].begin, b);
    };
    if (!std::is_sorted(order_.begin(), order_.end(), earlier)) {
      std::sort(order_.begin(), order_.end(), earlier);
    }
  }

  // Where all that ran, ran on one device, copies without a record ran there, too.
  void find_device() {
    std::set<std::uint64_t> devices;
    for (const auto& event : recorded_.events) {
      if (sources_[event.call] == source_of_event::device && devices.size() < 2) {
        if (const auto device = recorded_.get(event, role::device)) {
          devices.insert(*device);
          note_stream(event);
        }
      }
    }
    if (devices.size() == 1 && *devices.begin() < no_row) {
      only_device_ = static_cast<std::uint32_t>(*devices.begin());
    }
  }

  // The recorder's number of a program's stream.
  void note_stream(const event& which) {
    const auto handle = recorded_.get(which, role::call_stream);
    const auto number = recorded_.get(which, role::stream);
    if (handle && number) {
      stream_numbers_.try_emplace(*handle, *number);
    }
  }

  [[nodiscard]] bool carries(std::uint32_t index) const {
    const auto what = operations_[recorded_.events[index].call].action;
    return what == action::copy || what == action::fill;
  }

  [[nodiscard]] bool is_fixed(const event& which) const {
    return recorded_.get(which, role::fixed).value_or(0) == 1;
  }

  // The copy engine's own copies between its ring and the device: they are parts of calls that are
  // in the recording. Which device's record is one, only its time and direction say.
  void mark_blocks() {
    constexpr std::int64_t latest_block_ns = 100'000;  // behind the call's end
    std::int64_t to_device_until = std::numeric_limits<std::int64_t>::min();
    std::int64_t to_host_until = to_device_until;
    for (const auto index : order_) {
      const auto& event = recorded_.events[index];
      if (!carries(index)) {
        continue;
      }
      const auto way = ends(index).direction;
      if (way != direction::host_to_device && way != direction::device_to_host) {
        continue;
      }
      auto& until = way == direction::host_to_device ? to_device_until : to_host_until;
      if (sources_[event.call] == source_of_event::device) {
        links_[index].is_block = event.begin <= until;
      } else if (is_fixed(event)) {
        until = std::max(until, recorded_.end_of(event) + latest_block_ns);
      }
    }
  }

  void match() {
    links_.resize(recorded_.events.size());
    mark_blocks();
    std::vector<asked_copy> asked;
    std::vector<std::uint32_t> asked_events;
    std::vector<made_copy> made;
    std::vector<std::uint32_t> made_events;
    for (const auto index : order_) {
      const auto& event = recorded_.events[index];
      const auto from = sources_[event.call];
      if (!carries(index)) {
        continue;
      }
      if (is_fixed(event) || links_[index].is_block) {
        continue;  // the call itself says how long its copy took
      }
      if (from == source_of_event::call && event.status == 0) {
        asked.push_back(asked_by(index));
        asked_events.push_back(index);
      } else if (from == source_of_event::device) {
        made.push_back(made_by(index));
        made_events.push_back(index);
      }
    }
    const auto calls = match_copies(asked, made);
    for (std::size_t place = 0; place < made.size(); ++place) {
      if (calls[place] != no_call) {
        auto& call = links_[asked_events[calls[place]]];
        if (call.correlation == 0) {
          call.correlation = 2 * ++correlations_;
        }
        call.is_matched = true;
        links_[made_events[place]].correlation = call.correlation;
        links_[made_events[place]].other = asked_events[calls[place]];
      }
    }
  }

  [[nodiscard]] carried what_is_carried(const event& which) const {
    return operations_[which.call].action == action::fill ? carried::fill : carried::copy;
  }

  [[nodiscard]] asked_copy asked_by(std::uint32_t index) const {
    const auto& event = recorded_.events[index];
    return {.begin = event.begin,
            .end = recorded_.end_of(event),
            .what = what_is_carried(event),
            .bytes = recorded_.get(event, role::bytes),
            .direction = ends(index).direction,
            .stream = recorded_.get(event, role::stream),
            .correlation = recorded_.get(event, role::correlation),
            .count = std::max<std::uint64_t>(1, recorded_.get(event, role::batch).value_or(1)),
            .completion = operations_[event.call].completion};
  }

  [[nodiscard]] made_copy made_by(std::uint32_t index) const {
    const auto& event = recorded_.events[index];
    return {.begin = event.begin,
            .what = what_is_carried(event),
            .bytes = recorded_.get(event, role::bytes),
            .direction = ends(index).direction,
            .stream = recorded_.get(event, role::call_stream),
            .correlation = recorded_.get(event, role::correlation)};
  }

  [[nodiscard]] copy_ends ends(std::uint32_t index) const {
    const auto& event = recorded_.events[index];
    return ends_of(recorded_, event, ranges_->of(index), operations_[event.call].way, known_);
  }

  void add(std::uint32_t index) {
    switch (sources_[recorded_.events[index].call]) {
      case source_of_event::call:
        return add_call(index);
      case source_of_event::device:
        return links_[index].is_block ? void() : add_activity(index);
      case source_of_event::recorder:
        return;
      case source_of_event::unknown:
        ++done_.unknown_apis;
        return;
    }
  }

  // --- Calls ------------------------------------------------------------------------------------

  void add_call(std::uint32_t index) {
    const auto& event = recorded_.events[index];
    const auto& what = operations_[event.call];
    new_event made;
    made.begin = event.begin;
    made.duration = event.duration;
    made.name = names_[event.call];
    made.thread = threads_[event.thread];
    made.status = event.status;
    made.call_site = sites_.of(recorded_.get(event, role::stack));
    made.correlation = correlation_of(index);
    made.kind = kind_of(what.action);
    if (const auto details = details_of_call(index)) {
      made.transfer = into_.add_transfer(*details);
    }
    const bool has_no_record = carries(index) && event.status == 0 && !links_[index].is_matched;
    if (has_no_record) {
      made.correlation = 2 * ++correlations_;
    }
    into_.add(made);
    if (has_no_record) {
      add_unrecorded(index, *made.correlation);
    }
  }

  static event_kind kind_of(action what) noexcept {
    switch (what) {
      case action::copy:
      case action::fill:
        return event_kind::copy_call;
      case action::allocate:
        return event_kind::allocation;
      case action::release:
      case action::release_range:
        return event_kind::free;
      case action::launch:
        return event_kind::launch_call;
      case action::synchronise:
        return event_kind::synchronisation;
      default:
        return event_kind::other_call;
    }
  }

  // The recorder's own numbers are odd in the trace, those of matched copies even.
  [[nodiscard]] std::optional<std::uint64_t> correlation_of(std::uint32_t index) const {
    if (links_[index].correlation != 0) {
      return links_[index].correlation;
    }
    const auto own = recorded_.get(recorded_.events[index], role::correlation);
    return own && !carries(index) ? std::optional(2 * *own + 1) : std::nullopt;
  }

  std::optional<transfer> details_of_call(std::uint32_t index) {
    const auto& event = recorded_.events[index];
    const auto& what = operations_[event.call];
    const auto& range = ranges_->of(index).destination;
    transfer details;
    details.bytes = believable(recorded_.get(event, role::bytes));
    details.destination_address = recorded_.get(event, role::memory);
    details.destination_kind = range ? range->kind : memory_kind::unknown;
    switch (what.action) {
      case action::allocate:
        details.destination_kind = what.memory;
        details.flags = recorded_.get(event, role::flags);
        return details;
      case action::release:
      case action::release_range:
        details.bytes = range ? believable(range->size) : details.bytes;
        return details;
      case action::advise:
        details.flags = recorded_.get(event, role::advice);
        return details;
      case action::prefetch:
        details.direction = to_host(event) ? direction::device_to_host : direction::host_to_device;
        return details;
      case action::ask_address:
        return details;
      default:
        return std::nullopt;
    }
  }

  [[nodiscard]] bool to_host(const event& which) const {
    constexpr auto host = std::numeric_limits<std::uint64_t>::max();  // -1
    const auto device = recorded_.get(which, role::device);
    return (device ? device : recorded_.get(which, role::location)) == host;
  }

  // A copy or fill of which no device has told.
  void add_unrecorded(std::uint32_t index, std::uint64_t correlation) {
    const auto& event = recorded_.events[index];
    const auto way = ends(index);
    transfer details = details_of_copy(index, way);
    // Of pageable memory the call itself carries the bytes, or waits for them.
    const bool blocks = operations_[event.call].completion == completion::in_call ||
                        details.host_kind() == memory_kind::pageable;
    details.time = blocks ? timing::call : timing::unknown;
    new_event made;
    made.kind = what_is_carried(event) == carried::fill ? event_kind::fill : event_kind::copy;
    made.name = name_of_activity(made.kind, details);
    made.stream = stream_of_call(event, way);
    made.correlation = correlation;
    const auto count = copies_of(event);
    const auto share = static_cast<std::int64_t>(count);
    const auto bytes = details.bytes;
    for (std::int64_t part = 0; part < share; ++part) {
      details.bytes =
          bytes ? std::optional(*bytes / count + (part == 0 ? *bytes % count : 0)) : std::nullopt;
      made.begin = event.begin + (blocks ? event.duration / share * part : 0);
      made.duration = blocks ? event.duration / share : 0;
      made.transfer = into_.add_transfer(details);
      into_.add(made);
      ++(blocks ? done_.by_call : done_.without_time);
    }
    done_.shared_bytes += count > 1 ? 1U : 0U;
  }

  std::uint64_t copies_of(const event& which) {
    const auto count = std::max<std::uint64_t>(1, recorded_.get(which, role::batch).value_or(1));
    if (count == 1) {
      return 1;
    }
    if (count > largest_batch || batched_ + count > most_batched) {
      ++done_.uncounted_batches;
      return 1;
    }
    batched_ += count;
    return count;
  }

  std::uint32_t stream_of_call(const event& which, const copy_ends& way) {
    stream where;
    where.device = way.device ? way.device : only_device_;
    if (const auto handle = recorded_.get(which, role::stream)) {
      const auto known = stream_numbers_.find(*handle);
      where.id =
          static_cast<std::int64_t>(known != stream_numbers_.end() ? known->second : *handle);
    }
    return into_.intern_stream(where);
  }

  // --- What both have ---------------------------------------------------------------------------

  // Sizes that cannot be true would break every sum over them.
  std::optional<bytes_t> believable(std::optional<std::uint64_t> bytes) {
    if (bytes && (*bytes > largest_transfer || bytes_sum_ > largest_sum)) {
      ++done_.absurd_bytes;
      return std::nullopt;
    }
    bytes_sum_ += bytes.value_or(0);
    return bytes;
  }

  // Of a call, or of a device's record alone.
  transfer details_of_copy(std::uint32_t index, const copy_ends& way) {
    const auto& event = recorded_.events[index];
    transfer details;
    details.bytes = believable(recorded_.get(event, role::bytes));
    if (what_is_carried(event) == carried::copy) {
      details.direction = way.direction;
      details.source_kind = way.source;
    }
    details.destination_kind = way.destination;
    take_call_details(event, details);
    if (known_ == ranges_known::some && details.direction != direction::unknown &&
        details.host_kind() == memory_kind::unknown && has_host_end(details.direction)) {
      ++done_.unknown_hosts;
    }
    return details;
  }

  static bool has_host_end(direction way) noexcept {
    return way == direction::host_to_device || way == direction::device_to_host;
  }

  void take_call_details(const event& which, transfer& details) const {
    details.source_address = recorded_.get(which, role::src);
    details.destination_address = recorded_.get(which, role::dst);
    details.content = recorded_.get(which, role::content);
    if (recorded_.get(which, role::fixed).value_or(0) == 1) {
      details.by = carrier::copy_engine;
    }
    if (const auto pages = recorded_.get(which, role::host_pages); pages && *pages <= 3) {
      details.pages = static_cast<host_pages>(*pages);
    }
    if (const auto node = recorded_.get(which, role::host_node); node && *node < (1U << 16)) {
      details.host_node = static_cast<std::int32_t>(*node);
    }
  }

  name_id name_of_activity(event_kind kind, const transfer& details) {
    const auto key =
        std::tuple(kind, details.direction, details.source_kind, details.destination_kind);
    const auto [place, is_new] = activity_names_.try_emplace(key, 0);
    if (is_new) {
      place->second = into_.intern(
          kind == event_kind::fill
              ? fmt::format("Memset ({})", name_of(details.destination_kind))
              : fmt::format("{} ({} -> {})", name_of(details.direction),
                            name_of(details.source_kind), name_of(details.destination_kind)));
    }
    return place->second;
  }

  // --- Device records ---------------------------------------------------------------------------

  void add_activity(std::uint32_t index) {
    const auto& event = recorded_.events[index];
    new_event made;
    made.begin = event.begin;
    made.duration = event.duration;
    made.stream = stream_of_record(event);
    made.correlation = correlation_of(index);
    made.name = names_[event.call];
    if (carries(index)) {
      return add_carried(index, made);
    }
    const auto& operation = recorded_.call_of(event).operation;
    if (operation == "kernel") {
      return add_kernel(event, made);
    }
    if (operation == "migration") {
      made.kind = event_kind::migration;
      transfer details;
      details.bytes = believable(recorded_.get(event, role::bytes));
      details.direction = ends(index).direction;
      details.source_kind = details.destination_kind = memory_kind::managed;
      details.destination_address = recorded_.get(event, role::memory);
      made.transfer = into_.add_transfer(details);
      into_.add(made);
      return;
    }
    ++done_.unknown_apis;
  }

  std::uint32_t stream_of_record(const event& which) {
    stream where;
    if (const auto device = recorded_.get(which, role::device); device && *device < no_row) {
      where.device = static_cast<std::uint32_t>(*device);
    }
    if (const auto number = recorded_.get(which, role::stream)) {
      where.id = static_cast<std::int64_t>(*number);
    }
    return into_.intern_stream(where);
  }

  void add_carried(std::uint32_t index, new_event made) {
    const auto& event = recorded_.events[index];
    const auto other = links_[index].other;
    const auto own = ends(index);
    transfer details = details_of_copy(index, other != no_row ? joined(ends(other), own) : own);
    if (other != no_row) {
      take_call_details(recorded_.events[other], details);
    }
    made.kind = what_is_carried(event) == carried::fill ? event_kind::fill : event_kind::copy;
    made.name = name_of_activity(made.kind, details);
    if (made.kind == event_kind::copy && is_by_dma(details)) {
      details.engine = engine::dma;
    }
    made.transfer = into_.add_transfer(details);
    into_.add(made);
  }

  // What CUPTI calls a copy is one of a copy engine; those by kernels are kernels to it. Managed
  // memory may be moved by other means.
  [[nodiscard]] bool is_by_dma(const transfer& details) const {
    const auto source = recorded_.coverage.find("device_times");
    return source != recorded_.coverage.end() && source->second == "cupti" &&
           has_host_end(details.direction) && details.source_kind != memory_kind::managed &&
           details.destination_kind != memory_kind::managed;
  }

  void add_kernel(const event& which, new_event made) {
    made.name = kernel_name(recorded_.get(which, role::name));
    const auto own = runtime_kernel(into_.text(made.name));
    made.kind = own.value_or(event_kind::kernel);
    if (own) {
      transfer details;
      details.engine = engine::kernel;
      made.transfer = into_.add_transfer(details);
    }
    into_.add(made);
  }

  name_id kernel_name(std::optional<std::uint64_t> id) {
    const auto text = id ? recorded_.strings.find(*id) : recorded_.strings.end();
    if (text == recorded_.strings.end()) {
      return into_.intern("kernel");
    }
    const auto [place, is_new] = kernel_names_.try_emplace(*id, 0);
    if (is_new) {
      place->second = into_.intern(demangled(text->second));
    }
    return place->second;
  }

  const content& recorded_;
  ranges_known known_;
  trace& into_;
  call_sites sites_;
  std::vector<operation> operations_;     // of each call
  std::vector<source_of_event> sources_;  // of each call
  std::vector<name_id> names_;            // of each call
  std::vector<std::uint32_t> threads_;    // of each thread of the recording
  std::optional<replayed> ranges_;
  std::vector<std::uint32_t> order_;
  std::vector<link> links_;  // of each event
  std::optional<std::uint32_t> only_device_;
  std::unordered_map<std::uint64_t, std::uint64_t> stream_numbers_;
  std::map<std::tuple<event_kind, direction, memory_kind, memory_kind>, name_id> activity_names_;
  std::unordered_map<std::uint64_t, name_id> kernel_names_;
  std::uint64_t correlations_ = 0;
  std::uint64_t batched_ = 0;
  bytes_t bytes_sum_ = 0;
  conversion done_;
};

}  // namespace

conversion convert(const content& recorded, ranges_known known, trace& into) {
  return converter(recorded, known, into).run();
}

}  // namespace berth::trace::recording
