// SPDX-License-Identifier: Apache-2.0
// The calls of a copy engine: what the ends are, which path, and the paths that are no staging.
#include "transfer/engine_state.hpp"

#include <unistd.h>

#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "transfer/checks.hpp"
#include "transfer/gpu_scope.hpp"

namespace berth::transfer {
namespace {

using runtime::capture_status;
using runtime::pointer_info;
using runtime::stream_handle;

}  // namespace

// --- Looking ------------------------------------------------------------------------------------

result<void> engine_state::require_own_process(std::string_view call) const {
  if (getpid() == process_) {
    return {};
  }
  return error(errc::transfer_forked, "the copy engine belongs to the parent process",
               std::string(call), "open a context in the child, or start children with exec()");
}

bool engine_state::is_small(bytes_t bytes, const copy_options& options) const noexcept {
  return bytes < small_below_.load(std::memory_order_relaxed) &&
         options.prefer == engine::unknown && options.expected == direction::unknown &&
         !kept_.any();
}

engine_means engine_state::means() const noexcept {
  const auto phase = setup_.load();
  if (phase != setup_phase::ready) {
    return {.has_failed = phase == setup_phase::failed};
  }
  return {.profile = &profile_, .threads = threads_, .ring_bytes = ring_bytes_};
}

result<bool> engine_state::is_capturing(stream_handle stream) const {
  const auto status = gpu().stream_capture_status(stream);
  if (!status) {
    return status.error();
  }
  return *status != capture_status::none;
}

result<engine_state::looked_at> engine_state::look(const copy_range& ends,
                                                   const copy_options& options) const {
  const auto source = gpu().classify(ends.src);
  if (!source) {
    return source.error();
  }
  const auto destination = gpu().classify(ends.dst);
  if (!destination) {
    return destination.error();
  }
  if (auto inside = check_range(*source, ends.src, ends, "source"); !inside) {
    return inside.error();
  }
  if (auto inside = check_range(*destination, ends.dst, ends, "destination"); !inside) {
    return inside.error();
  }
  looked_at found{.facts = {.bytes = ends.bytes,
                            .source = source->kind,
                            .destination = destination->kind,
                            .way = direction_of(source->kind, destination->kind),
                            .host_reaches_device = host_reaches_device_,
                            .wants_kernel = options.prefer == engine::kernel},
                  .source = *source,
                  .destination = *destination};
  const auto is_elsewhere = [this](const pointer_info& one) {
    return one.kind == memory_kind::device && one.device && *one.device != options_.device;
  };
  if (is_elsewhere(*source) || is_elsewhere(*destination)) {
    found.facts.way = direction::unknown;  // another device's: the runtime knows the way
  }
  if (options.expected != direction::unknown && options.expected != found.facts.way) {
    return error(errc::transfer_wrong_direction,
                 fmt::format("{} was expected, but the source is {} and the destination {} memory",
                             to_string(options.expected), to_string(source->kind),
                             to_string(destination->kind)),
                 words_for(ends), "swap the ends, or leave copy_options::expected unset");
  }
  return found;
}

result<copy_plan> engine_state::plan(const copy_range& ends, const copy_options& options) {
  if (auto own = require_own_process("copy_engine::plan"); !own) {
    return own.error();
  }
  if (ends.bytes == 0) {
    return decide({}, means()).plan;
  }
  auto found = look(ends, options);
  if (!found) {
    return found.error();
  }
  auto& facts = found->facts;
  const auto* const host = host_end(ends, facts.way);
  facts.kept = kept_.covers(host, ends.bytes);
  facts.host_pages = probe_.look(host, ends.bytes);
  return decide(facts, means()).plan;
}

// --- One copy -----------------------------------------------------------------------------------

result<engine_state::ticket_pointer> engine_state::copy(const copy_range& ends,
                                                        stream_handle stream,
                                                        const copy_options& options,
                                                        completion until) {
  if (ends.bytes == 0) {
    return ticket_pointer{};
  }
  if (auto apart = check_apart(ends); !apart) {
    return apart.error();
  }
  if (is_small(ends.bytes, options)) {
    const copy_plan plan{.bytes = ends.bytes};
    return leave_to_runtime(ends, plan, stream, options, until);
  }
  if (auto own = require_own_process("copy_engine::copy"); !own) {
    return own.error();
  }
  const auto facts = facts_of(ends, stream, options);
  if (!facts) {
    return facts.error();
  }
  if (needs_staging(*facts) && setup_.load() <= setup_phase::running && is_worth_waiting(*facts)) {
    static_cast<void>(prepare());  // without it, the copy is left to the runtime
  }
  return carry_out(ends, decide(*facts, means()), stream, options, until);
}

result<copy_plan> engine_state::stage_only(const copy_range& ends, stream_handle stream,
                                           const staging_wish& wish) {
  if (auto own = require_own_process("copy_engine::copy"); !own) {
    return own.error();
  }
  if (ends.bytes == 0 || ends.bytes < small_below_.load(std::memory_order_relaxed)) {
    return copy_plan{.bytes = ends.bytes};
  }
  if (auto apart = check_apart(ends); !apart) {
    return apart.error();
  }
  const auto facts = facts_of(ends, stream, {});
  if (!facts) {
    return facts.error();
  }
  const auto what = decide_staging(*facts, wish);
  if (!is_staged(what.plan)) {
    return what.plan;
  }
  const auto until = facts->way == direction::host_to_device ? wish.to_device : wish.to_host;
  return end_staging(what.plan, carry(linear_work(ends, what, until), stream, {}), until);
}

decision engine_state::decide_staging(const copy_facts& facts, const staging_wish& wish) {
  if (wish.expected != direction::unknown && wish.expected != facts.way) {
    return {
        .plan = {.reason = copy_reason::unknown_memory, .way = facts.way, .bytes = facts.bytes}};
  }
  if (needs_staging(facts) && setup_.load() <= setup_phase::running && is_worth_waiting(facts)) {
    static_cast<void>(prepare());
  }
  auto what = decide(facts, means());
  if (what.plan.reason == copy_reason::not_ready) {
    begin_set_up();
  } else if (is_staged(what.plan) && !has_lane() && !is_worth_waiting(facts)) {
    // All were given back: one is made behind this copy.
    wants_lane_.store(true);
    workers_.front()->wake();
    return {.plan = {.reason = copy_reason::not_ready, .way = facts.way, .bytes = facts.bytes}};
  }
  return what;
}

result<copy_plan> engine_state::end_staging(copy_plan plan, const result<ticket_pointer>& ticket,
                                            completion until) {
  if (!ticket) {
    return ticket.error();
  }
  if (*ticket == nullptr) {
    plan.path = copy_path::runtime;
    plan.reason = copy_reason::starved;
  } else if (until == completion::both || plan.way == direction::device_to_host) {
    if (const auto ended = (*ticket)->wait(); !ended) {
      return ended.error();
    }
  }
  return plan;
}

// All that a decision needs. Errors: what is refused.
result<copy_facts> engine_state::facts_of(const copy_range& ends, stream_handle stream,
                                          const copy_options& options) const {
  auto found = look(ends, options);
  if (!found) {
    return found.error();
  }
  auto& facts = found->facts;
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  facts.capturing = *capturing;
  const auto* const host = host_end(ends, facts.way);
  facts.kept = kept_.covers(host, ends.bytes);
  if (needs_staging(facts)) {
    if (auto usable = check_host_end(ends, facts.way); !usable) {
      return usable.error();
    }
    facts.host_pages = probe_.look(host, ends.bytes, ends.bytes < 4 * mib ? 4 : 16);
  }
  return facts;
}

result<engine_state::ticket_pointer> engine_state::carry_out(const copy_range& ends,
                                                             const decision& what,
                                                             stream_handle stream,
                                                             const copy_options& options,
                                                             completion until) {
  const auto& plan = what.plan;
  switch (plan.path) {
    case copy_path::kept:
    case copy_path::direct:
    case copy_path::kernel: {
      auto ticket = plan.path == copy_path::kernel ? launch_kernel(ends, plan, stream, options)
                                                   : copy_directly(ends, plan, stream, options);
      if (ticket && kept_.any()) {
        kept_.note(host_end(ends, plan.way), ends.bytes, *ticket);
      }
      return ticket;
    }
    case copy_path::staged_inline:
    case copy_path::staged_threaded:
      return carry_linear(ends, what, stream, options, until);
    default: {
      auto ticket = leave_to_runtime(ends, plan, stream, options, until);
      if (plan.reason == copy_reason::not_ready) {
        begin_set_up();
      }
      return ticket;
    }
  }
}

staged_work engine_state::linear_work(const copy_range& ends, const decision& what,
                                      completion until) {
  const auto& plan = what.plan;
  const auto care = plan.populates     ? page_care::populate
                    : plan.reads_ahead ? page_care::read_ahead
                                       : page_care::none;
  auto work = staged(plan, cut_for(plan));
  work.host = linear_host(gpu(), host_end(ends, plan.way), ends.bytes, care, what.store);
  work.device_end = linear_device(gpu(), device_end(ends, plan.way));
  work.until = until;
  return work;
}

result<engine_state::ticket_pointer> engine_state::carry_linear(const copy_range& ends,
                                                                const decision& what,
                                                                stream_handle stream,
                                                                const copy_options& options,
                                                                completion until) {
  auto ticket = carry(linear_work(ends, what, until), stream, owners_of(options));
  if (!ticket || *ticket != nullptr) {
    return ticket;
  }
  auto starved = what.plan;
  starved.path = copy_path::runtime;
  starved.reason = copy_reason::starved;
  return leave_to_runtime(ends, starved, stream, options, until);
}

// A default stream is that of the engine's device. Nothing to do where there is only one.
result<std::optional<runtime::scoped_device>> engine_state::current_for(
    stream_handle stream) const {
  const bool is_default = stream == runtime::default_stream || stream == runtime::per_thread_stream;
  if (!is_default || gpu().devices().size() == 1) {
    return std::optional<runtime::scoped_device>();
  }
  auto current = runtime::scoped_device::make(gpu(), options_.device);
  if (!current) {
    return current.error();
  }
  return std::optional<runtime::scoped_device>(std::move(*current));
}

result<engine_state::ticket_pointer> engine_state::leave_to_runtime(const copy_range& ends,
                                                                    copy_plan plan,
                                                                    stream_handle stream,
                                                                    const copy_options& options,
                                                                    completion until) {
  const auto current = current_for(stream);
  if (!current) {
    return current.error();
  }
  const bool captured = plan.reason == copy_reason::capturing;
  if (until == completion::both && !captured) {
    auto done = stream == runtime::default_stream
                    ? gpu().copy(ends.dst, ends.src, ends.bytes)
                    : gpu().copy_async(ends.dst, ends.src, ends.bytes, stream);
    if (done && stream != runtime::default_stream) {
      done = gpu().synchronize_stream(stream);
    }
    return done ? result<ticket_pointer>(ticket_pointer{}) : done.error();
  }
  const auto queue = [&] { return gpu().copy_async(ends.dst, ends.src, ends.bytes, stream); };
  // A handle of another thread, or of another device's default stream, says nothing later.
  const bool named = stream != runtime::default_stream && stream != runtime::per_thread_stream;
  const bool has_owner = options.source_owner || options.destination_owner;
  if (!captured && (has_owner || !named || plan.reason != copy_reason::small)) {
    return tracked(plan, stream, owners_of(options), queue);
  }
  if (auto done = queue(); !done) {
    return done.error();
  }
  if (captured) {
    return ticket_pointer{};  // nothing runs before the graph is launched
  }
  return ticket_pointer(
      std::make_shared<deferred_ticket>(shared_from_this(), gpu(), plan, ends, stream));
}

// Queues something into a stream, with a ticket for it that was there before: whatever fails, the
// owners live for as long as the device may use their memory.
result<engine_state::ticket_pointer> engine_state::tracked(
    copy_plan plan, stream_handle stream, end_owners owners,
    const std::function<result<void>()>& queue) {
  reap_orphans();
  std::shared_ptr<stream_ticket> ticket;
  {
    const auto scope = gpu_scope::enter(gpu(), options_.device);
    if (!scope) {
      return scope.error();
    }
    const auto event = gpu().create_event(options_.device, {});
    if (!event) {
      return event.error();
    }
    ticket = std::make_shared<stream_ticket>(shared_from_this(), gpu(), options_.device, *event,
                                             plan, std::move(owners));
  }
  if (auto done = queue(); !done) {
    return done.error();
  }
  const auto scope = gpu_scope::enter(gpu(), options_.device);
  const auto recorded = scope ? gpu().record_event(ticket->event(), stream) : scope.error();
  if (!recorded) {
    static_cast<void>(gpu().synchronize_stream(stream));
    return recorded.error();
  }
  return ticket_pointer(std::move(ticket));
}

result<engine_state::ticket_pointer> engine_state::copy_directly(const copy_range& ends,
                                                                 copy_plan plan,
                                                                 stream_handle stream,
                                                                 const copy_options& options) {
  const auto current = current_for(stream);
  if (!current) {
    return current.error();
  }
  return tracked(plan, stream, owners_of(options),
                 [&] { return gpu().copy_async(ends.dst, ends.src, ends.bytes, stream); });
}

result<engine_state::ticket_pointer> engine_state::launch_kernel(const copy_range& ends,
                                                                 copy_plan plan,
                                                                 stream_handle stream,
                                                                 const copy_options& options) {
  const auto reach = [this](void* memory) -> result<void*> {
    const auto known = gpu().classify(memory);
    if (!known) {
      return known.error();
    }
    return known->kind == memory_kind::device ? result<void*>(memory)
                                              : gpu().device_address(memory);
  };
  const auto dst = reach(ends.dst);
  if (!dst) {
    return dst.error();
  }
  const auto src = reach(writable(ends.src));
  if (!src) {
    return src.error();
  }
  return tracked(plan, stream, owners_of(options), [&]() -> result<void> {
    const auto scope = gpu_scope::enter(gpu(), options_.device);
    return scope ? gpu().launch(runtime::kernel_copy{.dst = *dst, .src = *src, .bytes = ends.bytes},
                                stream)
                 : scope.error();
  });
}

// --- Kept ranges, orphans -----------------------------------------------------------------------

result<void> engine_state::keep(std::span<std::byte> memory) {
  if (auto own = require_own_process("copy_engine::keep"); !own) {
    return own;
  }
  return kept_.add(memory, options_.device);
}

result<void> engine_state::forget(std::span<std::byte> memory) {
  if (auto own = require_own_process("copy_engine::forget"); !own) {
    return own;
  }
  return kept_.remove(memory);
}

void engine_state::adopt(runtime::event_handle event, end_owners owners) {
  if (closing_.load()) {
    // Nobody will look again.
    static_cast<void>(gpu().synchronize_event(event));
    static_cast<void>(gpu().destroy_event(event));
    return;
  }
  const std::scoped_lock lock(orphans_mutex_);
  orphans_.push_back({event, std::move(owners)});
  orphan_count_.store(orphans_.size(), std::memory_order_release);
}

void engine_state::reap_orphans() {
  if (orphan_count_.load(std::memory_order_acquire) == 0) {
    return;
  }
  const auto scope = gpu_scope::enter(gpu(), options_.device);
  if (!scope) {
    return;
  }
  std::vector<orphan> looked;
  {
    const std::scoped_lock lock(orphans_mutex_);
    looked.swap(orphans_);
  }
  std::vector<orphan> running;
  for (auto& one : looked) {
    if (has_ended(gpu(), one.event)) {
      static_cast<void>(gpu().destroy_event(one.event));
    } else {
      running.push_back(std::move(one));
    }
  }
  const std::scoped_lock lock(orphans_mutex_);
  for (auto& one : running) {
    orphans_.push_back(std::move(one));
  }
  orphan_count_.store(orphans_.size(), std::memory_order_release);
}

}  // namespace berth::transfer
