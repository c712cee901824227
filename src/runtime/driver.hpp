// SPDX-License-Identifier: Apache-2.0
// The contract between berth and a GPU. All that berth does with a GPU goes through a `driver`;
// hip/, cuda/ and sim/ each implement one, and the conformance suite states what stands here as
// tests.
//
// Words
//   device        index 0 .. device_count()-1, constant while the driver lives.
//   current       the calling thread's current device, 0 at first, as in the runtime itself: a
//                 thread of the program keeps the one that it has set. No operation but
//                 set_current_device changes it.
//   host side     pageable, registered and pinned memory.
//   blocks        does not return before device work has completed; an operation without the word
//                 only queues or answers, though the runtime may take microseconds.
//   [checked]     a broken precondition that gives the error named. Any other broken precondition
//                 is undefined on hip and cuda; the simulator reports it as gpu_invalid_value (an
//                 address or size) or gpu_invalid_handle (a stream or event).
//
// Rules that hold for every operation
//   Threads    any thread may call anything at any time, also with the same handle.
//   Order      work queued into one stream runs in the order queued. Work of two streams is
//              unordered, but for events, and for default_stream against blocking streams.
//   Ownership  what an allocate_ or create_ operation returns is the caller's until the matching
//              free_ or destroy_; all must be given back before the driver is destroyed. Buffers
//              named by queued work must live until the work has completed.
//   Errors     a failed operation has done nothing, unless it says else. An error of earlier queued
//              work (gpu_device_lost) may come out of any later operation, which then did nothing.
//              The message ends with the runtime's own name and number of the error.
//   Last error the runtime's "last error" of the program is left as it was, with one exception: HIP
//              cannot restore an earlier error of the program that a failing call has overwritten;
//              then it is cleared. berth's own failures never stay behind.
//   Capture    while a stream captures, operations that the runtime refuses give gpu_capture.
//   Sizes      0 bytes: copies, fills, launches do nothing and succeed; allocations [checked]
//              gpu_invalid_value.
//   Exit       operations after the runtime has shut down (static destructors) give
//              gpu_shut_down and are harmless.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "runtime/kernels.hpp"

namespace berth::runtime {

class driver {
public:
  using host_function = void (*)(void* data);

  driver() = default;
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;
  driver(driver&&) = delete;
  driver& operator=(driver&&) = delete;
  // Gives back what the driver holds of the runtime. The library stays loaded.
  virtual ~driver() = default;

  // --- Runtime and devices ------------------------------------------------------------------

  // Never fail: known since the driver was opened. At least one device.
  [[nodiscard]] virtual const runtime_info& info() const noexcept = 0;
  [[nodiscard]] virtual std::span<const device_info> devices() const noexcept = 0;

  // Free and total bytes of the device's memory now. Total may be below device_info::memory_total.
  // Errors: gpu_device_out_of_range [checked].
  virtual result<memory_amounts> memory_info(int device) = 0;

  // The calling thread's device.
  virtual result<int> current_device() = 0;
  // Errors: gpu_device_out_of_range [checked].
  virtual result<void> set_current_device(int device) = 0;

  // Blocks until all work of the device, in all its streams, has completed; all memory is visible
  // to the host then. Errors: gpu_device_out_of_range [checked], those of the work.
  virtual result<void> synchronize_device(int device) = 0;

  // The clock of the driver: monotonic, of no fixed epoch. Real time, or the simulator's.
  [[nodiscard]] virtual std::chrono::nanoseconds now() const noexcept = 0;

  // Tells a driver with its own clock what the calling thread does on the CPU; nothing elsewhere.
  // Call it for work that a model of time should see: copies of bulk data, waiting.
  virtual void charge(const host_work& /*work*/) noexcept {}

  // --- Memory -------------------------------------------------------------------------------
  // Contents of new memory are undefined. Addresses are aligned to 256 bytes at least.
  // Allocating and freeing may take milliseconds and may block for all work of the device, so pool.
  // Errors of allocations: gpu_out_of_memory with requested, free and total bytes;
  // gpu_device_out_of_range [checked]; gpu_invalid_value for 0 bytes [checked].
  // Errors of frees: gpu_invalid_value for an address that the runtime does not know, where it
  // notices. A null address succeeds. The matching free is required: hip tolerates others, cuda
  // and the simulator do not (gpu_invalid_value).
  // Freeing memory that queued work still uses is the caller's fault. Do not rely on a free to
  // wait.

  // The device's own memory. coherence::fine needs capability::fine_grained_device and a device
  // with fine_grained_memory (gpu_not_supported without); `unknown` is coarse.
  virtual result<void*> allocate_device(int device, bytes_t bytes,
                                        coherence grain = coherence::coarse) = 0;
  virtual result<void> free_device(void* memory) = 0;

  // Page-locked host memory; the host address. Traits that the runtime lacks (see capability) are
  // ignored, since they never change results.
  virtual result<void*> allocate_pinned(bytes_t bytes, const pinned_options& options = {}) = 0;
  virtual result<void> free_pinned(void* memory) = 0;

  // Memory that both sides use at one address. Where device_info::concurrent_managed_access is not
  // true, the host must not touch it while the device works. Needs capability::managed.
  virtual result<void*> allocate_managed(int device, bytes_t bytes) = 0;
  virtual result<void> free_managed(void* memory) = 0;

  // Page-locks [memory, memory + bytes) of the program. Any alignment; whole pages are pinned.
  // Pre: not registered yet, not freed or unmapped before unregister_host.
  // Errors: gpu_already_registered (any part), gpu_out_of_memory (also for RLIMIT_MEMLOCK),
  // gpu_invalid_value, gpu_not_supported (some mapped files), gpu_not_permitted.
  virtual result<void> register_host(void* memory, bytes_t bytes,
                                     const register_options& options = {}) = 0;
  // `memory` is the start that was registered, through this driver (HIP cannot be trusted with any
  // other address). Pre: no queued work uses the range.
  // Errors: gpu_not_registered.
  virtual result<void> unregister_host(void* memory) = 0;

  // Where devices find pinned, registered or managed memory. The offset into an allocation is kept.
  // Errors: gpu_invalid_value for any other memory; for unmapped memory where a runtime has such.
  virtual result<void*> device_address(void* host_memory) = 0;

  // What an address is. Works for addresses inside allocations, and at one past none. Never touches
  // the memory. Null gives `unknown`; an address that the runtime does not know gives `pageable`.
  virtual result<pointer_info> classify(const void* memory) = 0;

  // Hints for managed memory; success does not prove an effect (AMD without HMM ignores them).
  // `where` counts for preferred_location and accessed_by only.
  // Pre: [memory, memory+bytes) lies in one managed allocation, or is pageable on a device with
  // pageable_access. Need capability::advise, coarse_grain_advice, prefetch.
  // Errors: gpu_invalid_value, gpu_device_out_of_range [checked], gpu_not_supported.
  virtual result<void> advise(const void* memory, bytes_t bytes, advice what,
                              memory_location where) = 0;
  // Moves pages in stream order. May block on AMD.
  virtual result<void> prefetch_async(const void* memory, bytes_t bytes, memory_location where,
                                      stream_handle stream) = 0;

  // --- Copies and fills ---------------------------------------------------------------------
  // The direction follows from what the addresses are (unified addressing). Any alignment. The
  // ranges must not overlap. Both may be host memory.
  // Errors: gpu_invalid_value (a range that leaves its allocation, where the runtime notices).
  //
  // When may the source change, when is the result there?
  //   copy         returns when the source may change and a host destination holds the data. A
  //                device destination is complete for later work of default_stream and of blocking
  //                streams; a non-blocking stream must wait for an event recorded in
  //                default_stream after it. Ordered as default_stream, so it blocks for earlier
  //                work there; within one device it need not block at all.
  //   copy_async   pinned, registered, managed, device: the source is read, and the destination
  //                written, at any time until the stream gets past the copy.
  //                pageable source: has been read when the call returns (it may block for that,
  //                also for earlier work of the stream).
  //                pageable destination: holds the data when the call returns (blocks).
  //                Exception: devices with pageable_uses_host_page_tables may treat pageable memory
  //                as pinned; nothing is guaranteed before the stream gets past the copy.
  //                Both host: may be done by the CPU, after earlier work of the stream; blocks.

  virtual result<void> copy(void* dst, const void* src, bytes_t bytes) = 0;
  virtual result<void> copy_async(void* dst, const void* src, bytes_t bytes,
                                  stream_handle stream) = 0;

  // As copy and copy_async, by rows. Errors: gpu_invalid_value for a pitch below width [checked].
  virtual result<void> copy_2d_sync(const copy_2d& what) = 0;
  virtual result<void> copy_2d_async(const copy_2d& what, stream_handle stream) = 0;

  // Device memory of one device to another's; also without peer access, then by way of the host.
  // Errors: gpu_device_out_of_range [checked]. Needs capability::peer_access.
  virtual result<void> copy_peer_async(void* dst, int dst_device, const void* src, int src_device,
                                       bytes_t bytes, stream_handle stream) = 0;

  // Sets each byte. `fill` blocks until it is done (the runtimes' own calls do not); ordered as
  // default_stream. Pre: device, managed, or mapped pinned or registered memory.
  virtual result<void> fill(void* dst, std::byte value, bytes_t bytes) = 0;
  virtual result<void> fill_async(void* dst, std::byte value, bytes_t bytes,
                                  stream_handle stream) = 0;

  // --- Streams ------------------------------------------------------------------------------
  // A stream belongs to one device. Errors of all that take a stream or event: gpu_invalid_handle,
  // where the runtime notices.

  // Errors: gpu_device_out_of_range [checked].
  virtual result<stream_handle> create_stream(int device, const stream_options& options = {}) = 0;
  // Queued work still runs to its end; may block for it. Pre: made by create_stream.
  virtual result<void> destroy_stream(stream_handle stream) = 0;
  // Blocks until the stream is empty; all memory is visible to the host then. Errors: of the work.
  virtual result<void> synchronize_stream(stream_handle stream) = 0;
  // Does not block. On a driver with its own clock each query lets time pass. Errors: of the work.
  virtual result<progress> query_stream(stream_handle stream) = 0;
  // Later work of the stream waits for the event's last record made before this call, on any
  // device; for none, it does nothing.
  virtual result<void> wait_event(stream_handle stream, event_handle event) = 0;
  // Calls function(data) on a thread of the runtime once all earlier work of the stream is done;
  // later work waits for its return. The function must not use the GPU, this driver (but now() and
  // charge()), or wait for GPU work. It is called exactly once, unless the device is lost first.
  // Needs capability::host_callback.
  virtual result<void> call_host(stream_handle stream, host_function function, void* data) = 0;

  // --- Events -------------------------------------------------------------------------------

  // Errors: gpu_device_out_of_range [checked].
  virtual result<event_handle> create_event(int device, const event_options& options = {}) = 0;
  // A recorded event that is still pending may be destroyed: its record, and waits for it that are
  // queued, stay in force.
  virtual result<void> destroy_event(event_handle event) = 0;
  // Marks the present end of the stream. A new record replaces the last. Pre: the event and the
  // stream are of the same device. Errors: gpu_invalid_handle for two devices.
  virtual result<void> record_event(event_handle event, stream_handle stream) = 0;
  // An event never recorded counts as complete. After `complete`, and after synchronize_event, the
  // work before the record has completed, and its writes are visible to the host; for
  // coarse-grained host memory only with event_release::system. Errors: of the work.
  virtual result<progress> query_event(event_handle event) = 0;
  virtual result<void> synchronize_event(event_handle event) = 0;  // blocks
  // Time between two records on the device's clock; may be negative; resolution about 1 us.
  // Errors: gpu_invalid_handle for an event without timing or never recorded [checked];
  // gpu_not_ready for one that is still pending [checked].
  virtual result<std::chrono::nanoseconds> elapsed(event_handle start, event_handle end) = 0;

  // --- Peers --------------------------------------------------------------------------------
  // Errors: gpu_device_out_of_range [checked]. Need capability::peer_access.

  // Whether `device` can reach memory of `peer` directly. A device reaches its own: true.
  virtual result<bool> can_access_peer(int device, int peer) = 0;
  // Lets kernels and copies of `device` reach memory of `peer`. Enabled already: success. For the
  // device itself: success. Errors: gpu_not_supported where can_access_peer is false.
  virtual result<void> enable_peer_access(int device, int peer) = 0;
  // Not enabled: success.
  virtual result<void> disable_peer_access(int device, int peer) = 0;

  // --- Kernels ------------------------------------------------------------------------------
  // Need capability::kernels.

  // Loads, and on HIP compiles, berth's kernels for a device; launch does so at first use. May take
  // a second. Errors: gpu_device_out_of_range [checked], gpu_kernel_unavailable with the compiler's
  // words.
  virtual result<void> prepare_kernels(int device) = 0;
  // Queues one of berth's kernels. Pre: the stream's device is current; each address can be used
  // by the device; see kernels.hpp for each request's own.
  // Errors: gpu_invalid_value for a shape or request that its comments exclude [checked],
  // gpu_launch_failed, gpu_kernel_unavailable.
  virtual result<void> launch(const kernel_request& request, stream_handle stream,
                              launch_shape shape = {}) = 0;

  // --- Graph capture ------------------------------------------------------------------------

  // Whether the stream records a graph instead of running work. Never disturbs the capture. Without
  // capability::stream_capture: none.
  virtual result<capture_status> stream_capture_status(stream_handle stream) = 0;
  // Sets this thread's mode and returns the former. Worker threads set `relaxed`, so that a capture
  // elsewhere does not refuse their calls, nor is spoilt by them. Without
  // capability::stream_capture: does nothing and returns `mode`.
  virtual result<capture_mode> exchange_capture_mode(capture_mode mode) = 0;
};

// Makes a device current for a scope, and the former one again at its end. For one thread.
class scoped_device {
public:
  // The driver must outlive it. Errors: those of set_current_device.
  static result<scoped_device> make(driver& on, int device);

  scoped_device(const scoped_device&) = delete;
  scoped_device& operator=(const scoped_device&) = delete;
  scoped_device(scoped_device&& other) noexcept : on_(other.on_), former_(other.former_) {
    other.on_ = nullptr;
  }
  scoped_device& operator=(scoped_device&&) = delete;
  ~scoped_device();

private:
  scoped_device(driver* on, int former) noexcept : on_(on), former_(former) {}

  driver* on_;  // null: nothing to restore
  int former_;
};

}  // namespace berth::runtime
