// SPDX-License-Identifier: Apache-2.0
#include "diagnose/workload.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace berth::diagnose {
namespace {

using trace::event_kind;
using trace::no_row;
using trace::row;

using intervals_by_device = std::map<std::uint32_t, std::vector<interval>>;

std::map<std::uint32_t, interval_set> sets_of(intervals_by_device&& raw) {
  std::map<std::uint32_t, interval_set> sets;
  for (auto& [device, parts] : std::move(raw)) {
    sets.emplace(device, interval_set(std::move(parts)));
  }
  return sets;
}

const interval_set& of_device(const std::map<std::uint32_t, interval_set>& sets,
                              std::uint32_t device) {
  static const interval_set none;
  const auto found = sets.find(device);
  return found != sets.end() ? found->second : none;
}

// A host event on its thread, in the order in which ranges nest.
struct on_thread {
  std::uint32_t thread;
  std::int64_t begin;
  std::int64_t end;
  row event;

  friend bool operator<(const on_thread& a, const on_thread& b) noexcept {
    // Of two ranges that begin together the longer is the outer one.
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  }
};

on_thread placed(const trace::trace& events, row index) {
  return {events.thread_of(index).value_or(no_row), events.begin(index), events.end(index), index};
}

// The ranges that are open on a thread at some moment, outermost first. What is asked of them is
// kept with each range, so that deep nesting costs no more than shallow.
class open_ranges {
public:
  explicit open_ranges(const trace::trace& events) : events_(events) {}

  void close_until(std::uint32_t thread, std::int64_t time) {
    if (thread != thread_) {
      open_.clear();
      thread_ = thread;
    }
    while (!open_.empty() && events_.end(open_.back().event) <= time) {
      open_.pop_back();
    }
  }

  void open(row range) {
    const row above = outermost_operator();
    const bool is_operator = events_.kind(range) == event_kind::operator_range;
    open_.push_back({range, above == no_row && is_operator ? range : above, std::nullopt});
  }

  [[nodiscard]] row outermost_operator() const {
    return open_.empty() ? no_row : open_.back().outermost_operator;
  }

  // The innermost function that is not a library's; 0 if none is known.
  [[nodiscard]] trace::name_id innermost_function() {
    auto known = open_.rbegin();
    while (known != open_.rend() && !known->innermost_function) {
      ++known;
    }
    trace::name_id innermost = known != open_.rend() ? *known->innermost_function : 0;
    for (auto range = known.base(); range != open_.end(); ++range) {
      if (const auto own = function_of(range->event); own != 0) {
        innermost = own;
      }
      range->innermost_function = innermost;
    }
    return innermost;
  }

private:
  struct open_range {
    row event;
    row outermost_operator;                            // of this range and those around it
    std::optional<trace::name_id> innermost_function;  // the same; nothing if not yet looked for
  };

  // The program's function that the range itself names; 0 if it names none.
  [[nodiscard]] trace::name_id function_of(row range) const {
    if (events_.kind(range) == event_kind::python_range &&
        owner_of_frame(events_.name_text(range)) == frame_owner::program) {
      return events_.name(range);
    }
    const auto* const site = events_.site(range);
    return site != nullptr ? own_frame(events_, *site) : 0;
  }

  const trace::trace& events_;
  std::vector<open_range> open_;
  std::uint32_t thread_ = no_row;
};

// A call or a copy, by the recorder's number.
struct correlated {
  std::uint64_t correlation;
  std::int64_t time;
  std::uint32_t index;

  friend bool operator<(const correlated& a, const correlated& b) noexcept {
    // Of calls that begin together the first in the file counts: it stands last.
    return std::tie(a.correlation, a.time, b.index) < std::tie(b.correlation, b.time, a.index);
  }
};

template <typename Element>
void sort_unless_sorted(std::vector<Element>& elements) {
  // Recorders write most things in order.
  if (!std::is_sorted(elements.begin(), elements.end())) {
    std::sort(elements.begin(), elements.end());
  }
}

}  // namespace

std::optional<double> copy_group::rate() const noexcept {
  if (bytes_with_time == 0 || time_with_bytes_ns <= 0) {
    return std::nullopt;
  }
  return gb_per_s(bytes_with_time, std::chrono::nanoseconds(time_with_bytes_ns));
}

workload::workload(const trace::trace& events, const machine::machine_profile* profile,
                   const machine::survey* seen)
    : events_(&events),
      machine_(seen != nullptr ? std::optional<joined_machine>(std::in_place, events, *seen)
                               : std::nullopt),
      expected_(events, profile, machine_ ? &*machine_ : nullptr) {
  collect();
  join_calls();
  find_places();
  find_sites();
  find_queued();
  sum_up();
}

void workload::collect() {
  intervals_by_device kernels;
  intervals_by_device fills;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<interval>> by_stream;
  const auto& events = *events_;
  for (row index = 0; index < events.size(); ++index) {
    const auto kind = events.kind(index);
    const auto* const details = events.details(index);
    totals_.timed_by_device +=
        is_device_activity(kind) && (details == nullptr || details->time == trace::timing::device)
            ? 1U
            : 0U;
    totals_.launches += kind == event_kind::launch_call ? 1U : 0U;
    if (!is_device_activity(kind)) {
      continue;
    }
    const auto where = events.stream_of(index);
    const auto device = where.device.value_or(no_device);
    const interval busy{events.begin(index), events.end(index)};
    if (kind == event_kind::kernel) {
      ++totals_.kernels;
      kernels[device].push_back(busy);
      if (where.id) {
        by_stream[{device, *where.id}].push_back(busy);
      }
    } else if (kind == event_kind::copy) {
      copies_.push_back({.event = index,
                         .begin = busy.begin,
                         .end = details->time == trace::timing::unknown ? busy.begin : busy.end,
                         .details = events.details(index),
                         .device = device,
                         .stream = where.id});
    } else if (kind == event_kind::fill) {
      ++totals_.fills;
      fills[device].push_back(busy);
    }
  }
  std::sort(copies_.begin(), copies_.end(), [](const copy& a, const copy& b) {
    return std::tie(a.begin, a.event) < std::tie(b.begin, b.event);
  });
  kernels_ = sets_of(std::move(kernels));
  fills_ = sets_of(std::move(fills));
  for (auto& [stream, parts] : by_stream) {
    stream_kernels_.emplace(stream, interval_set(std::move(parts)));
  }
}

// Recorders start their numbers anew now and then: of several calls with a copy's number the latest
// that began before the copy's end is its own.
void workload::join_calls() {
  const auto& events = *events_;
  std::vector<correlated> wanted;
  for (std::uint32_t index = 0; index < copies_.size(); ++index) {
    if (const auto correlation = events.correlation(copies_[index].event)) {
      wanted.push_back({*correlation, copies_[index].end, index});
    }
  }
  std::vector<correlated> calls;
  for (row index = 0; !wanted.empty() && index < events.size(); ++index) {
    const auto kind = events.kind(index);
    // AMD's runtime may copy by a kernel that a launch started.
    if (kind != event_kind::copy_call && kind != event_kind::launch_call) {
      continue;
    }
    if (const auto correlation = events.correlation(index)) {
      calls.push_back({*correlation, events.begin(index), index});
    }
  }
  sort_unless_sorted(wanted);
  sort_unless_sorted(calls);
  auto next = calls.begin();
  for (const auto& which : wanted) {
    const auto place = std::pair(which.correlation, which.time);
    while (next != calls.end() && std::pair(next->correlation, next->time) <= place) {
      ++next;
    }
    if (next != calls.begin() && std::prev(next)->correlation == which.correlation) {
      copies_[which.index].call = std::prev(next)->index;
    }
  }
}

void workload::find_places() {
  const auto& events = *events_;
  std::vector<std::pair<on_thread, std::uint32_t>> calls;
  std::vector<char> has_copies(events.thread_count(), 0);
  for (std::uint32_t index = 0; index < copies_.size(); ++index) {
    if (copies_[index].call != no_row) {
      calls.emplace_back(placed(events, copies_[index].call), index);
      if (calls.back().first.thread < has_copies.size()) {
        has_copies[calls.back().first.thread] = 1;
      }
    }
  }
  std::vector<on_thread> ranges;
  std::vector<on_thread> waits;
  for (row index = 0; index < events.size(); ++index) {
    const auto kind = events.kind(index);
    const auto thread = events.thread_of(index);
    if (!thread || has_copies[*thread] == 0) {
      continue;
    }
    if (kind == event_kind::operator_range || kind == event_kind::python_range) {
      ranges.push_back(placed(events, index));
    } else if (kind == event_kind::synchronisation || kind == event_kind::launch_call ||
               kind == event_kind::copy_call) {
      waits.push_back(placed(events, index));
    }
  }
  sort_unless_sorted(calls);
  sort_unless_sorted(ranges);
  sort_unless_sorted(waits);

  open_ranges open(events);
  auto range = ranges.begin();
  auto next = waits.begin();
  for (const auto& [call, index] : calls) {
    for (; range != ranges.end() && *range < call; ++range) {
      open.close_until(range->thread, range->begin);
      open.open(range->event);
    }
    open.close_until(call.thread, call.begin);
    copies_[index].framework_operator = open.outermost_operator();
    copies_[index].place.function = open.innermost_function();
    // What the thread does right behind the call: if it waits, it waits for this copy.
    while (next != waits.end() && !(call < *next)) {
      ++next;
    }
    if (next != waits.end() && next->thread == call.thread &&
        events.kind(next->event) == event_kind::synchronisation) {
      copies_[index].wait = next->event;
    }
  }
}

// Where no range names the function, the call's own stack may.
void workload::find_sites() {
  const auto& events = *events_;
  for (auto& which : copies_) {
    const auto* const site = which.call != no_row ? events.site(which.call) : nullptr;
    if (!which.place.is_known() && site != nullptr) {
      which.place = place_in(events, *site);
    }
  }
}

void workload::find_queued() {
  for (auto& which : copies_) {
    if (which.stream) {
      const auto found = stream_kernels_.find({which.device, *which.stream});
      if (found != stream_kernels_.end()) {
        which.queued_ns = found->second.covered({which.begin, which.end});
      }
    }
  }
  if (totals_.kernels == 0) {
    find_blocked();
  }
}

// Where kernels have no times, it is unknown for how long a blocking call waited for those that its
// thread, or another, had launched. Such a copy is taken to work for as long as its memory
// explains, and to have waited for the rest.
void workload::find_blocked() {
  const auto& events = *events_;
  std::vector<std::int64_t> launches;
  std::map<std::uint32_t, std::vector<std::int64_t>> settled;  // by thread: when it had waited
  for (row index = 0; index < events.size(); ++index) {
    if (events.kind(index) == event_kind::launch_call) {
      launches.push_back(events.begin(index));
    } else if (events.kind(index) == event_kind::synchronisation) {
      settled[events.thread_of(index).value_or(no_row)].push_back(events.end(index));
    }
  }
  if (launches.empty()) {
    return;
  }
  for (const auto& which : copies_) {
    if (which.details->time == trace::timing::call && which.call != no_row) {
      settled[events.thread_of(which.call).value_or(no_row)].push_back(which.end);
    }
  }
  std::sort(launches.begin(), launches.end());
  for (auto& [thread, times] : settled) {
    std::sort(times.begin(), times.end());
  }
  for (auto& which : copies_) {
    if (which.details->time != trace::timing::call || which.call == no_row) {
      continue;
    }
    const auto& times = settled[events.thread_of(which.call).value_or(no_row)];
    const auto last = std::upper_bound(times.begin(), times.end(), which.begin);
    const auto since =
        last != times.begin() ? *std::prev(last) : std::numeric_limits<std::int64_t>::min();
    const auto launch = std::lower_bound(launches.begin(), launches.end(), since);
    if (launch != launches.end() && *launch < which.begin) {
      which.queued_ns = which.duration() - own_time(which);
    }
  }
}

// Of its duration as much as is expected of such a copy; nothing where nothing is expected.
std::int64_t workload::own_time(const copy& which) const {
  const auto& details = *which.details;
  const auto end =
      which.host_kind() == memory_kind::pageable ? host_end::pageable : host_end::pinned;
  const auto expected =
      details.bytes ? expected_.time_ns(details.direction, end, *details.bytes) : std::nullopt;
  return expected && *expected < static_cast<double>(which.duration())
             ? std::llround(*expected)
             : (expected ? which.duration() : 0);
}

void workload::sum_up() {
  totals_.events = events_->size();
  intervals_by_device copy_intervals;
  std::map<std::tuple<direction, memory_kind, memory_kind>, copy_group> groups;
  for (const auto& which : copies_) {
    copy_intervals[which.device].push_back({which.begin, which.end});
    const auto& details = *which.details;
    auto& group =
        groups
            .try_emplace(
                {details.direction, details.source_kind, details.destination_kind},
                copy_group{details.direction, details.source_kind, details.destination_kind})
            .first->second;
    count_copy(which, group);
  }
  for (auto& [key, group] : groups) {
    totals_.copies.push_back(group);
  }
  std::stable_sort(totals_.copies.begin(), totals_.copies.end(),
                   [](const auto& a, const auto& b) { return a.time_ns > b.time_ns; });

  const auto copies = sets_of(std::move(copy_intervals));
  std::map<std::uint32_t, interval_set> all(kernels_);
  for (const auto* const sets : {&copies, &std::as_const(fills_)}) {
    for (const auto& [device, set] : *sets) {
      all[device] = united(all[device], set);
    }
  }
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const auto& [device, busy] : all) {
    const auto& kernels = of_device(kernels_, device);
    const auto& copying = of_device(copies, device);
    totals_.kernel_busy_ns += kernels.length();
    totals_.copy_busy_ns += copying.length();
    totals_.copy_beside_kernels_ns += intersected(kernels, copying).length();
    totals_.busy_ns += busy.length();
    ++totals_.devices;
    if (!busy.empty()) {
      first = std::min(first, busy.parts().front().begin);
      last = std::max(last, busy.parts().back().end);
    }
  }
  if (!totals_.has_device_times()) {
    const auto all_events = span_of_all();
    first = all_events.begin;
    last = all_events.end;
  }
  totals_.span_ns = first < last ? last - first : 0;
}

void workload::count_copy(const copy& which, copy_group& group) {
  const auto& details = *which.details;
  ++group.count;
  group.bytes += details.bytes.value_or(0);
  group.without_bytes += details.bytes ? 0U : 1U;
  totals_.timed_by_calls += details.time == trace::timing::call ? 1U : 0U;
  if (!which.has_time()) {
    ++group.without_time;
    ++totals_.without_time;
    return;
  }
  group.time_ns += which.duration();
  if (details.bytes) {
    group.bytes_with_time += *details.bytes;
    group.time_with_bytes_ns += which.duration();
  }
}

interval workload::span_of_all() const {
  interval span{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (row index = 0; index < events_->size(); ++index) {
    span.begin = std::min(span.begin, events_->begin(index));
    span.end = std::max(span.end, events_->end(index));
  }
  return span;
}

const interval_set& workload::kernels_of(std::uint32_t device) const {
  return of_device(kernels_, device);
}

double workload::share_of_span(std::int64_t time_ns) const noexcept {
  return totals_.span_ns > 0 ? static_cast<double>(time_ns) / static_cast<double>(totals_.span_ns)
                             : 0.0;
}

std::string workload::describe_place(const copy& which) const {
  std::string where;
  if (which.framework_operator != no_row) {
    where = events_->name_text(which.framework_operator);
  } else if (which.call != no_row) {
    where = events_->name_text(which.call);
  }
  if (which.place.is_known()) {
    where += where.empty() ? "" : " at ";
    where += describe(*events_, which.place);
  }
  return where.empty() ? "unknown place" : where;
}

}  // namespace berth::diagnose
