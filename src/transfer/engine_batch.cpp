// SPDX-License-Identifier: Apache-2.0
// Copies that are no single run of bytes: rows, batches, and what callbacks make or take.
#include <algorithm>
#include <utility>

#include "runtime/page_probe.hpp"
#include "transfer/checks.hpp"
#include "transfer/engine_state.hpp"

namespace berth::transfer {
namespace {

using runtime::stream_handle;

// Copies of a batch up to this size are packed.
constexpr bytes_t most_packed = 256 * kib;
// Fewer copies are not worth a kernel.
constexpr std::size_t least_packed = 8;
// How a batch is cut: large enough for the link, small enough that it begins soon.
constexpr bytes_t packed_first_block = 256 * kib;
constexpr bytes_t packed_block = 1 * mib;
// A block's table of ranges stands in the ring, too: so long at most.
constexpr std::size_t most_in_block = 8192;
constexpr bytes_t packed_piece = 64 * kib;
constexpr unsigned packing_threads = 8;
// A producer or consumer is staged whatever its size.
constexpr staging_rule callback_rule{0, 8, 256 * kib, 2 * mib, 256 * kib};

bytes_t extent(const runtime::copy_2d& what, std::size_t pitch) {
  return pitch * (what.rows - 1) + what.width;
}

// A packed range as a copy of its own.
copy_range unpacked(const packed_range& one, direction way) {
  return way == direction::host_to_device ? copy_range{one.device, one.host, one.bytes}
                                          : copy_range{one.host, one.device, one.bytes};
}

// Whether all host ends are mapped: by one question for all of them, mostly.
result<void> check_packed(const std::vector<packed_range>& ranges, direction way) {
  if (ranges.empty()) {
    return {};
  }
  const auto* first = ranges.front().host;
  const auto* end = first;
  for (const auto& one : ranges) {
    first = std::min<const std::byte*>(first, one.host);
    end = std::max<const std::byte*>(end, one.host + one.bytes);
  }
  if (runtime::is_mapped(first, static_cast<bytes_t>(end - first))) {
    return {};
  }
  for (const auto& one : ranges) {
    if (!runtime::is_mapped(one.host, one.bytes)) {
      return check_host_end(unpacked(one, way), way);
    }
  }
  return {};
}

// Blocks of whole ranges: by bytes and by number.
std::vector<block> cut_packed(const std::vector<packed_range>& ranges) {
  std::vector<block> blocks;
  block open;
  std::size_t inside = 0;
  for (const auto& one : ranges) {
    open.bytes += one.bytes;
    ++inside;
    const bytes_t enough = blocks.empty() ? packed_first_block : packed_block;
    if (open.bytes < enough && inside < most_in_block && &one != &ranges.back()) {
      continue;
    }
    open.pieces = static_cast<std::uint32_t>((open.bytes + packed_piece - 1) / packed_piece);
    blocks.push_back(open);
    open = {.offset = open.offset + open.bytes,
            .bytes = 0,
            .first_piece = open.first_piece + open.pieces,
            .pieces = 0};
    inside = 0;
  }
  return blocks;
}

}  // namespace

// --- Rows ---------------------------------------------------------------------------------------

result<engine_state::ticket_pointer> engine_state::copy_2d(const runtime::copy_2d& what,
                                                           stream_handle stream,
                                                           const copy_options& options) {
  if (what.width == 0 || what.rows == 0) {
    return ticket_pointer{};
  }
  if (what.dst_pitch < what.width || what.src_pitch < what.width) {
    return error(errc::gpu_invalid_value, "rows that are wider than their pitch",
                 "copy_engine::copy_2d", "a pitch is at least the width");
  }
  const bool packed = what.dst_pitch == what.width && what.src_pitch == what.width;
  if (what.rows == 1 || packed) {
    return copy({what.dst, what.src, what.width * what.rows}, stream, options, completion::host);
  }
  if (auto own = require_own_process("copy_engine::copy_2d"); !own) {
    return own.error();
  }
  auto facts = facts_of_rows(what, stream, options);
  if (!facts) {
    return facts.error();
  }
  auto plan = decide(*facts, means()).plan;
  if (is_staged(plan) && has_wide_rows(what)) {
    return copy_row_by_row(what, stream, options);
  }
  if (is_staged(plan)) {
    auto ticket = carry_rows(what, plan, stream, options, completion::host);
    if (!ticket || *ticket != nullptr) {
      return ticket;
    }
    plan.reason = copy_reason::starved;
  }
  plan.path = copy_path::runtime;
  return leave_rows_to_runtime(what, plan, stream, options);
}

result<engine_state::ticket_pointer> engine_state::leave_rows_to_runtime(
    const runtime::copy_2d& what, copy_plan plan, stream_handle stream,
    const copy_options& options) {
  const auto current = current_for(stream);
  if (!current) {
    return current.error();
  }
  const auto queue = [&] { return gpu().copy_2d_async(what, stream); };
  if (plan.reason == copy_reason::capturing) {
    const auto done = queue();
    return done ? result<ticket_pointer>(ticket_pointer{}) : done.error();
  }
  auto ticket = tracked(plan, stream, owners_of(options), queue);
  if (ticket && kept_.any()) {
    kept_.note(writable(what.src), extent(what, what.src_pitch), *ticket);
    kept_.note(writable(what.dst), extent(what, what.dst_pitch), *ticket);
  }
  if (plan.reason == copy_reason::not_ready) {
    begin_set_up();
  }
  return ticket;
}

result<copy_facts> engine_state::facts_of_rows(const runtime::copy_2d& what, stream_handle stream,
                                               const copy_options& options) const {
  auto found = look({what.dst, what.src, what.width}, options);
  if (!found) {
    return found.error();
  }
  const copy_range whole_source{what.dst, what.src, extent(what, what.src_pitch)};
  const copy_range whole_destination{what.dst, what.src, extent(what, what.dst_pitch)};
  if (auto inside = check_range(found->source, what.src, whole_source, "source"); !inside) {
    return inside.error();
  }
  if (auto inside = check_range(found->destination, what.dst, whole_destination, "destination");
      !inside) {
    return inside.error();
  }
  auto& facts = found->facts;
  facts.bytes = bytes_t{what.width} * what.rows;
  facts.wants_kernel = false;  // no kernel of ours copies rows
  if (needs_staging(facts)) {
    const bool from_host = facts.way == direction::host_to_device;
    const auto& whole = from_host ? whole_source : whole_destination;
    if (auto usable = check_host_end(whole, facts.way); !usable) {
      return usable.error();
    }
  }
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  facts.capturing = *capturing;
  return facts;
}

result<engine_state::ticket_pointer> engine_state::carry_rows(const runtime::copy_2d& what,
                                                              copy_plan plan, stream_handle stream,
                                                              const copy_options& options,
                                                              completion until) {
  plan.largest_block = std::max<bytes_t>(plan.largest_block, what.width);
  auto work = staged(plan, cut_for(plan, what.width));
  work.until = until;
  if (plan.way == direction::host_to_device) {
    work.host = pitched_host(gpu(), writable(what.src), what.src_pitch, what.width);
    work.device_end = pitched_device(gpu(), writable(what.dst), what.dst_pitch, what.width);
  } else {
    work.host = pitched_host(gpu(), writable(what.dst), what.dst_pitch, what.width);
    work.device_end = pitched_device(gpu(), writable(what.src), what.src_pitch, what.width);
  }
  return carry(std::move(work), stream, owners_of(options));
}

result<copy_plan> engine_state::stage_rows_only(const runtime::copy_2d& what, stream_handle stream,
                                                const staging_wish& wish) {
  const bytes_t bytes = bytes_t{what.width} * what.rows;
  if (what.rows <= 1 || (what.dst_pitch == what.width && what.src_pitch == what.width)) {
    return stage_only({what.dst, what.src, bytes}, stream, wish);
  }
  if (auto own = require_own_process("copy_engine::copy_2d"); !own) {
    return own.error();
  }
  if (bytes < small_below_.load(std::memory_order_relaxed)) {
    return copy_plan{.bytes = bytes};
  }
  const auto facts = facts_of_rows(what, stream, {});
  if (!facts) {
    return facts.error();
  }
  const auto plan = decide_staging(*facts, wish).plan;
  if (!is_staged(plan)) {
    return plan;
  }
  if (has_wide_rows(what)) {
    return stage_row_by_row(what, plan, stream, wish);
  }
  const auto until = facts->way == direction::host_to_device ? wish.to_device : wish.to_host;
  return end_staging(plan, carry_rows(what, plan, stream, {}, until), until);
}

// Whoever asks makes the whole copy himself where a row could not be staged.
result<copy_plan> engine_state::stage_row_by_row(const runtime::copy_2d& what,
                                                 const copy_plan& whole, stream_handle stream,
                                                 const staging_wish& wish) {
  for (std::size_t row = 0; row < what.rows; ++row) {
    const auto made = stage_only({writable(what.dst) + row * what.dst_pitch,
                                  writable(what.src) + row * what.src_pitch, what.width},
                                 stream, wish);
    if (!made || !is_staged(*made)) {
      return made;
    }
  }
  return whole;
}

bool engine_state::has_wide_rows(const runtime::copy_2d& what) const noexcept {
  return what.width > ring_bytes_ / 4;
}

// Rows so wide that each is worth a copy of its own.
result<engine_state::ticket_pointer> engine_state::copy_row_by_row(const runtime::copy_2d& what,
                                                                   stream_handle stream,
                                                                   const copy_options& options) {
  std::vector<copy_range> rows;
  rows.reserve(what.rows);
  for (std::size_t row = 0; row < what.rows; ++row) {
    rows.push_back({writable(what.dst) + row * what.dst_pitch,
                    writable(what.src) + row * what.src_pitch, what.width});
  }
  return copy_batch(rows, stream, options);
}

// --- Batches ------------------------------------------------------------------------------------

// Which copies of a batch are packed, and which are made one by one.
struct engine_state::sorted_batch {
  std::vector<packed_range> to_device;
  std::vector<packed_range> to_host;
  std::vector<copy_range> others;

  // Too few are not worth packing.
  void drop_small_groups() {
    for (const auto way : {direction::host_to_device, direction::device_to_host}) {
      auto& group = way == direction::host_to_device ? to_device : to_host;
      if (group.size() < least_packed) {
        for (const auto& one : group) {
          others.push_back(unpacked(one, way));
        }
        group.clear();
      }
    }
  }
};

result<engine_state::sorted_batch> engine_state::sort_batch(std::span<const copy_range> what,
                                                            stream_handle stream,
                                                            const copy_options& options) {
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  const bool could_pack = what.size() >= least_packed && !*capturing && !host_reaches_device_ &&
                          options.prefer == engine::unknown;
  if (could_pack) {
    begin_set_up();
  }
  const bool may_pack =
      could_pack && setup_.load() == setup_phase::ready && profile_.known != provenance::unknown;
  sorted_batch sorted;
  for (const auto& one : what) {
    if (one.bytes == 0) {
      continue;
    }
    if (!may_pack || one.bytes > most_packed) {
      sorted.others.push_back(one);
      continue;
    }
    if (auto apart = check_apart(one); !apart) {
      return apart.error();
    }
    const auto found = look(one, options);
    if (!found) {
      return found.error();
    }
    const auto way = found->facts.way;
    if (needs_staging(found->facts)) {
      auto& group = way == direction::host_to_device ? sorted.to_device : sorted.to_host;
      group.push_back(
          {.host = host_end(one, way), .device = device_end(one, way), .bytes = one.bytes});
    } else {
      sorted.others.push_back(one);
    }
  }
  sorted.drop_small_groups();
  for (const auto way : {direction::host_to_device, direction::device_to_host}) {
    const auto& group = way == direction::host_to_device ? sorted.to_device : sorted.to_host;
    if (auto mapped = check_packed(group, way); !mapped) {
      return mapped.error();
    }
  }
  return sorted;
}

result<engine_state::ticket_pointer> engine_state::copy_batch(std::span<const copy_range> what,
                                                              stream_handle stream,
                                                              const copy_options& options) {
  if (auto own = require_own_process("copy_engine::copy_batch"); !own) {
    return own.error();
  }
  auto sorted = sort_batch(what, stream, options);
  if (!sorted) {
    return sorted.error();
  }
  std::vector<ticket_pointer> parts;
  result<void> failed;
  const auto add = [&](result<ticket_pointer> made) {
    if (!made) {
      failed = made.error();
    } else if (*made != nullptr) {
      parts.push_back(std::move(*made));
    }
  };
  if (!sorted->to_device.empty()) {
    add(carry_packed(std::move(sorted->to_device), direction::host_to_device, stream, options));
  }
  if (!sorted->to_host.empty() && failed) {
    add(carry_packed(std::move(sorted->to_host), direction::device_to_host, stream, options));
  }
  for (auto one = sorted->others.begin(); one != sorted->others.end() && failed; ++one) {
    add(copy(*one, stream, options, completion::host));
  }
  if (!failed) {
    return failed.error();
  }
  copy_plan whole{.path = copy_path::staged_threaded, .reason = copy_reason::pageable};
  for (const auto& one : what) {
    whole.bytes += one.bytes;
  }
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
                       .threads = std::min(threads_, packing_threads),
                       .first_block = packed_first_block,
                       .largest_block = packed_block,
                       .piece = packed_piece};
  const auto all = std::make_shared<const std::vector<packed_range>>(std::move(ranges));
  auto work = staged(plan, cut_packed(*all));
  work.host = scattered_host(gpu(), all);
  work.device_end = scattered_device(gpu(), all);
  auto ticket = carry(std::move(work), stream, owners_of(options));
  if (!ticket || *ticket != nullptr) {
    return ticket;
  }
  std::vector<ticket_pointer> parts;
  for (const auto& one : *all) {
    auto done = leave_to_runtime(unpacked(one, way), {.bytes = one.bytes}, stream, options,
                                 completion::host);
    if (!done) {
      return done.error();
    }
    parts.push_back(std::move(*done));
  }
  return ticket_pointer(std::make_shared<joint_ticket>(std::move(parts), plan));
}

// --- Callbacks ----------------------------------------------------------------------------------

result<void> engine_state::check_callback(std::byte* device_memory, bytes_t bytes,
                                          stream_handle stream) const {
  const auto where = gpu().classify(device_memory);
  if (!where) {
    return where.error();
  }
  const copy_range ends{device_memory, device_memory, bytes};
  if (where->kind != memory_kind::device || where->device.value_or(0) != options_.device) {
    return error(errc::transfer_wrong_direction,
                 "this is no memory of the engine's device, which callbacks need", words_for(ends));
  }
  if (auto inside = check_range(*where, device_memory, ends, "device end"); !inside) {
    return inside;
  }
  const auto capturing = is_capturing(stream);
  if (!capturing) {
    return capturing.error();
  }
  if (*capturing) {
    return error(errc::gpu_capture, "callbacks cannot be part of a graph", words_for(ends));
  }
  return {};
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
  if (auto fine = check_callback(device_memory, bytes, stream); !fine) {
    return fine.error();
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
  auto work = staged(plan, cut_for(plan));
  work.host = std::move(host);
  work.device_end = linear_device(gpu(), device_memory);
  auto ticket = carry(std::move(work), stream, {}, patience::endless);
  if (ticket && *ticket == nullptr) {
    return error(errc::transfer_cancelled, "the copy engine has ended", "copy engine",
                 "let the engine outlive its copies");
  }
  return ticket;
}

}  // namespace berth::transfer
