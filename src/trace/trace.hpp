// SPDX-License-Identifier: Apache-2.0
// The event model: what a program did with its GPU memory, whoever recorded it.
//
// A trace is columnar: one row an event, one vector a property, so that millions of events fit into
// little memory and a rule reads only the columns that it needs. Properties that only events which
// move or hold bytes have (sizes, kinds, addresses) stand in a second table, `transfers`.
//
// Words: a *device activity* runs on a GPU's clock (copy, fill, kernel, migration); a *host event*
// runs on a thread (calls, synchronisations, allocations, ranges). A *correlation* is the
// recorder's number that ties a device activity to the call that started it. All times are
// nanoseconds of the trace's own clock. Whatever a source may lack is optional here: unknown is
// never a number.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth::trace {

enum class event_kind : std::uint8_t {
  // Device activities.
  copy,
  fill,
  kernel,
  migration,  // pages of managed memory that moved
  // Host events.
  allocation,
  free,
  synchronisation,  // a thread waits for a stream, an event or a device
  copy_call,        // the call that asked for a copy or a fill
  launch_call,      // the call that asked for a kernel
  other_call,
  // Ranges of host code, which nest on their thread.
  operator_range,  // a framework's operator: aten::to
  python_range,    // a Python function: train.py(12): step
  user_range,      // an annotation by the program
};

[[nodiscard]] constexpr bool is_device_activity(event_kind kind) noexcept {
  return kind <= event_kind::migration;
}

// Rows are addressed by 32 bits: 4 billion events are beyond what one report can say.
using row = std::uint32_t;
inline constexpr row no_row = std::numeric_limits<row>::max();

// Index into the trace's table of names.
using name_id = std::uint32_t;

// Where the time of a copy or fill comes from.
enum class timing : std::uint8_t {
  device,   // the device's own begin and end
  call,     // how long the call blocked its thread, and no more is known
  unknown,  // asynchronous, and nobody has measured it: its duration is 0
};

// What the pages of a copy's host end were when it began.
enum class host_pages : std::uint8_t {
  unknown,
  resident,
  fresh,    // never touched: the copy takes page faults, too
  of_file,  // of a mapped file
};

// Who made a copy: the program's runtime, or berth's copy engine in its place (berth run --fix).
enum class carrier : std::uint8_t { runtime, copy_engine };

// What only events that move or hold bytes have.
struct transfer {
  std::optional<bytes_t> bytes;
  berth::direction direction = direction::unknown;
  memory_kind source_kind = memory_kind::unknown;
  memory_kind destination_kind = memory_kind::unknown;
  berth::engine engine = engine::unknown;
  std::optional<std::uint64_t> source_address;
  std::optional<std::uint64_t> destination_address;  // also what is filled, allocated or freed
  timing time = timing::device;
  berth::trace::host_pages pages = host_pages::unknown;  // of the end on the host
  std::optional<std::int32_t> host_node;                 // NUMA node of that end
  std::optional<std::uint64_t> content;                  // hash of samples of the source
  std::optional<std::uint64_t> flags;                    // of an allocation, as the call had them
  carrier by = carrier::runtime;

  // The kind of the end that is on the host; unknown where none is.
  [[nodiscard]] memory_kind host_kind() const noexcept;
};

// A thread of a process. Recorders name them by numbers or by words.
struct thread {
  std::string process;
  std::string id;
};

// A stream of a device; nothing where the source does not say.
struct stream {
  std::optional<std::uint32_t> device;
  std::optional<std::int64_t> id;
};

struct device {
  std::uint32_t index = 0;
  std::string name;  // as the runtime prints it: "NVIDIA H200"
  std::optional<bytes_t> memory;
};

// Where in the program something was called: frames as the source prints them, innermost first.
struct call_site {
  std::vector<name_id> frames;
};

enum class gpu_api : std::uint8_t { unknown, cuda, hip };

// What is known of the trace as a whole.
struct metadata {
  std::string file;
  std::string format;     // "PyTorch/Kineto Chrome trace"
  std::string framework;  // "PyTorch"; empty if none is known
  gpu_api api = gpu_api::unknown;
  std::string api_version;  // "13.0"; empty if unknown
  std::vector<device> devices;
  std::optional<std::int64_t> rank;  // of a distributed job
  // What berth's recorder says of the process and of what it could watch: keys of
  // docs/trace-format.md ("process.program", "coverage.device_times", "environment.HSA_XNACK").
  std::map<std::string, std::string, std::less<>> facts;
  std::vector<std::string> notes;  // what the source lacks and what was done about it
};

// One event on its way into a trace.
struct new_event {
  event_kind kind = event_kind::other_call;
  std::int64_t begin = 0;
  std::int64_t duration = 0;
  name_id name = 0;
  std::uint32_t thread = no_row;
  std::uint32_t stream = no_row;
  std::optional<std::uint64_t> correlation;
  std::uint32_t transfer = no_row;
  std::uint32_t call_site = no_row;
  std::int32_t status = 0;  // of a call that failed: the runtime's own number
};

class trace {
public:
  trace();
  // Not copied: the keys of the table of names point into the names. Moving keeps them in place.
  trace(const trace&) = delete;
  trace& operator=(const trace&) = delete;
  trace(trace&&) = default;
  trace& operator=(trace&&) = default;
  ~trace() = default;

  metadata about;

  // Takes memory for this many events in all.
  void reserve(std::size_t events);
  // Appends and returns the event's row. @errors none; 2^32-1 rows at most (asserted)
  row add(const new_event& event);
  std::uint32_t add_transfer(const transfer& details);
  // The same text always gives the same id; id 0 is the empty text.
  name_id intern(std::string_view text);
  std::uint32_t intern_thread(std::string_view process, std::string_view id);
  std::uint32_t intern_stream(const stream& which);
  std::uint32_t intern_call_site(std::vector<name_id> frames);

  [[nodiscard]] std::size_t size() const noexcept { return kinds_.size(); }
  [[nodiscard]] bool empty() const noexcept { return kinds_.empty(); }

  [[nodiscard]] event_kind kind(row index) const noexcept { return kinds_[index]; }
  [[nodiscard]] std::int64_t begin(row index) const noexcept { return begins_[index]; }
  [[nodiscard]] std::int64_t duration(row index) const noexcept { return durations_[index]; }
  [[nodiscard]] std::int64_t end(row index) const noexcept {
    return begins_[index] + durations_[index];
  }
  [[nodiscard]] name_id name(row index) const noexcept { return names_[index]; }
  [[nodiscard]] std::string_view name_text(row index) const noexcept { return text(names_[index]); }
  [[nodiscard]] std::optional<std::uint32_t> thread_of(row index) const noexcept;
  [[nodiscard]] stream stream_of(row index) const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> correlation(row index) const noexcept;
  // The runtime's own number of a call that failed; 0 for all others.
  [[nodiscard]] std::int32_t status(row index) const noexcept;
  // Null where the source has no stack for the event.
  [[nodiscard]] const call_site* site(row index) const noexcept;
  // Null for events that neither move nor hold bytes.
  [[nodiscard]] const transfer* details(row index) const noexcept;
  [[nodiscard]] transfer* details(row index) noexcept;

  [[nodiscard]] std::span<const event_kind> kinds() const noexcept { return kinds_; }
  [[nodiscard]] std::string_view text(name_id id) const noexcept { return texts_[id]; }
  [[nodiscard]] std::size_t name_count() const noexcept { return texts_.size(); }
  [[nodiscard]] const thread& thread_at(std::uint32_t index) const noexcept {
    return threads_[index];
  }
  [[nodiscard]] std::size_t thread_count() const noexcept { return threads_.size(); }

private:
  std::vector<event_kind> kinds_;
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> durations_;
  std::vector<name_id> names_;
  std::vector<std::uint32_t> thread_indices_;
  std::vector<std::uint32_t> stream_indices_;
  std::vector<std::uint64_t> correlations_;  // no_correlation where unknown
  std::vector<std::uint32_t> transfer_indices_;
  std::vector<std::uint32_t> site_indices_;

  std::unordered_map<row, std::int32_t> failures_;  // few, if the program is right

  std::vector<transfer> transfers_;
  std::vector<thread> threads_;
  std::vector<stream> streams_;
  std::vector<berth::trace::call_site> sites_;

  // A deque keeps every text at its address, which the keys of the map point to.
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, name_id> text_ids_;
  std::unordered_map<std::string, std::uint32_t> thread_ids_;
  std::map<std::pair<std::optional<std::uint32_t>, std::optional<std::int64_t>>, std::uint32_t>
      stream_ids_;
  std::map<std::vector<name_id>, std::uint32_t> site_ids_;
};

}  // namespace berth::trace
