// SPDX-License-Identifier: Apache-2.0
/// @file
/// Copies between host and GPU at the speed of the link, whatever memory the host side is.
///
/// The runtimes move page-locked memory by DMA and everything else through a detour that reaches a
/// fraction of the link. A copy engine takes that detour better: several threads fill (or empty) a
/// small ring of page-locked memory while DMA empties (or fills) it. Copies that the runtime does
/// as fast are left to it.
///
/// Order. A copy runs after all earlier work of its stream and before all later work, as the
/// runtime's own asynchronous copy does.
///
/// Blocking. A call returns when the order is established: at once between page-locked memory and
/// device; for pageable memory when the last DMA has been queued, which is when a pageable source
/// has been read. It blocks for earlier work of the stream where the runtime's own pageable copy
/// does. What may still be under way then, the ticket tells.
///
/// Memory that the program did not give to keep() is never page-locked in place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/context.hpp"
#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth {

namespace transfer {
class engine_state;
class ticket_state;
}  // namespace transfer

/// How a copy is carried.
enum class copy_path : std::uint8_t {
  nothing,          ///< 0 bytes
  runtime,          ///< the runtime's own copy of the same call
  direct,           ///< one DMA: both ends are page-locked or device memory
  kept,             ///< one DMA: the host end lies under keep()
  kernel,           ///< compute units copy
  staged_inline,    ///< through the ring by the calling thread alone
  staged_threaded,  ///< through the ring by several threads
};

/// Why this path.
enum class copy_reason : std::uint8_t {
  no_bytes,
  small,                ///< below the size from which staging wins
  page_locked,          ///< no host end needs staging
  kept,                 ///< the program keeps the range page-locked
  requested,            ///< copy_options::prefer
  pageable,             ///< a pageable end, large enough
  one_cpu,              ///< pageable, and no CPU but the caller's may be used
  host_reaches_device,  ///< integrated or coherently attached: pageable memory needs no detour
  both_host,            ///< no device end
  managed_end,          ///< managed memory: the runtime knows where its pages are
  unknown_memory,       ///< an end that berth has no word for
  capturing,            ///< the stream records a graph
  not_ready,            ///< the ring is being set up, and waiting for it would not pay
  no_profile,           ///< nothing is known of this machine and calibration was declined
  slower_here,          ///< the profile says that the runtime is as fast on this machine
  starved,              ///< all rings stood still for others for too long
  no_ring,              ///< the set-up has failed: try_prepare() says why
};

[[nodiscard]] std::string_view to_string(copy_path value) noexcept;
[[nodiscard]] std::string_view to_string(copy_reason value) noexcept;

/// What the engine would do, and did.
struct copy_plan {
  copy_path path = copy_path::runtime;
  copy_reason reason = copy_reason::small;
  direction way = direction::unknown;
  bytes_t bytes = 0;
  unsigned threads = 0;       ///< that fill or empty the ring, the caller included; 0: none
  bytes_t first_block = 0;    ///< the first DMA; blocks grow from here
  bytes_t largest_block = 0;  ///< and shrink again at the end
  bytes_t piece = 0;          ///< what one thread copies at a time
  bool populates = false;     ///< fresh destination pages are made present beforehand
  bool reads_ahead = false;   ///< the source is, or may be, a mapped file
};

/// Where the time of a copy went. All times by the driver's clock.
struct copy_stats {
  copy_plan plan;
  std::uint32_t blocks = 0;  ///< DMAs
  std::chrono::nanoseconds total{0};
  /// The link stood idle because no block was filled, or emptied, in time.
  std::chrono::nanoseconds waiting_for_fill{0};
  /// All threads stood idle because the link was busy.
  std::chrono::nanoseconds waiting_for_link{0};
};

/// What one copy asks for beyond its ends.
struct copy_options {
  /// engine::kernel: copy by compute units, where both ends are within their reach.
  engine prefer = engine::unknown;
  /// The direction that the caller has in mind; checked where it is not `unknown`.
  direction expected = direction::unknown;
  /// Kept until the copy has ended, also when the ticket has been dropped.
  std::shared_ptr<const void> source_owner = {};
  std::shared_ptr<const void> destination_owner = {};
};

/// One of many copies.
struct copy_range {
  void* dst = nullptr;
  const void* src = nullptr;
  bytes_t bytes = 0;
};

/// The end of a copy. Movable; may be dropped at any time without effect on the copy.
class ticket {
public:
  ticket() noexcept;
  ticket(ticket&& other) noexcept;
  ticket& operator=(ticket&& other) noexcept;
  ticket(const ticket&) = delete;
  ticket& operator=(const ticket&) = delete;
  ~ticket();

  /// Blocks until the source may change and a host destination holds the data. A device destination
  /// is complete for later work of the stream. For a copy that was left to the runtime between
  /// page-locked ends this may wait for later work of the stream, too.
  /// @errors those of the copy, transfer_cancelled
  [[nodiscard]] result<copy_stats> try_wait();
  /// @throws berth::exception
  copy_stats wait() { return try_wait().value(); }
  /// Whether try_wait would return at once. Does not block.
  [[nodiscard]] bool is_done() const;
  /// What is known so far; complete once is_done().
  [[nodiscard]] copy_stats stats() const;

private:
  friend class copy_engine;
  friend class transfer::engine_state;
  explicit ticket(std::shared_ptr<transfer::ticket_state> state) noexcept;

  std::shared_ptr<transfer::ticket_state> state_;  // null: complete
};

/// Where the engine takes its plan from.
enum class calibration : std::uint8_t {
  cached,   ///< the saved profile of this machine, else measure once (at most 200 ms) and save it
  fresh,    ///< measure now; save it
  never,    ///< the saved profile, else leave all copies to the runtime
  nominal,  ///< the figures that berth ships; for tests and simulated machines
};

/// What a copy that stands still looks like to the watchdog.
struct stalled_copy {
  copy_plan plan;
  bytes_t done = 0;
  std::chrono::nanoseconds since{0};  ///< the last progress
};

struct copy_engine_options {
  int device = 0;
  /// Threads that copy, the caller included. 0: as the CPUs near the GPU, the process's affinity
  /// and the cgroup allow.
  unsigned most_threads = 0;
  /// Page-locked memory of one ring. 0: what suits the last-level cache, at most 32 MiB.
  bytes_t ring_bytes = 0;
  /// Copies that may be staged at the same time; each needs a ring, made at first use.
  unsigned most_rings = 4;
  calibration profile = calibration::cached;
  /// Helping threads look for another copy for four times as long as the last one took, and at most
  /// so long, before they sleep. Waking a sleeping thread takes as long as a copy of half a
  /// megabyte; looking takes the CPU.
  std::chrono::nanoseconds alert_for = std::chrono::milliseconds(2);
  /// A copy without progress for so long is reported, once. Nothing is done about it.
  std::chrono::nanoseconds stall_after = std::chrono::seconds(10);
  /// Called from whichever thread notices; must not block.
  std::function<void(const stalled_copy&)> on_stall = {};
};

/// Writes or reads a slot of the ring in place of a copy from or to host memory: `offset` is the
/// slot's place in the whole. Several threads call it at once, for different slots.
using slot_producer = std::function<result<void>(std::span<std::byte> slot, bytes_t offset)>;
using slot_consumer = std::function<result<void>(std::span<const std::byte> slot, bytes_t offset)>;

/// Whether callbacks come from several threads, or from the calling thread alone, in order.
enum class callback_order : std::uint8_t { any, sequential };

/// Copies for one device of a context. Move-only. All members are safe to call from any thread.
/// Idle, it uses no CPU. After fork() the child has no engine: calls there give transfer_forked.
///
/// Default streams are those of the engine's device.
class copy_engine {
public:
  /// Returns at once; the ring is set up in the background, and copies that come before it is ready
  /// are left to the runtime unless waiting pays.
  /// @errors gpu_device_out_of_range, memory_context_closed
  [[nodiscard]] static result<copy_engine> try_make(const context& on,
                                                    copy_engine_options options = {});
  /// @throws berth::exception
  [[nodiscard]] static copy_engine make(const context& on, copy_engine_options options = {}) {
    return try_make(on, std::move(options)).value();
  }

  copy_engine(copy_engine&& other) noexcept;
  copy_engine& operator=(copy_engine&& other) noexcept;
  copy_engine(const copy_engine&) = delete;
  copy_engine& operator=(const copy_engine&) = delete;
  /// Waits for copies that make progress; what stands still is cancelled (transfer_cancelled).
  ~copy_engine();

  /// Copies `bytes`; the direction follows from the addresses.
  /// @errors transfer_overlap, transfer_wrong_direction, transfer_out_of_range, transfer_unmapped,
  ///         transfer_forked, those of the GPU; with the path and how much was done
  [[nodiscard]] result<ticket> try_copy(void* dst, const void* src, bytes_t bytes,
                                        runtime::stream_handle stream,
                                        const copy_options& options = {});
  /// @throws berth::exception
  ticket copy(void* dst, const void* src, bytes_t bytes, runtime::stream_handle stream,
              const copy_options& options = {}) {
    return try_copy(dst, src, bytes, stream, options).value();
  }

  /// As copy, and returns when the copy is complete: what hipMemcpy and cudaMemcpy are for. Where
  /// it is left to the runtime, a device destination is complete as after that call: for later work
  /// of the default and of blocking streams.
  [[nodiscard]] result<copy_stats> try_copy_and_wait(
      void* dst, const void* src, bytes_t bytes,
      runtime::stream_handle stream = runtime::default_stream, const copy_options& options = {});
  /// @throws berth::exception
  copy_stats copy_and_wait(void* dst, const void* src, bytes_t bytes,
                           runtime::stream_handle stream = runtime::default_stream,
                           const copy_options& options = {}) {
    return try_copy_and_wait(dst, src, bytes, stream, options).value();
  }

  /// As copy, by rows.
  [[nodiscard]] result<ticket> try_copy_2d(const runtime::copy_2d& what,
                                           runtime::stream_handle stream,
                                           const copy_options& options = {});
  /// @throws berth::exception
  ticket copy_2d(const runtime::copy_2d& what, runtime::stream_handle stream,
                 const copy_options& options = {}) {
    return try_copy_2d(what, stream, options).value();
  }

  /// Many copies as one, in no order among themselves; their ranges must not overlap. Small ones
  /// are packed: what costs is then their bytes, not their number.
  [[nodiscard]] result<ticket> try_copy_batch(std::span<const copy_range> what,
                                              runtime::stream_handle stream,
                                              const copy_options& options = {});
  /// @throws berth::exception
  ticket copy_batch(std::span<const copy_range> what, runtime::stream_handle stream,
                    const copy_options& options = {}) {
    return try_copy_batch(what, stream, options).value();
  }

  /// Fills device memory with what `from` writes into the ring: data from disk or network, or
  /// converted on the way, needs no buffer of its own.
  /// @errors transfer_callback with the callback's error; as copy
  [[nodiscard]] result<ticket> try_produce(void* dst, bytes_t bytes, const slot_producer& from,
                                           runtime::stream_handle stream,
                                           callback_order order = callback_order::any);
  /// @throws berth::exception
  ticket produce(void* dst, bytes_t bytes, const slot_producer& from, runtime::stream_handle stream,
                 callback_order order = callback_order::any) {
    return try_produce(dst, bytes, from, stream, order).value();
  }
  /// Shows device memory to `to`, slot by slot.
  [[nodiscard]] result<ticket> try_consume(const void* src, bytes_t bytes, slot_consumer to,
                                           runtime::stream_handle stream,
                                           callback_order order = callback_order::any);
  /// @throws berth::exception
  ticket consume(const void* src, bytes_t bytes, slot_consumer to, runtime::stream_handle stream,
                 callback_order order = callback_order::any) {
    return try_consume(src, bytes, std::move(to), stream, order).value();
  }

  /// Promises that [memory, memory + size) stays allocated until forget(), and page-locks it, so
  /// that copies inside it need no staging. Blocks for the runtime (about 20 GB/s). Ranges may
  /// overlap; each keep needs its own forget.
  /// @errors those of context::register_memory
  [[nodiscard]] result<void> try_keep(std::span<std::byte> memory);
  /// @throws berth::exception
  void keep(std::span<std::byte> memory) { try_keep(memory).value(); }
  /// Ends keep() of the range that begins there. Blocks for the engine's copies that use it.
  /// @errors transfer_not_kept
  [[nodiscard]] result<void> try_forget(std::span<std::byte> memory);
  /// @throws berth::exception
  void forget(std::span<std::byte> memory) { try_forget(memory).value(); }

  /// What copy() would do now. Makes no copy.
  /// @errors as copy
  [[nodiscard]] result<copy_plan> try_plan(const void* dst, const void* src, bytes_t bytes,
                                           const copy_options& options = {}) const;
  /// @throws berth::exception
  [[nodiscard]] copy_plan plan(const void* dst, const void* src, bytes_t bytes,
                               const copy_options& options = {}) const {
    return try_plan(dst, src, bytes, options).value();
  }

  /// Blocks until the engine has its profile and its first ring.
  /// @errors why it has none; copies are left to the runtime then
  [[nodiscard]] result<void> try_prepare();
  /// @throws berth::exception
  void prepare() { try_prepare().value(); }

  /// Gives back the rings that no copy uses, and returns the bytes of page-locked memory that were
  /// theirs. The next copy that wants one has it made again, and is left to the runtime meanwhile
  /// where that is not worth waiting for. Blocks as the runtime does that un-registers memory: for
  /// all work of the device.
  bytes_t trim() noexcept;

private:
  explicit copy_engine(std::shared_ptr<transfer::engine_state> state) noexcept;

  std::shared_ptr<transfer::engine_state> state_;  // null: moved from
};

}  // namespace berth
