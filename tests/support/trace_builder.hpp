// SPDX-License-Identifier: Apache-2.0
// Writes small traces for tests, event by event:
//
//   trace_builder().h2d(0ms, 5ms, 50 * mb).called(0ms, 5ms, "cudaMemcpy").kernel(5ms, 10ms)
//
// Device activities go to the device and stream of the last `on`, host events to the thread of the
// last `on_thread`. `called`, `host_address` and the like are about the device activity that was
// added last; `failed` is about the call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"
#include "trace/trace.hpp"

namespace berth::test {

using std::chrono::nanoseconds;
using bytes_or_unknown = std::optional<bytes_t>;

inline constexpr bytes_t mb = 1'000'000;  // round numbers at rates in GB/s

class trace_builder {
public:
  trace_builder() = default;
  // A trace's table of names does not survive a copy.
  trace_builder(const trace_builder&) = delete;
  trace_builder& operator=(const trace_builder&) = delete;
  trace_builder(trace_builder&&) = default;
  trace_builder& operator=(trace_builder&&) = default;
  ~trace_builder() = default;

  trace_builder& pytorch() {
    events_.about.framework = "PyTorch";
    return *this;
  }
  trace_builder& framework(std::string name) {
    events_.about.framework = std::move(name);
    return *this;
  }
  // What berth's recorder says: "environment.HSA_XNACK".
  trace_builder& fact(std::string key, std::string value) {
    events_.about.facts.insert_or_assign(std::move(key), std::move(value));
    return *this;
  }
  trace_builder& api(trace::gpu_api which) {
    events_.about.api = which;
    return *this;
  }
  trace_builder& gpu(std::string name) {
    const auto index = static_cast<std::uint32_t>(events_.about.devices.size());
    events_.about.devices.push_back({.index = index, .name = std::move(name), .memory = {}});
    return *this;
  }

  trace_builder& on(std::optional<std::uint32_t> device, std::optional<std::int64_t> stream) {
    stream_ = events_.intern_stream({.device = device, .id = stream});
    return *this;
  }
  trace_builder& on_thread(std::string_view id) {
    thread_ = events_.intern_thread("process", id);
    return *this;
  }

  trace_builder& h2d(nanoseconds at, nanoseconds duration, bytes_or_unknown bytes,
                     memory_kind host = memory_kind::pageable) {
    return copy(at, duration, bytes, direction::host_to_device, host, memory_kind::device);
  }
  trace_builder& d2h(nanoseconds at, nanoseconds duration, bytes_or_unknown bytes,
                     memory_kind host = memory_kind::pageable) {
    return copy(at, duration, bytes, direction::device_to_host, memory_kind::device, host);
  }
  trace_builder& copy(nanoseconds at, nanoseconds duration, bytes_or_unknown bytes, direction way,
                      memory_kind source, memory_kind destination) {
    trace::transfer details;
    details.bytes = bytes;
    details.direction = way;
    details.source_kind = source;
    details.destination_kind = destination;
    return device_activity(trace::event_kind::copy, at, duration, details);
  }
  trace_builder& kernel(nanoseconds at, nanoseconds duration) {
    return device_activity(trace::event_kind::kernel, at, duration, std::nullopt);
  }
  trace_builder& fill(nanoseconds at, nanoseconds duration) {
    return device_activity(trace::event_kind::fill, at, duration, trace::transfer{});
  }

  // Where the host end of the last copy lies.
  trace_builder& host_address(std::uint64_t address) {
    auto& details = *activities_.back().details;
    (details.direction == direction::device_to_host ? details.destination_address
                                                    : details.source_address) = address;
    return *this;
  }
  // Where the other end does.
  trace_builder& device_address(std::uint64_t address) {
    auto& details = *activities_.back().details;
    (details.direction == direction::device_to_host ? details.source_address
                                                    : details.destination_address) = address;
    return *this;
  }
  trace_builder& content(std::uint64_t hash) {
    activities_.back().details->content = hash;
    return *this;
  }
  trace_builder& pages(trace::host_pages pages) {
    activities_.back().details->pages = pages;
    return *this;
  }
  trace_builder& host_node(std::int32_t node) {
    activities_.back().details->host_node = node;
    return *this;
  }
  trace_builder& by(engine carrier) {
    activities_.back().details->engine = carrier;
    return *this;
  }
  // By berth's copy engine in place of the runtime.
  trace_builder& fixed() {
    activities_.back().details->by = trace::carrier::copy_engine;
    return *this;
  }
  // Where the time of the last copy or fill comes from.
  trace_builder& timed_by(trace::timing how) {
    activities_.back().details->time = how;
    return *this;
  }
  // The stack of the last call, innermost frame first.
  trace_builder& from(const std::vector<std::string>& frames) {
    std::vector<trace::name_id> names;
    for (const auto& frame : frames) {
      names.push_back(events_.intern(frame));
    }
    calls_.back().call_site = events_.intern_call_site(std::move(names));
    return *this;
  }
  // The call that asked for the last device activity.
  trace_builder& called(nanoseconds at, nanoseconds duration,
                        std::string_view name = "hipMemcpyWithStream",
                        trace::event_kind kind = trace::event_kind::copy_call) {
    activities_.back().event.correlation = ++correlations_;
    calls_.push_back(host(kind, at, duration, name));
    calls_.back().correlation = correlations_;
    return *this;
  }

  trace_builder& synchronised(nanoseconds at, nanoseconds duration) {
    calls_.push_back(
        host(trace::event_kind::synchronisation, at, duration, "hipStreamSynchronize"));
    return *this;
  }
  trace_builder& launch(nanoseconds at, nanoseconds duration) {
    calls_.push_back(host(trace::event_kind::launch_call, at, duration, "hipLaunchKernel"));
    return *this;
  }
  trace_builder& range_of_operator(nanoseconds at, nanoseconds duration, std::string_view name) {
    calls_.push_back(host(trace::event_kind::operator_range, at, duration, name));
    return *this;
  }
  trace_builder& range_of_python(nanoseconds at, nanoseconds duration, std::string_view name) {
    calls_.push_back(host(trace::event_kind::python_range, at, duration, name));
    return *this;
  }

  trace_builder& allocated(nanoseconds at, nanoseconds duration, std::string_view name,
                           std::uint64_t address, bytes_or_unknown bytes,
                           std::optional<std::uint64_t> flags = {}) {
    trace::transfer details;
    details.bytes = bytes;
    details.flags = flags;
    details.destination_address = address;
    return memory_call(trace::event_kind::allocation, at, duration, name, details);
  }
  // `found`: what the memory really is.
  trace_builder& freed(nanoseconds at, nanoseconds duration, std::string_view name,
                       std::uint64_t address, memory_kind found = memory_kind::unknown) {
    trace::transfer details;
    details.destination_address = address;
    details.destination_kind = found;
    return memory_call(trace::event_kind::free, at, duration, name, details);
  }
  // Any other call about memory: hipHostRegister, hipMemPrefetchAsync, hipHostGetDevicePointer.
  trace_builder& called_about(nanoseconds at, nanoseconds duration, std::string_view name,
                              std::uint64_t address, bytes_or_unknown bytes = {}) {
    trace::transfer details;
    details.bytes = bytes;
    details.destination_address = address;
    return memory_call(trace::event_kind::other_call, at, duration, name, details);
  }
  trace_builder& migration(nanoseconds at, nanoseconds duration, bytes_or_unknown bytes = {},
                           direction way = direction::unknown) {
    trace::transfer details;
    details.bytes = bytes;
    details.direction = way;
    return device_activity(trace::event_kind::migration, at, duration, details);
  }
  // The last call.
  trace_builder& failed(std::int32_t status) {
    calls_.back().status = status;
    return *this;
  }
  // Where in the program the last call stands, innermost first.
  trace_builder& at_frames(const std::vector<std::string>& frames) {
    std::vector<trace::name_id> ids;
    for (const auto& frame : frames) {
      ids.push_back(events_.intern(frame));
    }
    calls_.back().call_site = events_.intern_call_site(std::move(ids));
    return *this;
  }

  // Gives the trace away.
  [[nodiscard]] trace::trace build() {
    for (auto& [event, details] : activities_) {
      if (details) {
        event.transfer = events_.add_transfer(*details);
      }
      events_.add(event);
    }
    for (const auto& event : calls_) {
      events_.add(event);
    }
    return std::move(events_);
  }

private:
  struct activity {
    trace::new_event event;
    std::optional<trace::transfer> details;
  };

  trace_builder& memory_call(trace::event_kind kind, nanoseconds at, nanoseconds duration,
                             std::string_view name, const trace::transfer& details) {
    calls_.push_back(host(kind, at, duration, name));
    calls_.back().transfer = events_.add_transfer(details);
    return *this;
  }
  trace_builder& device_activity(trace::event_kind kind, nanoseconds at, nanoseconds duration,
                                 std::optional<trace::transfer> details) {
    trace::new_event made;
    made.kind = kind;
    made.begin = at.count();
    made.duration = duration.count();
    made.stream = stream_;
    activities_.push_back({made, details});
    return *this;
  }
  trace::new_event host(trace::event_kind kind, nanoseconds at, nanoseconds duration,
                        std::string_view name) {
    trace::new_event made;
    made.kind = kind;
    made.begin = at.count();
    made.duration = duration.count();
    made.name = events_.intern(name);
    made.thread = thread_;
    return made;
  }

  trace::trace events_;
  std::uint32_t stream_ = events_.intern_stream({.device = 0, .id = 7});
  std::uint32_t thread_ = events_.intern_thread("process", "main");
  std::uint64_t correlations_ = 0;
  std::vector<activity> activities_;
  std::vector<trace::new_event> calls_;
};

}  // namespace berth::test
