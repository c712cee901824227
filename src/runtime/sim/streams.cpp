// SPDX-License-Identifier: Apache-2.0
// Streams, events, functions of the program, graph capture: who waits for whom.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/sim/simulation.hpp"

namespace berth::runtime::sim {
namespace {

constexpr double poll_wake_up_ns = 1500;
constexpr double record_ns = 400;
constexpr double call_host_ns = 1500;

// Handles are never used again, so that a stale one is found out. The two kinds differ.
constexpr std::uintptr_t first_stream_handle = 0x10000;
constexpr std::uintptr_t first_event_handle = 0x13;
constexpr std::uintptr_t handle_step = 16;

int number_of(stream_priority priority) noexcept {
  switch (priority) {
    case stream_priority::low:
      return -1;
    case stream_priority::normal:
      return 0;
    case stream_priority::high:
      break;
  }
  return 1;
}

}  // namespace

// --- Finding and ordering -------------------------------------------------------------------

simulation::stream_pointer simulation::make_stream(int index, stream_role role,
                                                   stream_ordering ordering) {
  auto made = std::make_shared<stream_state>();
  made->ordinal = ++streams_made_;
  made->device = index;
  made->role = role;
  made->ordering = ordering;
  return made;
}

result<simulation::stream_pointer> simulation::find_stream(stream_handle stream, call which) {
  stream_pointer found;
  auto& mine = this_thread();
  if (stream == default_stream) {
    found = default_streams_[static_cast<std::size_t>(mine.device)];
  } else if (stream == per_thread_stream) {
    if (const auto able = require(capability::per_thread_stream, which); !able) {
      return able.error();
    }
    auto& own = mine.streams[mine.device];
    if (own == nullptr) {
      own = make_stream(mine.device, stream_role::per_thread, stream_ordering::blocking);
      forget_idle(per_thread_streams_);
      per_thread_streams_.push_back(own);
    }
    found = own;
  } else if (const auto known = streams_.find(stream.bits); known != streams_.end()) {
    found = known->second;
  } else {
    return make_error(errc::gpu_invalid_handle,
                      fmt::format("no stream {:#x}: never made, or destroyed", stream.bits), which);
  }
  if (const auto alive = check_alive(found->device, which); !alive) {
    return alive.error();
  }
  return found;
}

result<std::shared_ptr<event_state>> simulation::find_event(event_handle event, call which) {
  const auto known = events_.find(event.bits);
  if (known == events_.end()) {
    return make_error(errc::gpu_invalid_handle,
                      fmt::format("no event {:#x}: never made, or destroyed", event.bits), which);
  }
  return known->second;
}

std::vector<simulation::stream_pointer> simulation::streams_of(int index) const {
  std::vector<stream_pointer> all{default_streams_[static_cast<std::size_t>(index)]};
  for (const auto* several : {&per_thread_streams_, &destroyed_streams_}) {
    for (const auto& one : *several) {
      if (one->device == index) {
        all.push_back(one);
      }
    }
  }
  for (const auto& [handle, one] : streams_) {
    if (one->device == index) {
      all.push_back(one);
    }
  }
  return all;
}

// Takes out those that nobody else holds and that have no work.
void simulation::forget_idle(std::vector<stream_pointer>& streams) const {
  std::erase_if(streams, [this](const stream_pointer& one) {
    return one.use_count() == 1 && !scheduler_.is_pending(one->tail);
  });
}

// The stream's last operation, and what the legacy default stream orders.
std::vector<std::uint64_t> simulation::predecessors(const stream_state& on) const {
  std::vector<std::uint64_t> all{on.tail};
  if (on.role == stream_role::legacy) {
    for (const auto& one : streams_of(on.device)) {
      if (one->ordering == stream_ordering::blocking) {
        all.push_back(one->tail);
      }
    }
  } else if (on.ordering == stream_ordering::blocking) {
    all.push_back(default_streams_[static_cast<std::size_t>(on.device)]->tail);
  }
  return all;
}

result<std::shared_ptr<operation>> simulation::queue(stream_state& on, operation_work what,
                                                     lane where, int index, call which) {
  if (const auto alive = check_alive(index, which); !alive) {
    return alive.error();
  }
  if (on.capture != nullptr) {
    if (on.capture->status == capture_status::invalidated) {
      return make_error(errc::gpu_capture, "the stream's capture is invalidated", which);
    }
    ++on.capture->operations;
    return std::shared_ptr<operation>();
  }
  auto made = std::make_shared<operation>();
  const bool is_kernel = std::holds_alternative<kernel_work>(what);
  const bool is_transfer = where != lane::none && where != lane::host;
  made->what = std::move(what);
  made->device = index;
  made->stream = on.ordinal;
  made->priority = has(capability::stream_priority) ? on.priority : 0;
  made->where = where;
  spend(is_kernel ? costs_.launch_ns() : is_transfer ? costs_.submit_ns() : 0.0);
  scheduler_.submit(made, predecessors(on));
  on.tail = made->number;
  return made;
}

result<void> simulation::wait_for(lock& held, const operation& what, call which) {
  scheduler_.wait(held, what);
  return what.lost ? check_alive(what.device, which) : result<void>{};
}

result<void> simulation::drain(lock& held, stream_state& on, call which) {
  const auto barrier = std::make_shared<operation>();
  barrier->what = marker_work{};
  barrier->device = on.device;
  barrier->stream = on.ordinal;
  scheduler_.submit(barrier, predecessors(on));
  if (auto done = wait_for(held, *barrier, which); !done) {
    return done;
  }
  return check_alive(on.device, which);
}

// --- Capture --------------------------------------------------------------------------------

result<void> simulation::refuse_if_capturing(const stream_state& on, call which) {
  if (on.capture != nullptr) {
    on.capture->status = capture_status::invalidated;
    return make_error(errc::gpu_capture, "the stream captures", which);
  }
  return {};
}

// The legacy stream would have to wait for a blocking stream that captures.
result<void> simulation::check_implicit_capture(const stream_state& on, call which) {
  if (on.role != stream_role::legacy) {
    return {};
  }
  for (const auto& one : streams_of(on.device)) {
    if (one->ordering == stream_ordering::blocking) {
      if (auto capturing = refuse_if_capturing(*one, which); !capturing) {
        return capturing;
      }
    }
  }
  return {};
}

result<void> simulation::begin_capture(stream_handle stream, capture_mode mode) {
  const lock held(scheduler_.mutex());
  const auto on = find_stream(stream, call::stream_capture_status);
  if (!on) {
    return on.error();
  }
  if ((*on)->capture != nullptr || (*on)->role == stream_role::legacy) {
    return make_error(errc::gpu_capture, "the stream cannot begin a capture",
                      call::stream_capture_status);
  }
  (*on)->capture = captures_.begin(mode);
  return {};
}

result<std::size_t> simulation::end_capture(stream_handle stream) {
  const lock held(scheduler_.mutex());
  const auto on = find_stream(stream, call::stream_capture_status);
  if (!on) {
    return on.error();
  }
  const auto group = (*on)->capture;
  if (group == nullptr) {
    return make_error(errc::gpu_capture, "the stream does not capture",
                      call::stream_capture_status);
  }
  captures_.end(group);
  for (std::size_t index = 0; index < devices_.size(); ++index) {
    for (const auto& one : streams_of(static_cast<int>(index))) {
      if (one->capture == group) {
        one->capture = nullptr;
      }
    }
  }
  if (group->status == capture_status::invalidated) {
    return make_error(errc::gpu_capture, "the capture was invalidated",
                      call::stream_capture_status);
  }
  return group->operations;
}

result<capture_status> simulation::stream_capture_status(stream_handle stream) {
  auto held = enter(call::stream_capture_status);
  if (!held) {
    return held.error();
  }
  const auto on = find_stream(stream, call::stream_capture_status);
  if (!on) {
    return on.error();
  }
  const bool capturing = (*on)->capture != nullptr && has(capability::stream_capture);
  return capturing ? (*on)->capture->status : capture_status::none;
}

result<capture_mode> simulation::exchange_capture_mode(capture_mode mode) {
  auto held = enter(call::exchange_capture_mode);
  if (!held) {
    return held.error();
  }
  return has(capability::stream_capture) ? std::exchange(this_thread().mode, mode) : mode;
}

// --- Streams --------------------------------------------------------------------------------

result<stream_handle> simulation::create_stream(int index, const stream_options& how) {
  auto held = enter(call::create_stream);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::create_stream); !fine) {
    return fine.error();
  }
  auto made = make_stream(index, stream_role::created, how.ordering);
  made->priority = number_of(how.priority);
  const auto bits = first_stream_handle + handle_step * made->ordinal;
  streams_.emplace(bits, std::move(made));
  return stream_handle{bits};
}

result<void> simulation::destroy_stream(stream_handle stream) {
  auto held = enter(call::destroy_stream);
  if (!held) {
    return held.error();
  }
  const auto known = streams_.find(stream.bits);
  if (known == streams_.end()) {
    return make_error(
        errc::gpu_invalid_handle,
        fmt::format("{:#x} was not made by create_stream, or is destroyed", stream.bits),
        call::destroy_stream);
  }
  if (auto capturing = refuse_if_capturing(*known->second, call::destroy_stream); !capturing) {
    return capturing;
  }
  destroyed_streams_.push_back(std::move(known->second));
  streams_.erase(known);
  forget_idle(destroyed_streams_);
  return {};
}

result<void> simulation::synchronize_stream(stream_handle stream) {
  auto held = enter(call::synchronize_stream);
  if (!held) {
    return held.error();
  }
  const auto on = find_stream(stream, call::synchronize_stream);
  if (!on) {
    return on.error();
  }
  if (auto capturing = refuse_if_capturing(**on, call::synchronize_stream); !capturing) {
    return capturing;
  }
  if (auto implicit = check_implicit_capture(**on, call::synchronize_stream); !implicit) {
    return implicit;
  }
  const bool must_wait = scheduler_.is_pending((*on)->tail);
  if (auto done = drain(*held, **on, call::synchronize_stream); !done) {
    return done;
  }
  make_visible();
  spend(must_wait ? poll_wake_up_ns : 0);
  return {};
}

result<progress> simulation::query_stream(stream_handle stream) {
  auto held = enter(call::query_stream);
  if (!held) {
    return held.error();
  }
  const auto on = find_stream(stream, call::query_stream);
  if (!on) {
    return on.error();
  }
  if (const auto capturing = refuse_if_capturing(**on, call::query_stream); !capturing) {
    return capturing.error();
  }
  const auto all = predecessors(**on);
  const bool pending = std::any_of(all.begin(), all.end(), [this](std::uint64_t number) {
    return scheduler_.is_pending(number);
  });
  for (const auto number : all) {
    scheduler_.asked_for(number);
  }
  return pending ? progress::pending : progress::complete;
}

result<void> simulation::wait_event(stream_handle stream, event_handle event) {
  auto held = enter(call::wait_event);
  if (!held) {
    return held.error();
  }
  const auto on = find_stream(stream, call::wait_event);
  if (!on) {
    return on.error();
  }
  const auto found = find_event(event, call::wait_event);
  if (!found) {
    return found.error();
  }
  auto& to = **on;
  if ((*found)->capture != nullptr && (*found)->capture->status == capture_status::active) {
    to.capture = (*found)->capture;  // the stream joins
    return {};
  }
  const auto record = (*found)->record;
  if (to.capture != nullptr || record == nullptr || record->state == operation_state::done) {
    return {};
  }
  const auto marker = std::make_shared<operation>();
  marker->what = marker_work{.kind = marker_kind::wait};
  marker->device = to.device;
  marker->stream = to.ordinal;
  auto after = predecessors(to);
  after.push_back(record->number);
  scheduler_.submit(marker, after);
  to.tail = marker->number;
  return {};
}

result<void> simulation::call_host(stream_handle stream, host_function function, void* data) {
  auto held = enter(call::call_host);
  if (!held) {
    return held.error();
  }
  if (const auto able = require(capability::host_callback, call::call_host); !able) {
    return able;
  }
  const auto on = find_stream(stream, call::call_host);
  if (!on) {
    return on.error();
  }
  if (function == nullptr) {
    return make_error(errc::gpu_invalid_value, "a null function", call::call_host);
  }
  if (const auto implicit = check_implicit_capture(**on, call::call_host); !implicit) {
    return implicit;
  }
  spend(call_host_ns);
  const auto queued = queue(**on, host_work_call{.function = function, .data = data}, lane::host,
                            (*on)->device, call::call_host);
  return queued ? result<void>{} : queued.error();
}

// --- Events ---------------------------------------------------------------------------------

result<event_handle> simulation::create_event(int index, const event_options& how) {
  auto held = enter(call::create_event);
  if (!held) {
    return held.error();
  }
  if (const auto fine = check_device(index, call::create_event); !fine) {
    return fine.error();
  }
  const auto bits = first_event_handle + handle_step * ++events_made_;
  auto made = std::make_shared<event_state>();
  made->device = index;
  made->how = how;
  events_.emplace(bits, std::move(made));
  return event_handle{bits};
}

result<void> simulation::destroy_event(event_handle event) {
  auto held = enter(call::destroy_event);
  if (!held) {
    return held.error();
  }
  if (const auto known = find_event(event, call::destroy_event); !known) {
    return known.error();
  }
  events_.erase(event.bits);
  return {};
}

result<void> simulation::record_event(event_handle event, stream_handle stream) {
  auto held = enter(call::record_event);
  if (!held) {
    return held.error();
  }
  const auto found = find_event(event, call::record_event);
  if (!found) {
    return found.error();
  }
  const auto on = find_stream(stream, call::record_event);
  if (!on) {
    return on.error();
  }
  if ((*found)->device != (*on)->device) {
    return make_error(errc::gpu_invalid_handle, "event and stream are of two devices",
                      call::record_event);
  }
  if (const auto implicit = check_implicit_capture(**on, call::record_event); !implicit) {
    return implicit;
  }
  spend(record_ns);
  const bool matters = has(capability::system_release);
  const auto release = matters ? (*found)->how.release : event_release::system;
  const auto queued = queue(**on, marker_work{.kind = marker_kind::record, .release = release},
                            lane::none, (*on)->device, call::record_event);
  if (!queued) {
    return queued.error();
  }
  (*found)->capture = (*on)->capture;
  if (*queued != nullptr) {
    (*found)->record = *queued;
  }
  return {};
}

result<progress> simulation::query_event(event_handle event) {
  auto held = enter(call::query_event);
  if (!held) {
    return held.error();
  }
  const auto found = find_event(event, call::query_event);
  if (!found) {
    return found.error();
  }
  if ((*found)->capture != nullptr) {
    return make_error(errc::gpu_capture, "the event was last recorded in a capture",
                      call::query_event);
  }
  if (const auto alive = check_alive((*found)->device, call::query_event); !alive) {
    return alive.error();
  }
  const auto& record = (*found)->record;
  if (record == nullptr || record->state == operation_state::done) {
    return progress::complete;
  }
  scheduler_.asked_for(record->number);
  return progress::pending;
}

result<void> simulation::synchronize_event(event_handle event) {
  auto held = enter(call::synchronize_event);
  if (!held) {
    return held.error();
  }
  const auto found = find_event(event, call::synchronize_event);
  if (!found) {
    return found.error();
  }
  if ((*found)->capture != nullptr) {
    return make_error(errc::gpu_capture, "the event was last recorded in a capture",
                      call::synchronize_event);
  }
  if (auto alive = check_alive((*found)->device, call::synchronize_event); !alive) {
    return alive;
  }
  const auto record = (*found)->record;
  if (record == nullptr || record->state == operation_state::done) {
    return {};
  }
  auto done = wait_for(*held, *record, call::synchronize_event);
  spend(poll_wake_up_ns);
  return done;
}

result<std::chrono::nanoseconds> simulation::elapsed(event_handle start, event_handle end) {
  auto held = enter(call::elapsed);
  if (!held) {
    return held.error();
  }
  std::array<ticks, 2> times{};
  const std::array both{start, end};
  for (std::size_t index = 0; index < both.size(); ++index) {
    const auto found = find_event(both[index], call::elapsed);
    if (!found) {
      return found.error();
    }
    const auto& event = **found;
    if (event.how.timing != event_timing::enabled || event.record == nullptr) {
      return make_error(errc::gpu_invalid_handle, "an event without timing, or never recorded",
                        call::elapsed);
    }
    if (event.record->state != operation_state::done) {
      scheduler_.asked_for(event.record->number);
      return make_error(errc::gpu_not_ready, "the event is pending", call::elapsed);
    }
    if (auto alive = check_alive(event.device, call::elapsed); !alive) {
      return alive.error();
    }
    times[index] = event.record->ended;
  }
  return std::chrono::nanoseconds(times[1] - times[0]);
}

}  // namespace berth::runtime::sim
