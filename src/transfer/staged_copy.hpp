// SPDX-License-Identifier: Apache-2.0
// One copy through a ring, carried by any number of threads.
//
//   piece    what a thread moves between host memory and the ring at a time
//   block    what one DMA moves between the ring and the device; some pieces
//
//                     taken    worked (all its pieces)   submitted   completed    given back
//   to the device     1st      2nd: filled               3rd         4th          5th
//   to the host       1st      4th: emptied              2nd         3rd          5th
//
// Blocks take each step in their order, but for `worked`, which counts the blocks up to the first
// that is not. Everything but the pieces is done by whoever runs pump(): one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "berth/copy_engine.hpp"
#include "transfer/block_schedule.hpp"
#include "transfer/ends.hpp"
#include "transfer/ring.hpp"
#include "transfer/ticket_state.hpp"

namespace berth::transfer {

// When a staged copy counts as ended.
enum class completion : std::uint8_t {
  host,  // the source may change, the host destination holds the data
  both,  // also the last DMA has ended
};

struct staged_work {
  copy_plan plan;
  int device = 0;
  std::unique_ptr<host_side> host;
  std::unique_ptr<device_side> device_end;
  std::vector<block> blocks;
  completion until = completion::host;
  std::shared_ptr<staged_ticket> ticket;
  std::chrono::nanoseconds stall_after{0};
  const std::function<void(const stalled_copy&)>* on_stall = nullptr;
};

class staged_copy {
public:
  staged_copy(runtime::driver& gpu, ring& through) : gpu_(gpu), ring_(through) {}

  // --- One thread, while nobody else uses the object ---

  void begin(staged_work what);
  // Tells the ticket, and lets go of everything.
  void settle();

  // --- Any thread between begin() and settle() ---

  // Moves one piece, or prepares one. False where there is none to move now.
  bool work_once();
  // Brings blocks on. Does not block.
  void pump();
  void fail(const error& why);

  [[nodiscard]] bool is_ended() const noexcept;
  [[nodiscard]] bool is_failed() const noexcept { return failed_.load(); }
  // All DMAs are queued: later work of a stream after join() is ordered.
  [[nodiscard]] bool is_ordered() const noexcept { return submitted_.load() == block_count_; }
  // Later work of the stream waits for all DMAs. Pre: is_ordered().
  [[nodiscard]] result<void> join(runtime::stream_handle stream);
  [[nodiscard]] const copy_plan& plan() const noexcept { return work_.plan; }
  [[nodiscard]] completion until() const noexcept { return work_.until; }
  // Changes with every step that any block has taken.
  [[nodiscard]] std::uint64_t steps() const noexcept {
    return std::uint64_t{submitted_.load()} + completed_.load() + worked_.load();
  }

private:
  struct block_state {
    std::atomic<std::uint32_t> pieces_left{0};
    ring::part where;
    bytes_t scratch = 0;
  };

  [[nodiscard]] bool to_device() const noexcept {
    return work_.plan.way == direction::host_to_device;
  }
  [[nodiscard]] const block& block_of(std::uint32_t piece) const noexcept;
  [[nodiscard]] bytes_t offset_of(std::uint32_t piece) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> claim_piece() noexcept;
  void work_on(std::uint32_t piece);
  bool prepare_ahead(std::uint32_t wanted);

  void pump_once();
  void note_completed();
  void note_worked();
  void give_back();
  void take();
  void submit();
  [[nodiscard]] result<void> submit_block(std::uint32_t index);
  void offer_pieces();
  void account(std::chrono::nanoseconds now);
  void watch(std::chrono::nanoseconds now);
  [[nodiscard]] bytes_t bytes_done() const noexcept;

  runtime::driver& gpu_;
  ring& ring_;
  staged_work work_;
  std::uint32_t block_count_ = 0;
  std::uint32_t piece_count_ = 0;
  std::unique_ptr<block_state[]> states_;  // NOLINT: atomics cannot move
  std::size_t states_capacity_ = 0;

  // Pieces [next_piece_, ready_pieces_) may be claimed.
  alignas(64) std::atomic<std::uint32_t> next_piece_{0};
  alignas(64) std::atomic<std::uint32_t> ready_pieces_{0};
  std::atomic<std::uint32_t> prepared_units_{0};
  std::uint32_t unit_count_ = 0;
  std::atomic<bool> failed_{false};

  // Who has set the flag runs the pump; who finds it set leaves a note instead.
  alignas(64) std::atomic<bool> pumping_{false};
  std::atomic<bool> pump_again_{false};
  std::atomic<std::uint32_t> submitted_{0};
  std::atomic<std::uint32_t> completed_{0};
  std::atomic<std::uint32_t> worked_{0};
  // Of the pump alone:
  std::uint32_t taken_ = 0;
  std::uint32_t given_back_ = 0;
  copy_stats stats_;
  std::chrono::nanoseconds begun_{0};
  std::chrono::nanoseconds looked_{0};
  std::chrono::nanoseconds progressed_{0};
  bool link_was_idle_ = false;
  bool threads_were_idle_ = false;
  bool stall_reported_ = false;

  std::mutex failure_mutex_;  // never held during a GPU call
  std::optional<error> failure_;
};

}  // namespace berth::transfer
