// SPDX-License-Identifier: Apache-2.0
// The calls of a copy engine: what the ends are, which path, and the paths that are no staging.
#include "transfer/engine_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "transfer/backoff.hpp"
#include "transfer/gpu_scope.hpp"

namespace berth::transfer {
namespace {

using runtime::capture_status;
using runtime::pointer_info;
using runtime::stream_handle;

// Copies of a batch up to this size are packed.
constexpr bytes_t most_packed = 256 * kib;
// Fewer copies are not worth a kernel.
constexpr std::size_t least_packed = 8;
// How a batch is cut: large enough for the link, small enough that it begins soon.
constexpr bytes_t packed_first_block = 256 * kib;
constexpr bytes_t packed_block = 1 * mib;
constexpr bytes_t packed_piece = 64 * kib;
// A producer or consumer is staged whatever its size.
constexpr staging_rule callback_rule{0, 8, 256 * kib, 2 * mib, 256 * kib};

bool overlap(const copy_range& ends) noexcept {
  const auto dst = reinterpret_cast<std::uintptr_t>(ends.dst);
  const auto src = reinterpret_cast<std::uintptr_t>(ends.src);
  return dst < src + ends.bytes && src < dst + ends.bytes;
}

std::string words_for(const copy_range& ends) {
  return fmt::format("copy of {} bytes from {} to {}", ends.bytes, ends.src, ends.dst);
}

// Whether the copy stays inside an allocation that the runtime has told.
result<void> check_range(const pointer_info& where, const void* first, const copy_range& ends,
                         std::string_view end) {
  if (where.base == nullptr || !where.bytes) {
    return {};
  }
  const auto offset = static_cast<bytes_t>(static_cast<const std::byte*>(first) -
                                           static_cast<const std::byte*>(where.base));
  if (offset + ends.bytes <= *where.bytes) {
    return {};
  }
  return error(errc::transfer_out_of_range,
               fmt::format("the {} is {} memory of {} bytes from {}, and the copy would reach {} "
                           "bytes beyond its end",
                           end, to_string(where.kind), *where.bytes, where.base,
                           offset + ends.bytes - *where.bytes),
               words_for(ends), "check the length: it is in bytes");
}

end_owners owners_of(const copy_options& options) {
  return {.source = options.source_owner, .destination = options.destination_owner};
}

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
  return {.profile = setup_.load() == setup_phase::ready ? &profile_ : nullptr,
          .threads = threads_,
          .ring_bytes = ring_bytes_};
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

// Pageable memory is read or written by our own threads: what can be known to fail is refused.
result<void> engine_state::check_host_end(const copy_range& ends, direction way) const {
  const bool reads = way == direction::host_to_device;
  auto* const host = reads ? writable(ends.src) : writable(ends.dst);
  const bool usable =
      runtime::is_mapped(host, ends.bytes) &&
      (reads ? runtime::is_readable(host, ends.bytes) : runtime::is_writable(host, ends.bytes));
  if (usable) {
    return {};
  }
  return error(errc::transfer_unmapped,
               fmt::format("{} of the host memory is not mapped, or cannot be {}", "a part",
                           reads ? "read" : "written"),
               words_for(ends), "check that the memory is still allocated, and its protection");
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
  const void* const host = facts.way == direction::host_to_device ? ends.src : ends.dst;
  facts.kept = kept_.covers(static_cast<const std::byte*>(host), ends.bytes);
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
  if (overlap(ends)) {
    return error(errc::transfer_overlap, "source and destination overlap", words_for(ends),
                 "copy by way of another buffer");
  }
  if (is_small(ends.bytes, options)) {
    const copy_plan plan{.bytes = ends.bytes};
    return leave_to_runtime(ends, plan, stream, options, until);
  }
  if (auto own = require_own_process("copy_engine::copy"); !own) {
    return own.error();
  }
  reap_orphans(false);
  auto found = look(ends, options);
  if (!found) {
    return found.error();
  }
  auto& facts = found->facts;
  const bool from_host = facts.way == direction::host_to_device;
  auto* const host = from_host ? writable(ends.src) : writable(ends.dst);
  auto* const device = from_host ? writable(ends.dst) : writable(ends.src);
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  facts.capturing = *capturing;
  facts.kept = kept_.covers(host, ends.bytes);
  const bool pageable_end = is_pageable(facts.source) || is_pageable(facts.destination);
  if (pageable_end && facts.way != direction::unknown && facts.way != direction::host_to_host) {
    if (auto usable = check_host_end(ends, facts.way); !usable) {
      return usable.error();
    }
    facts.host_pages = probe_.look(host, ends.bytes, ends.bytes < 4 * mib ? 4 : 16);
  }
  if (pageable_end && setup_.load() <= setup_phase::running && is_worth_waiting(facts)) {
    static_cast<void>(prepare());  // without it, the copy is left to the runtime
  }
  const auto [plan, store] = decide(facts, means());
  switch (plan.path) {
    case copy_path::kept:
    case copy_path::direct: {
      auto ticket = copy_directly(ends, plan, stream, options);
      if (ticket && plan.path == copy_path::kept) {
        kept_.note(host, ends.bytes, *ticket);
      }
      return ticket;
    }
    case copy_path::kernel: {
      auto ticket = launch_kernel(ends, plan, stream, options);
      if (ticket && facts.kept) {
        kept_.note(host, ends.bytes, *ticket);
      }
      return ticket;
    }
    case copy_path::staged_inline:
    case copy_path::staged_threaded: {
      const auto care = plan.populates     ? page_care::populate
                        : plan.reads_ahead ? page_care::read_ahead
                                           : page_care::none;
      auto work = staged(plan, 1);
      work.host = linear_host(gpu(), host, ends.bytes, care, store);
      work.device_end = linear_device(gpu(), device);
      work.until = until;
      auto ticket = carry(std::move(work), stream, owners_of(options));
      if (!ticket || *ticket != nullptr) {
        return ticket;
      }
      auto starved = plan;
      starved.path = copy_path::runtime;
      starved.reason = copy_reason::starved;
      return leave_to_runtime(ends, starved, stream, options, until);
    }
    default: {
      auto ticket = leave_to_runtime(ends, plan, stream, options, until);
      if (plan.reason == copy_reason::not_ready) {
        begin_set_up();
      }
      return ticket;
    }
  }
}

result<engine_state::ticket_pointer> engine_state::leave_to_runtime(const copy_range& ends,
                                                                    copy_plan plan,
                                                                    stream_handle stream,
                                                                    const copy_options& options,
                                                                    completion until) {
  if (until == completion::both && stream == runtime::default_stream &&
      plan.reason != copy_reason::capturing) {
    if (auto done = gpu().copy(ends.dst, ends.src, ends.bytes); !done) {
      return done.error();
    }
    return ticket_pointer{};
  }
  if (auto done = gpu().copy_async(ends.dst, ends.src, ends.bytes, stream); !done) {
    return done.error();
  }
  if (plan.reason == copy_reason::capturing) {
    return ticket_pointer{};  // nothing runs before the graph is launched
  }
  if (until == completion::both) {
    if (auto done = gpu().synchronize_stream(stream); !done) {
      return done.error();
    }
    return ticket_pointer{};
  }
  if (options.source_owner || options.destination_owner || plan.reason != copy_reason::small) {
    return track(plan, stream, owners_of(options));
  }
  return ticket_pointer(
      std::make_shared<deferred_ticket>(shared_from_this(), gpu(), plan, ends, stream));
}

// A ticket for what the stream has been given last.
result<engine_state::ticket_pointer> engine_state::track(copy_plan plan, stream_handle stream,
                                                         end_owners owners) {
  const auto scope = gpu_scope::enter(gpu(), options_.device);
  if (!scope) {
    return scope.error();
  }
  const auto event = gpu().create_event(options_.device, {});
  if (!event) {
    return event.error();
  }
  auto ticket =
      std::make_shared<stream_ticket>(shared_from_this(), gpu(), *event, plan, std::move(owners));
  if (auto recorded = gpu().record_event(*event, stream); !recorded) {
    return recorded.error();
  }
  return ticket_pointer(std::move(ticket));
}

result<engine_state::ticket_pointer> engine_state::copy_directly(const copy_range& ends,
                                                                 copy_plan plan,
                                                                 stream_handle stream,
                                                                 const copy_options& options) {
  if (auto done = gpu().copy_async(ends.dst, ends.src, ends.bytes, stream); !done) {
    return done.error();
  }
  return track(plan, stream, owners_of(options));
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
  {
    const auto scope = gpu_scope::enter(gpu(), options_.device);
    if (!scope) {
      return scope.error();
    }
    const runtime::kernel_copy request{.dst = *dst, .src = *src, .bytes = ends.bytes};
    if (auto done = gpu().launch(request, stream); !done) {
      return done.error();
    }
  }
  return track(plan, stream, owners_of(options));
}

// --- Rows, batches, callbacks -------------------------------------------------------------------

result<engine_state::ticket_pointer> engine_state::copy_2d(const runtime::copy_2d& what,
                                                           stream_handle stream,
                                                           const copy_options& options) {
  if (what.width == 0 || what.rows == 0) {
    return ticket_pointer{};
  }
  if (what.dst_pitch < what.width || what.src_pitch < what.width) {
    return error(errc::gpu_invalid_value,
                 fmt::format("rows of {} bytes at pitches of {} and {} overlap", what.width,
                             what.dst_pitch, what.src_pitch),
                 "copy_engine::copy_2d", "a pitch is at least the width");
  }
  const bool packed = what.dst_pitch == what.width && what.src_pitch == what.width;
  if (what.rows == 1 || packed) {
    return copy({what.dst, what.src, what.width * what.rows}, stream, options, completion::host);
  }
  if (auto own = require_own_process("copy_engine::copy_2d"); !own) {
    return own.error();
  }
  const auto extent = [&](std::size_t pitch) { return pitch * (what.rows - 1) + what.width; };
  auto source_end = look({what.dst, what.src, what.width}, options);
  if (!source_end) {
    return source_end.error();
  }
  const copy_range whole_source{what.dst, what.src, extent(what.src_pitch)};
  const copy_range whole_destination{what.dst, what.src, extent(what.dst_pitch)};
  if (auto inside = check_range(source_end->source, what.src, whole_source, "source"); !inside) {
    return inside.error();
  }
  if (auto inside =
          check_range(source_end->destination, what.dst, whole_destination, "destination");
      !inside) {
    return inside.error();
  }
  auto& facts = source_end->facts;
  facts.bytes = bytes_t{what.width} * what.rows;
  facts.wants_kernel = false;
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  facts.capturing = *capturing;
  auto plan = decide(facts, means()).plan;
  const bool staged_here =
      plan.path == copy_path::staged_inline || plan.path == copy_path::staged_threaded;
  const bool from_host = facts.way == direction::host_to_device;
  if (staged_here && what.width <= ring_bytes_ / 4) {
    const auto& whole = from_host ? whole_source : whole_destination;
    if (auto usable = check_host_end(whole, facts.way); !usable) {
      return usable.error();
    }
    plan.largest_block = std::max<bytes_t>(plan.largest_block, what.width);
    auto work = staged(plan, what.width);
    auto* const host = from_host ? writable(what.src) : writable(what.dst);
    auto* const device = from_host ? writable(what.dst) : writable(what.src);
    const auto host_pitch = from_host ? what.src_pitch : what.dst_pitch;
    const auto device_pitch = from_host ? what.dst_pitch : what.src_pitch;
    work.host = pitched_host(gpu(), host, host_pitch, what.width);
    work.device_end = pitched_device(gpu(), device, device_pitch, what.width);
    auto ticket = carry(std::move(work), stream, owners_of(options));
    if (!ticket || *ticket != nullptr) {
      return ticket;
    }
    plan.reason = copy_reason::starved;
  } else if (staged_here) {
    std::vector<copy_range> rows;
    rows.reserve(what.rows);
    for (std::size_t row = 0; row < what.rows; ++row) {
      rows.push_back({static_cast<std::byte*>(what.dst) + row * what.dst_pitch,
                      static_cast<const std::byte*>(what.src) + row * what.src_pitch, what.width});
    }
    return copy_batch(rows, stream, options);
  }
  plan.path = copy_path::runtime;
  if (auto done = gpu().copy_2d_async(what, stream); !done) {
    return done.error();
  }
  return plan.reason == copy_reason::capturing ? ticket_pointer{}
                                               : track(plan, stream, owners_of(options));
}

result<engine_state::ticket_pointer> engine_state::copy_batch(std::span<const copy_range> what,
                                                              stream_handle stream,
                                                              const copy_options& options) {
  if (auto own = require_own_process("copy_engine::copy_batch"); !own) {
    return own.error();
  }
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  if (what.size() >= least_packed && !*capturing && !host_reaches_device_) {
    static_cast<void>(prepare());
  }
  const bool may_pack = what.size() >= least_packed && !*capturing && !host_reaches_device_ &&
                        setup_.load() == setup_phase::ready && options.prefer == engine::unknown &&
                        profile_.known != provenance::unknown;
  std::vector<packed_range> to_device;
  std::vector<packed_range> to_host;
  std::vector<copy_range> others;
  for (const auto& one : what) {
    if (one.bytes == 0) {
      continue;
    }
    if (!may_pack || one.bytes > most_packed) {
      others.push_back(one);
      continue;
    }
    if (overlap(one)) {
      return error(errc::transfer_overlap, "source and destination overlap", words_for(one),
                   "copy by way of another buffer");
    }
    const auto found = look(one, options);
    if (!found) {
      return found.error();
    }
    const bool down = found->facts.way == direction::device_to_host;
    const bool up = found->facts.way == direction::host_to_device;
    if ((up && is_pageable(found->facts.source)) ||
        (down && is_pageable(found->facts.destination))) {
      auto& group = up ? to_device : to_host;
      group.push_back({.host = writable(up ? one.src : one.dst),
                       .device = writable(up ? one.dst : one.src),
                       .bytes = one.bytes});
    } else {
      others.push_back(one);
    }
  }
  std::vector<ticket_pointer> parts;
  bytes_t bytes = 0;
  const auto add = [&](result<ticket_pointer> made) -> result<void> {
    if (!made) {
      return made.error();
    }
    if (*made != nullptr) {
      parts.push_back(std::move(*made));
    }
    return {};
  };
  for (auto* const group : {&to_device, &to_host}) {
    const auto way = group == &to_device ? direction::host_to_device : direction::device_to_host;
    for (const auto& one : *group) {
      bytes += one.bytes;
    }
    if (group->size() < least_packed) {
      for (const auto& one : *group) {
        const bool up = way == direction::host_to_device;
        others.push_back({up ? one.device : one.host, up ? one.host : one.device, one.bytes});
      }
    } else if (auto done = add(carry_packed(std::move(*group), way, stream, options)); !done) {
      return done.error();
    }
  }
  for (const auto& one : others) {
    bytes += one.bytes;
    if (auto done = add(copy(one, stream, options, completion::host)); !done) {
      return done.error();
    }
  }
  const copy_plan whole{.path = copy_path::staged_threaded,
                        .reason = copy_reason::pageable,
                        .bytes = bytes,
                        .threads = threads_};
  return ticket_pointer(std::make_shared<joint_ticket>(std::move(parts), whole));
}

result<engine_state::ticket_pointer> engine_state::carry_packed(std::vector<packed_range> ranges,
                                                                direction way, stream_handle stream,
                                                                const copy_options& options) {
  bytes_t bytes = 0;
  for (auto& one : ranges) {
    one.offset = bytes;
    bytes += one.bytes;
  }
  const copy_plan plan{.path = threads_ > 1 ? copy_path::staged_threaded : copy_path::staged_inline,
                       .reason = copy_reason::pageable,
                       .way = way,
                       .bytes = bytes,
                       .threads = std::min(threads_, 8U),
                       .first_block = packed_first_block,
                       .largest_block = packed_block,
                       .piece = packed_piece};
  const auto all = std::make_shared<const std::vector<packed_range>>(std::move(ranges));
  auto work = staged(plan, 1);
  work.host = scattered_host(gpu(), all);
  work.device_end = scattered_device(gpu(), all);
  auto ticket = carry(std::move(work), stream, owners_of(options));
  if (!ticket || *ticket != nullptr) {
    return ticket;
  }
  std::vector<ticket_pointer> parts;
  for (const auto& one : *all) {
    const bool up = way == direction::host_to_device;
    auto done =
        leave_to_runtime({up ? one.device : one.host, up ? one.host : one.device, one.bytes},
                         {.bytes = one.bytes}, stream, options, completion::host);
    if (!done) {
      return done.error();
    }
    parts.push_back(std::move(*done));
  }
  return ticket_pointer(std::make_shared<joint_ticket>(std::move(parts), plan));
}

result<engine_state::ticket_pointer> engine_state::call_back(std::byte* device_memory,
                                                             bytes_t bytes, direction way,
                                                             std::unique_ptr<host_side> host,
                                                             stream_handle stream,
                                                             callback_order order) {
  if (bytes == 0) {
    return ticket_pointer{};
  }
  if (auto ready = prepare(); !ready) {
    return ready.error();
  }
  const auto where = gpu().classify(device_memory);
  if (!where) {
    return where.error();
  }
  const copy_range ends{device_memory, device_memory, bytes};
  if (where->kind != memory_kind::device || where->device.value_or(0) != options_.device) {
    return error(errc::transfer_wrong_direction,
                 fmt::format("{} memory where memory of device {} is needed",
                             to_string(where->kind), options_.device),
                 words_for(ends));
  }
  if (auto inside = check_range(*where, device_memory, ends, "device end"); !inside) {
    return inside.error();
  }
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  if (*capturing) {
    return error(errc::gpu_capture, "callbacks cannot be part of a graph", words_for(ends));
  }
  const auto* const rule = profile_.rule_for(way, bytes);
  const auto& used = rule != nullptr ? *rule : callback_rule;
  const unsigned threads =
      order == callback_order::sequential ? 1 : std::min(used.threads, threads_);
  const bytes_t largest = std::min(used.largest_block, ring_bytes_ / 4);
  const copy_plan plan{.path = threads > 1 ? copy_path::staged_threaded : copy_path::staged_inline,
                       .reason = threads > 1 ? copy_reason::pageable : copy_reason::one_cpu,
                       .way = way,
                       .bytes = bytes,
                       .threads = threads,
                       .first_block = std::min(used.first_block, largest),
                       .largest_block = largest,
                       .piece = used.piece};
  auto work = staged(plan, 1);
  work.host = std::move(host);
  work.device_end = linear_device(gpu(), device_memory);
  while (true) {
    // There is no runtime copy to leave it to: it waits for a ring for as long as it takes.
    auto ticket = carry(std::move(work), stream, {});
    if (!ticket || *ticket != nullptr || closing_.load()) {
      return ticket;
    }
  }
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
  const std::scoped_lock lock(orphans_mutex_);
  orphans_.push_back({event, std::move(owners)});
  orphan_count_.store(orphans_.size(), std::memory_order_release);
}

void engine_state::reap_orphans(bool all) {
  if (orphan_count_.load(std::memory_order_acquire) == 0) {
    return;
  }
  std::vector<orphan> looked;
  {
    const std::scoped_lock lock(orphans_mutex_);
    looked.swap(orphans_);
    orphan_count_.store(0, std::memory_order_release);
  }
  std::vector<orphan> running;
  for (auto& one : looked) {
    if (all) {
      static_cast<void>(gpu().synchronize_event(one.event));
    }
    const auto state = gpu().query_event(one.event);
    if (state && *state == runtime::progress::pending) {
      running.push_back(std::move(one));
    } else {
      static_cast<void>(gpu().destroy_event(one.event));
    }
  }
  for (auto& one : running) {
    adopt(one.event, std::move(one.owners));
  }
}

}  // namespace berth::transfer
