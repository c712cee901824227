// SPDX-License-Identifier: Apache-2.0
// What a copy engine is made of: rings in which copies are carried, workers that help, the profile
// that plans go by, and ranges under keep(). Shared by the engine and its tickets.
//
// A lane is a ring and the copy that it carries:
//
//   absent -> free -> taken -> active -> closing -> cooling -> free
//
//   active   anybody may help: enter(), work, leave()
//   closing  the copy has ended; the last user settles it
//   cooling  the source has been read, but DMAs may still read the ring
//
// No mutex here is ever held during a GPU call: on the virtual clock a GPU call may run a worker's
// step on the calling thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "berth/copy_engine.hpp"
#include "memory/context_state.hpp"
#include "runtime/executor.hpp"
#include "runtime/page_probe.hpp"
#include "transfer/copy_profile.hpp"
#include "transfer/ends.hpp"
#include "transfer/kept_ranges.hpp"
#include "transfer/plan.hpp"
#include "transfer/ring.hpp"
#include "transfer/staged_copy.hpp"
#include "transfer/thread_executor.hpp"
#include "transfer/ticket_state.hpp"

namespace berth::transfer {

class engine_state final : public orphanage, public std::enable_shared_from_this<engine_state> {
public:
  using ticket_pointer = std::shared_ptr<ticket_state>;

  engine_state(std::shared_ptr<memory::context_state> home, copy_engine_options options);
  engine_state(const engine_state&) = delete;
  engine_state& operator=(const engine_state&) = delete;
  engine_state(engine_state&&) = delete;
  engine_state& operator=(engine_state&&) = delete;
  ~engine_state() override = default;

  // Ends all copies, by cancelling what stands still, and the workers.
  void shut_down() noexcept;

  // Null: had ended when the call returned.
  [[nodiscard]] result<ticket_pointer> copy(const copy_range& ends, runtime::stream_handle stream,
                                            const copy_options& options, completion until);
  [[nodiscard]] result<ticket_pointer> copy_2d(const runtime::copy_2d& what,
                                               runtime::stream_handle stream,
                                               const copy_options& options);
  [[nodiscard]] result<ticket_pointer> copy_batch(std::span<const copy_range> what,
                                                  runtime::stream_handle stream,
                                                  const copy_options& options);
  // Between device memory and callbacks.
  [[nodiscard]] result<ticket_pointer> call_back(std::byte* device_memory, bytes_t bytes,
                                                 direction way, std::unique_ptr<host_side> host,
                                                 runtime::stream_handle stream,
                                                 callback_order order);
  [[nodiscard]] result<copy_plan> plan(const copy_range& ends, const copy_options& options);

  // A copy that is made only if it is staged: whoever asks makes it himself otherwise.
  struct staging_wish {
    direction expected = direction::unknown;  // unknown: any
    completion to_device = completion::both;
    completion to_host = completion::both;
  };
  // The plan says whether it was made, and if not, why. A copy that was made has ended as wished; a
  // failed one may have written any part of its destination, and nothing more later.
  [[nodiscard]] result<copy_plan> stage_only(const copy_range& ends, runtime::stream_handle stream,
                                             const staging_wish& wish);
  // The same by rows. Pre: pitches of at least the width.
  [[nodiscard]] result<copy_plan> stage_rows_only(const runtime::copy_2d& what,
                                                  runtime::stream_handle stream,
                                                  const staging_wish& wish);

  [[nodiscard]] result<void> keep(std::span<std::byte> memory);
  [[nodiscard]] result<void> forget(std::span<std::byte> memory);
  [[nodiscard]] result<void> prepare();
  bytes_t trim() noexcept;

  [[nodiscard]] runtime::driver& gpu() const noexcept { return home_->gpu(); }
  // Below this, copies need no look at what they are between.
  [[nodiscard]] bool is_small(bytes_t bytes, const copy_options& options) const noexcept;

  void adopt(runtime::event_handle event, end_owners owners) override;

private:
  enum class lane_phase : std::uint8_t {
    absent,
    making,
    free,
    taken,
    active,
    closing,
    settling,
    cooling
  };
  enum class setup_phase : std::uint8_t { not_begun, starting, running, ready, failed };
  static constexpr unsigned most_lanes = 16;

  struct lane {
    std::atomic<lane_phase> phase{lane_phase::absent};
    std::atomic<std::uint32_t> users{0};
    std::atomic<std::uint64_t> generation{0};  // counts copies
    std::unique_ptr<ring> through;
    std::unique_ptr<staged_copy> job;
    runtime::event_handle fence{};
  };

  // --- workers (engine_workers.cpp) ---
  [[nodiscard]] runtime::step_outcome step(unsigned worker);
  // Sets up, makes another lane. False where there is nothing of that sort to do.
  bool background_work();
  void begin_set_up();
  void choose_means();
  void set_up();
  void start_worker(unsigned index);
  [[nodiscard]] result<void> start_helpers();
  [[nodiscard]] result<void> stage(const copy_range& ends, direction way, const staging_rule& rule);
  // Whether the copy gains more from waiting for the set-up than that takes.
  [[nodiscard]] bool is_worth_waiting(const copy_facts& facts) const noexcept;
  void abandon_all() noexcept;
  void end_copies() noexcept;
  void release_all(std::chrono::nanoseconds deadline) noexcept;
  [[nodiscard]] runtime::step_outcome guarded_step(unsigned worker) noexcept;
  [[nodiscard]] result<void> make_lane(lane& one);
  bool help(lane& one, unsigned worker, bool& wanted);
  [[nodiscard]] static bool enter(lane& one) noexcept;
  void leave(lane& one);
  static void close_if_ended(lane& one) noexcept;
  // Workers [first, first + count) of those that a copy wants.
  void wake_helpers(unsigned first, unsigned count, unsigned helpers) noexcept;
  void wake_first(unsigned helpers) noexcept;
  void wake_others(const lane& one, unsigned worker, unsigned helpers) noexcept;
  [[nodiscard]] bool wait_until(const std::function<bool()>& done);
  void pass_time() const;

  // --- lanes ---
  [[nodiscard]] lane* take_lane(unsigned spare);
  void refresh_lanes();
  [[nodiscard]] bool has_lane() const noexcept;
  // For how long a copy waits for a ring.
  enum class patience : std::uint8_t {
    brief,    // then the runtime can make the copy
    endless,  // nobody else can
  };
  struct found_lane {
    lane* one = nullptr;  // null: none came in time
    bool fenced = false;  // all earlier work of the stream has ended
  };
  [[nodiscard]] result<found_lane> wait_for_lane(runtime::stream_handle stream, patience how_long);

  // --- copies ---
  // What to do about a copy that nobody else waits for: sets up where that pays.
  [[nodiscard]] decision decide_staging(const copy_facts& facts, const staging_wish& wish);
  // After a copy was begun: waits as far as it is wished. Null ticket: no ring was free.
  [[nodiscard]] static result<copy_plan> end_staging(copy_plan plan,
                                                     const result<ticket_pointer>& ticket,
                                                     completion until);
  struct looked_at {
    copy_facts facts;
    runtime::pointer_info source;
    runtime::pointer_info destination;
  };
  [[nodiscard]] result<looked_at> look(const copy_range& ends, const copy_options& options) const;
  [[nodiscard]] result<copy_facts> facts_of(const copy_range& ends, runtime::stream_handle stream,
                                            const copy_options& options) const;
  [[nodiscard]] result<ticket_pointer> carry_out(const copy_range& ends, const decision& what,
                                                 runtime::stream_handle stream,
                                                 const copy_options& options, completion until);
  [[nodiscard]] staged_work linear_work(const copy_range& ends, const decision& what,
                                        completion until);
  [[nodiscard]] result<ticket_pointer> carry_linear(const copy_range& ends, const decision& what,
                                                    runtime::stream_handle stream,
                                                    const copy_options& options, completion until);
  [[nodiscard]] engine_means means() const noexcept;
  [[nodiscard]] result<bool> is_capturing(runtime::stream_handle stream) const;
  [[nodiscard]] result<ticket_pointer> leave_to_runtime(const copy_range& ends, copy_plan plan,
                                                        runtime::stream_handle stream,
                                                        const copy_options& options,
                                                        completion until);
  [[nodiscard]] result<ticket_pointer> copy_directly(const copy_range& ends, copy_plan plan,
                                                     runtime::stream_handle stream,
                                                     const copy_options& options);
  [[nodiscard]] result<ticket_pointer> launch_kernel(const copy_range& ends, copy_plan plan,
                                                     runtime::stream_handle stream,
                                                     const copy_options& options);
  [[nodiscard]] result<std::optional<runtime::scoped_device>> current_for(
      runtime::stream_handle stream) const;
  [[nodiscard]] result<ticket_pointer> tracked(copy_plan plan, runtime::stream_handle stream,
                                               end_owners owners,
                                               const std::function<result<void>()>& queue);
  // Null ticket: no lane could be had; nothing was done.
  [[nodiscard]] result<ticket_pointer> carry(staged_work work, runtime::stream_handle stream,
                                             end_owners owners,
                                             patience how_long = patience::brief);
  [[nodiscard]] static result<void> begin_in(lane& one, staged_work work);
  [[nodiscard]] bool carry_in(lane& one, runtime::stream_handle stream);
  void order_remains(const lane& one, runtime::stream_handle stream) const;
  // engine_batch.cpp
  [[nodiscard]] result<copy_facts> facts_of_rows(const runtime::copy_2d& what,
                                                 runtime::stream_handle stream,
                                                 const copy_options& options) const;
  [[nodiscard]] result<ticket_pointer> carry_rows(const runtime::copy_2d& what, copy_plan plan,
                                                  runtime::stream_handle stream,
                                                  const copy_options& options, completion until);
  [[nodiscard]] result<ticket_pointer> leave_rows_to_runtime(const runtime::copy_2d& what,
                                                             copy_plan plan,
                                                             runtime::stream_handle stream,
                                                             const copy_options& options);
  // Too wide for a block of several.
  [[nodiscard]] bool has_wide_rows(const runtime::copy_2d& what) const noexcept;
  [[nodiscard]] result<copy_plan> stage_row_by_row(const runtime::copy_2d& what,
                                                   const copy_plan& whole,
                                                   runtime::stream_handle stream,
                                                   const staging_wish& wish);
  [[nodiscard]] result<ticket_pointer> copy_row_by_row(const runtime::copy_2d& what,
                                                       runtime::stream_handle stream,
                                                       const copy_options& options);
  struct sorted_batch;
  [[nodiscard]] result<sorted_batch> sort_batch(std::span<const copy_range> what,
                                                runtime::stream_handle stream,
                                                const copy_options& options);
  [[nodiscard]] result<void> check_callback(std::byte* device_memory, bytes_t bytes,
                                            runtime::stream_handle stream) const;
  [[nodiscard]] result<ticket_pointer> carry_packed(std::vector<packed_range> ranges, direction way,
                                                    runtime::stream_handle stream,
                                                    const copy_options& options);
  [[nodiscard]] staged_work staged(const copy_plan& plan, std::vector<block> blocks) const;
  [[nodiscard]] result<void> require_own_process(std::string_view call) const;
  void reap_orphans();

  const std::shared_ptr<memory::context_state> home_;
  const copy_engine_options options_;
  const int process_;
  runtime::page_probe probe_;
  bool host_reaches_device_ = false;
  // Written before setup_ says `ready`:
  unsigned threads_ = 1;  // the caller included
  bytes_t ring_bytes_ = 0;

  std::unique_ptr<thread_executor> own_executor_;  // null on the virtual clock
  runtime::executor* executor_ = nullptr;
  bool virtual_clock_ = false;
  // Of one worker alone: for which copies it has woken others.
  struct helper {
    std::array<std::uint64_t, most_lanes> seen{};
  };
  std::vector<helper> helpers_;
  // Filled up to worker_count_, and never moved: room for all is reserved.
  std::vector<std::unique_ptr<runtime::executor::worker>> workers_;
  std::atomic<unsigned> worker_count_{0};

  std::atomic<setup_phase> setup_{setup_phase::not_begun};
  std::optional<error> setup_failure_;  // written before setup_ says `failed`
  copy_profile profile_;                // written before setup_ says `ready`
  std::atomic<bytes_t> small_below_{0};
  std::atomic<bool> ending_{false};   // nothing new is set up
  std::atomic<bool> closing_{false};  // what stands still is cancelled
  std::atomic<bool> wants_lane_{false};

  std::mutex lanes_mutex_;  // who takes which lane
  std::array<lane, most_lanes> lanes_;
  std::atomic<unsigned> lane_limit_{1};

  kept_ranges kept_;

  struct orphan {
    runtime::event_handle event;
    end_owners owners;
  };
  std::mutex orphans_mutex_;
  std::vector<orphan> orphans_;
  std::atomic<std::size_t> orphan_count_{0};
};

}  // namespace berth::transfer
