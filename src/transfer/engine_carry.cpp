// SPDX-License-Identifier: Apache-2.0
// How a staged copy is carried: a lane, the order of the user's stream, the caller's share of the
// work.
#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "transfer/backoff.hpp"
#include "transfer/engine_state.hpp"
#include "transfer/gpu_scope.hpp"

namespace berth::transfer {
namespace {

// A copy that gets no ring for so long is left to the runtime.
constexpr std::chrono::milliseconds starvation{50};

}  // namespace

// A lane whose first DMA comes after all earlier work of the stream.
//
// A stream that stands still must not hold the last lane, or every other copy would stand still
// with it. So the last one is taken only when the stream's earlier work has ended; until then the
// calling thread waits, as it does in the runtime's own pageable copies. Null: none came in time.
result<engine_state::found_lane> engine_state::wait_for_lane(runtime::stream_handle stream,
                                                             patience how_long) {
  refresh_lanes();
  if (auto* const one = take_lane(1)) {
    return found_lane{.one = one};
  }
  wants_lane_.store(true);
  workers_.front()->wake();

  const auto event = gpu().create_event(options_.device, {});
  if (!event) {
    return event.error();
  }
  auto found = [&]() -> result<found_lane> {
    if (const auto recorded = gpu().record_event(*event, stream); !recorded) {
      return recorded.error();
    }
    const auto deadline = gpu().now() + starvation;
    backoff idle;
    while (!closing_.load() && (how_long == patience::endless || gpu().now() < deadline)) {
      const auto state = gpu().query_event(*event);
      if (!state) {
        return state.error();
      }
      refresh_lanes();
      const bool fenced = *state == runtime::progress::complete;
      if (auto* const one = take_lane(fenced ? 0 : 1)) {
        return found_lane{.one = one, .fenced = fenced};
      }
      if (virtual_clock_) {
        pass_time();
      } else {
        idle.wait();
      }
    }
    return found_lane{};
  }();
  static_cast<void>(gpu().destroy_event(*event));
  return found;
}

result<engine_state::ticket_pointer> engine_state::carry(staged_work work,
                                                         runtime::stream_handle stream,
                                                         end_owners owners, patience how_long) {
  reap_orphans();
  const auto scope = gpu_scope::enter(gpu(), options_.device);
  if (!scope) {
    return scope.error();
  }
  const auto found = wait_for_lane(stream, how_long);
  if (!found) {
    return found.error();
  }
  if (found->one == nullptr) {
    return ticket_pointer{};
  }
  lane& one = *found->one;
  if (!found->fenced) {
    auto ordered = gpu().record_event(one.fence, stream);
    if (ordered) {
      ordered = gpu().wait_event(one.through->stream(), one.fence);
    }
    if (!ordered) {
      one.phase.store(lane_phase::cooling);
      return ordered.error();
    }
  }
  auto ticket = std::make_shared<staged_ticket>(
      work.plan, std::move(owners), [home = shared_from_this()](const std::function<bool()>& done) {
        return home->wait_until(done);
      });
  work.ticket = ticket;
  if (auto begun = begin_in(one, std::move(work)); !begun) {
    return begun.error();
  }
  if (!carry_in(one, stream)) {
    // Helpers may be inside a piece still: what they use is the caller's.
    while (!ticket->is_done()) {
      pass_time();
    }
  }
  if (ticket->is_done()) {
    // Failures are the call's own, since nothing was promised yet.
    if (const auto ended = ticket->wait(); !ended) {
      return ended.error();
    }
  }
  return ticket_pointer(std::move(ticket));
}

result<void> engine_state::begin_in(lane& one, staged_work work) {
  try {
    one.job->begin(std::move(work));
    return {};
  } catch (const std::bad_alloc&) {
    one.phase.store(lane_phase::cooling);
    return error(errc::gpu_out_of_memory, "the system has no memory for a copy", "copy engine");
  }
}

// Until the copy has ended, or is ordered and others will end it. False where it has failed.
bool engine_state::carry_in(lane& one, runtime::stream_handle stream) {
  auto& job = *one.job;
  const bool joins = job.until() == completion::host;
  const bool to_the_end = !joins || job.plan().threads == 1;
  const unsigned helpers = job.plan().threads - 1;
  one.users.fetch_add(1);
  one.generation.fetch_add(1);
  one.phase.store(lane_phase::active);
  wake_first(helpers);
  job.pump();

  backoff idle;
  while (!job.is_ended() && (to_the_end || !job.is_ordered())) {
    if (job.work_once()) {
      idle.reset();
      continue;
    }
    job.pump();
    if (closing_.load()) {
      job.fail(error(errc::transfer_cancelled, "the copy engine has ended", "copy engine",
                     "let the engine outlive its copies"));
    }
    if (virtual_clock_) {
      pass_time();
    } else {
      idle.wait();
    }
  }
  if (!job.is_failed() && joins) {
    if (const auto ordered = job.join(stream); !ordered) {
      job.fail(ordered.error());
    }
  }
  if (job.is_failed()) {
    order_remains(one, stream);
  }
  const bool failed = job.is_failed();
  close_if_ended(one);
  leave(one);
  return !failed;
}

// DMAs of a failed copy may still run. Later work of the stream must not meet them: a later copy to
// the same memory would be overwritten.
void engine_state::order_remains(const lane& one, runtime::stream_handle stream) const {
  auto ordered = gpu().record_event(one.fence, one.through->stream());
  if (ordered) {
    ordered = gpu().wait_event(stream, one.fence);
  }
  if (!ordered) {
    static_cast<void>(gpu().synchronize_stream(one.through->stream()));
  }
}

staged_work engine_state::staged(const copy_plan& plan, std::vector<block> blocks) const {
  staged_work work;
  work.plan = plan;
  work.device = options_.device;
  work.blocks = std::move(blocks);
  work.stall_after = options_.stall_after;
  work.on_stall = &options_.on_stall;
  return work;
}

}  // namespace berth::transfer
