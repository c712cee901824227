// SPDX-License-Identifier: Apache-2.0
#include "transfer/staged_copy.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transfer/gpu_scope.hpp"

namespace berth::transfer {
namespace {

// Units that are prepared before anything else is done, so that nobody drains into a unit that
// another thread has only begun to prepare; and how many more by threads that have nothing to do.
constexpr std::uint32_t units_for_each = 2;
constexpr std::uint32_t most_prepared_ahead = 16;
// How much of the ring a copy uses: enough that the link never waits, little enough that it stays
// in the cache.
constexpr bytes_t blocks_in_ring = 8;
constexpr bytes_t least_in_ring = 16 * mib;

// What a block takes of the ring, so that what follows it is aligned for words.
constexpr bytes_t slot_bytes(bytes_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

// --- Begin and end ------------------------------------------------------------------------------

void staged_copy::begin(staged_work what) {
  work_ = std::move(what);
  block_count_ = static_cast<std::uint32_t>(work_.blocks.size());
  const auto& last = work_.blocks.back();
  piece_count_ = last.first_piece + last.pieces;
  if (states_capacity_ < block_count_) {
    states_ = std::make_unique<block_state[]>(block_count_);  // NOLINT: atomics cannot move
    states_capacity_ = block_count_;
  }
  for (std::uint32_t index = 0; index < block_count_; ++index) {
    const auto& one = work_.blocks[index];
    states_[index].pieces_left.store(one.pieces, std::memory_order_relaxed);
    states_[index].scratch = work_.device_end->scratch_for(one.offset, one.bytes);
  }
  next_piece_.store(0, std::memory_order_relaxed);
  ready_pieces_.store(0, std::memory_order_relaxed);
  prepared_units_.store(0, std::memory_order_relaxed);
  unit_count_ = to_device() ? 0 : work_.host->unit_count();
  failed_.store(false, std::memory_order_relaxed);
  submitted_.store(0, std::memory_order_relaxed);
  completed_.store(0, std::memory_order_relaxed);
  worked_.store(0, std::memory_order_relaxed);
  taken_ = 0;
  given_back_ = 0;
  ring_.clear(std::max(least_in_ring, blocks_in_ring * work_.plan.largest_block));
  begun_ = gpu_.now();
  looked_ = begun_;
  progressed_ = begun_;
  stats_ = {.plan = work_.plan, .blocks = block_count_};
  link_was_idle_ = true;
  threads_were_idle_ = false;
  stall_reported_ = false;
  failure_.reset();
}

void staged_copy::settle() {
  stats_.total = gpu_.now() - begun_;
  const bytes_t done = bytes_done();
  auto ended = std::exchange(work_, {});
  std::optional<error> failure;
  {
    const std::scoped_lock lock(failure_mutex_);
    failure = std::exchange(failure_, std::nullopt);
  }
  if (failure) {
    failure = error(failure->code(), failure->message(),
                    fmt::format("{}{}{} copy, {} of {} bytes done", failure->where(),
                                failure->where().empty() ? "" : ", ", to_string(ended.plan.path),
                                done, ended.plan.bytes),
                    failure->hint());
  }
  ended.ticket->finish(stats_, std::move(failure));
}

void staged_copy::fail(const error& why) {
  const std::scoped_lock lock(failure_mutex_);
  if (!failure_) {
    failure_ = why;
    failed_.store(true);
  }
}

bool staged_copy::is_ended() const noexcept {
  if (is_failed()) {
    return true;
  }
  if (!to_device()) {
    return worked_.load() == block_count_;
  }
  return (work_.until == completion::both ? completed_ : submitted_).load() == block_count_;
}

result<void> staged_copy::join(runtime::stream_handle stream) {
  return gpu_.wait_event(stream, ring_.event(block_count_ - 1));
}

bytes_t staged_copy::bytes_done() const noexcept {
  const auto done = std::min(completed_.load(), to_device() ? block_count_ : worked_.load());
  return done == 0 || done > work_.blocks.size()
             ? 0
             : work_.blocks[done - 1].offset + work_.blocks[done - 1].bytes;
}

// --- Pieces -------------------------------------------------------------------------------------

const block& staged_copy::block_of(std::uint32_t piece) const noexcept {
  const auto after = std::upper_bound(
      work_.blocks.begin(), work_.blocks.end(), piece,
      [](std::uint32_t wanted, const auto& one) { return wanted < one.first_piece; });
  return *std::prev(after);
}

std::optional<std::uint32_t> staged_copy::claim_piece() noexcept {
  auto piece = next_piece_.load(std::memory_order_relaxed);
  // Acquire: what the pump wrote of the piece's block is visible before the piece is touched.
  while (piece < ready_pieces_.load(std::memory_order_acquire)) {
    if (next_piece_.compare_exchange_weak(piece, piece + 1, std::memory_order_relaxed)) {
      return piece;
    }
  }
  return std::nullopt;
}

bytes_t staged_copy::offset_of(std::uint32_t piece) const noexcept {
  const auto& in = block_of(piece);
  return in.offset + bytes_t{piece - in.first_piece} * work_.plan.piece;
}

bool staged_copy::work_once() {
  if (is_failed()) {
    return false;
  }
  if (unit_count_ > 0 && prepare_ahead(units_for_each * work_.plan.threads)) {
    return true;
  }
  if (const auto piece = claim_piece()) {
    work_on(*piece);
    return true;
  }
  return unit_count_ > 0 &&
         prepare_ahead(units_for_each * work_.plan.threads + most_prepared_ahead);
}

void staged_copy::work_on(std::uint32_t piece) {
  const auto& in = block_of(piece);
  const auto index = static_cast<std::size_t>(&in - work_.blocks.data());
  auto& state = states_[index];
  const bytes_t start = bytes_t{piece - in.first_piece} * work_.plan.piece;
  const bytes_t length = std::min(work_.plan.piece, in.bytes - start);
  const auto slot = ring_.at(state.where, in.bytes).subspan(start, length);
  const auto done = to_device() ? work_.host->fill(slot, in.offset + start)
                                : work_.host->drain(slot, in.offset + start);
  if (!done) {
    fail(done.error());
    return;
  }
  // Release: the pump, or the DMA that it submits, sees the bytes of all pieces.
  if (state.pieces_left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    pump();
  }
}

// Prepares the next unit. False where `wanted` units beyond what is drained are prepared.
bool staged_copy::prepare_ahead(std::uint32_t wanted) {
  const auto piece = next_piece_.load(std::memory_order_relaxed);
  const auto reached = piece < piece_count_ ? work_.host->unit_of(offset_of(piece)) : unit_count_;
  const auto limit = std::min(unit_count_, reached + wanted);
  auto unit = prepared_units_.load(std::memory_order_relaxed);
  while (unit < limit) {
    if (prepared_units_.compare_exchange_weak(unit, unit + 1, std::memory_order_relaxed)) {
      work_.host->prepare(unit);
      return true;
    }
  }
  return false;
}

// --- The pump -----------------------------------------------------------------------------------

void staged_copy::pump() {
  pump_again_.store(true);
  // Whoever leaves a note while another pumps relies on that one looking again after it has let go.
  while (pump_again_.load() && !pumping_.exchange(true)) {
    pump_again_.exchange(false);  // takes what the note's writer did before
    pump_once();
    pumping_.store(false);
  }
}

void staged_copy::pump_once() {
  const auto scope = gpu_scope::enter(gpu_, work_.device);
  if (!scope) {
    fail(scope.error());
    return;
  }
  const auto now = gpu_.now();
  account(now);
  note_completed();
  note_worked();
  give_back();
  if (!is_failed()) {
    take();
    submit();
    offer_pieces();
  }
  watch(now);
  link_was_idle_ = submitted_.load() == completed_.load() && submitted_.load() < block_count_;
  threads_were_idle_ = next_piece_.load() >= ready_pieces_.load() && !link_was_idle_;
}

void staged_copy::note_completed() {
  auto completed = completed_.load();
  while (completed < submitted_.load()) {
    const auto state = gpu_.query_event(ring_.event(completed));
    if (!state) {
      fail(state.error());
      return;
    }
    if (*state == runtime::progress::pending) {
      return;
    }
    completed_.store(++completed);
    progressed_ = looked_;
  }
}

void staged_copy::note_worked() {
  auto worked = worked_.load();
  const auto limit = to_device() ? taken_ : completed_.load();
  while (worked < limit && states_[worked].pieces_left.load(std::memory_order_acquire) == 0) {
    worked_.store(++worked);
    progressed_ = looked_;
  }
}

void staged_copy::give_back() {
  const auto free = to_device() ? completed_.load() : worked_.load();
  for (; given_back_ < free; ++given_back_) {
    ring_.give_back(states_[given_back_].where);
  }
}

void staged_copy::take() {
  while (taken_ < block_count_ && taken_ - given_back_ < ring::most_blocks) {
    const auto where = ring_.take(slot_bytes(work_.blocks[taken_].bytes) + states_[taken_].scratch);
    if (!where) {
      if (taken_ == given_back_) {  // the ring is empty: it will never have room
        fail(error(errc::internal, "a block is larger than the ring", "copy engine"));
      }
      return;
    }
    states_[taken_].where = *where;
    ++taken_;
  }
}

void staged_copy::submit() {
  const auto limit = to_device() ? worked_.load() : taken_;
  for (auto index = submitted_.load(); index < limit; ++index) {
    if (const auto done = submit_block(index); !done) {
      fail(done.error());
      return;
    }
    submitted_.store(index + 1);
  }
}

result<void> staged_copy::submit_block(std::uint32_t index) {
  const auto& one = work_.blocks[index];
  const auto& state = states_[index];
  const auto all = ring_.at(state.where, slot_bytes(one.bytes) + state.scratch);
  const auto scratch = all.subspan(slot_bytes(one.bytes));
  const ring_slot slot{.bytes = all.first(one.bytes),
                       .scratch = scratch,
                       .device_bytes = ring_.device_address(all.data()),
                       .device_scratch = ring_.device_address(scratch.data())};
  const auto stream = ring_.stream();
  const auto moved = to_device() ? work_.device_end->send(slot, one.offset, stream)
                                 : work_.device_end->fetch(slot, one.offset, stream);
  return moved ? gpu_.record_event(ring_.event(index), stream) : moved;
}

void staged_copy::offer_pieces() {
  const auto blocks = to_device() ? taken_ : completed_.load();
  if (blocks > 0) {
    const auto& last = work_.blocks[blocks - 1];
    ready_pieces_.store(last.first_piece + last.pieces, std::memory_order_release);
  }
}

void staged_copy::account(std::chrono::nanoseconds now) {
  const auto passed = now - looked_;
  if (link_was_idle_) {
    stats_.waiting_for_fill += passed;
  } else if (threads_were_idle_) {
    stats_.waiting_for_link += passed;
  }
  looked_ = now;
}

void staged_copy::watch(std::chrono::nanoseconds now) {
  if (stall_reported_ || work_.on_stall == nullptr || !*work_.on_stall ||
      now - progressed_ < work_.stall_after) {
    return;
  }
  stall_reported_ = true;
  try {
    (*work_.on_stall)({.plan = work_.plan, .done = bytes_done(), .since = now - progressed_});
  } catch (...) {  // NOLINT(bugprone-empty-catch): the program's own fault is no fault of the copy
  }
}

}  // namespace berth::transfer
