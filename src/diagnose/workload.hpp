// SPDX-License-Identifier: Apache-2.0
// A trace prepared for the rules: copies in order of time with the calls that started them and the
// places in the program, when each device was busy with what, and the totals that a report opens
// with. Built once; rules only read it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/interval.hpp"
#include "diagnose/expectation.hpp"
#include "diagnose/frames.hpp"
#include "diagnose/joined_machine.hpp"
#include "trace/trace.hpp"

namespace berth::diagnose {

inline constexpr std::uint32_t no_device = trace::no_row;

struct copy {
  trace::row event;
  std::int64_t begin;
  std::int64_t end;
  const trace::transfer* details;  // owned by the trace
  std::uint32_t device;            // no_device where unknown
  std::optional<std::int64_t> stream;

  // The call that started it, and the synchronisation that waits for it right behind that call.
  trace::row call = trace::no_row;
  trace::row wait = trace::no_row;
  // The outermost operator and the innermost function of the program around the call; where no
  // function of the program is known, a library's.
  trace::row framework_operator = trace::no_row;
  stack_place place = {};
  // Part of [begin, end) in which the copy cannot have run: kernels of its own stream did. Where
  // kernels have no times, what a blocking call took beyond what its memory explains, if it may
  // have waited for kernels.
  std::int64_t queued_ns = 0;

  [[nodiscard]] constexpr std::int64_t duration() const noexcept { return end - begin; }
  // What it took without the time in which it only waited.
  [[nodiscard]] constexpr std::int64_t working_ns() const noexcept {
    return duration() - queued_ns;
  }
  // False where nobody has measured it: its bytes count, and no time.
  [[nodiscard]] bool has_time() const noexcept { return details->time != trace::timing::unknown; }
  // And of a known time, for rules judge by it.
  [[nodiscard]] bool between_host_and_device() const noexcept {
    return has_time() && (details->direction == direction::host_to_device ||
                          details->direction == direction::device_to_host);
  }
  [[nodiscard]] memory_kind host_kind() const noexcept { return details->host_kind(); }
};

// Copies with the same direction and kinds.
struct copy_group {
  berth::direction direction;
  memory_kind source;
  memory_kind destination;
  std::uint64_t count = 0;
  bytes_t bytes = 0;                    // of the copies that know theirs
  std::uint64_t without_bytes = 0;      // copies that do not
  std::int64_t time_ns = 0;             // sum of durations
  std::int64_t time_with_bytes_ns = 0;  // of the copies that know their bytes
  std::uint64_t without_time = 0;       // copies whose time nobody has measured
  bytes_t bytes_with_time = 0;          // of the copies that know both

  // Of the copies that know their bytes and their time; nothing if none does.
  [[nodiscard]] std::optional<double> rate() const noexcept;
};

struct totals {
  std::uint64_t events = 0;
  std::uint64_t kernels = 0;
  std::uint64_t fills = 0;
  std::uint64_t launches = 0;         // calls that asked for kernels
  std::uint64_t timed_by_device = 0;  // activities whose time is the device's own
  std::uint64_t timed_by_calls = 0;   // copies whose time is how long the call blocked its thread
  std::uint64_t without_time = 0;     // copies whose time nobody has measured
  // Busy times are lengths of unions, added over devices: work side by side on one device counts
  // once.
  std::int64_t kernel_busy_ns = 0;
  std::int64_t copy_busy_ns = 0;
  std::int64_t busy_ns = 0;                 // kernels, copies and fills
  std::int64_t copy_beside_kernels_ns = 0;  // copies while a kernel ran on the same device
  // First to last device activity; where no device has told its times, first to last event.
  std::int64_t span_ns = 0;
  std::uint32_t devices = 0;       // that were active
  std::vector<copy_group> copies;  // by falling time

  // Whether the busy times are a device's own. Otherwise they say how long calls blocked.
  [[nodiscard]] bool has_device_times() const noexcept {
    return timed_by_device > 0 || timed_by_calls + without_time == 0;
  }
};

class workload {
public:
  // `seen` may be null: the machine that the trace was made on.
  workload(const trace::trace& events, const machine::machine_profile* profile,
           const machine::survey* seen = nullptr);

  [[nodiscard]] const trace::trace& events() const noexcept { return *events_; }
  // Null where no machine was given, or one that has none of the trace's GPUs.
  [[nodiscard]] const joined_machine* machine() const noexcept {
    return machine_ && machine_->fits() ? &*machine_ : nullptr;
  }
  [[nodiscard]] const joined_machine* machine_as_given() const noexcept {
    return machine_ ? &*machine_ : nullptr;
  }
  [[nodiscard]] const expectation& expected() const noexcept { return expected_; }
  [[nodiscard]] const diagnose::totals& totals() const noexcept { return totals_; }
  // By ascending begin.
  [[nodiscard]] std::span<const copy> copies() const noexcept { return copies_; }
  // When kernels of the program ran on a device.
  [[nodiscard]] const interval_set& kernels_of(std::uint32_t device) const;
  // Share of the span; 0 for an empty span.
  [[nodiscard]] double share_of_span(std::int64_t time_ns) const noexcept;

  // "aten::to at train.py(12): step"; "cudaMemcpy" where only the call is known; "unknown place".
  [[nodiscard]] std::string describe_place(const copy& which) const;

private:
  void collect();
  void join_calls();
  void find_places();
  void find_sites();
  void find_queued();
  void find_blocked();
  [[nodiscard]] std::int64_t own_time(const copy& which) const;
  void sum_up();
  void count_copy(const copy& which, copy_group& group);
  [[nodiscard]] interval span_of_all() const;

  const trace::trace* events_;
  std::optional<joined_machine> machine_;
  expectation expected_;
  diagnose::totals totals_;
  std::vector<copy> copies_;
  std::map<std::uint32_t, interval_set> kernels_;
  std::map<std::pair<std::uint32_t, std::int64_t>, interval_set> stream_kernels_;
  std::map<std::uint32_t, interval_set> fills_;
};

}  // namespace berth::diagnose
