// SPDX-License-Identifier: Apache-2.0
// The simulated runtime behind the contract. The operations stand in several files, as the contract
// groups them: simulation.cpp (devices, faults, time), allocations.cpp, copies.cpp, streams.cpp,
// kernels.cpp.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sim/capture.hpp"
#include "runtime/sim/fault_plan.hpp"
#include "runtime/sim/host_pages.hpp"
#include "runtime/sim/journal.hpp"
#include "runtime/sim/pricing.hpp"
#include "runtime/sim/scheduler.hpp"
#include "runtime/sim/sim_driver.hpp"
#include "runtime/sim/virtual_executor.hpp"

namespace berth::runtime::sim {

enum class stream_role : std::uint8_t { created, legacy, per_thread };

struct stream_state {
  std::uint64_t ordinal = 0;
  int device = 0;
  stream_role role = stream_role::created;
  stream_ordering ordering = stream_ordering::blocking;
  int priority = 0;
  std::uint64_t tail = 0;  // number of its last operation; 0: none
  std::shared_ptr<capture_group> capture;
};

struct event_state {
  int device = 0;
  event_options how;
  std::shared_ptr<operation> record;       // null: never recorded
  std::shared_ptr<capture_group> capture;  // the capture that it was last recorded in
};

// What belongs to one thread of the program.
struct thread_state {
  int device = 0;
  capture_mode mode = capture_mode::global;
  std::map<int, std::shared_ptr<stream_state>> streams;  // per_thread_stream, by device
};

class simulation final : public sim_driver, private scheduler::observer {
public:
  simulation(options how, machine::model of, int devices, migration pages);
  ~simulation() override;
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  simulation(simulation&&) = delete;
  simulation& operator=(simulation&&) = delete;

  // driver
  [[nodiscard]] const runtime_info& info() const noexcept override { return info_; }
  [[nodiscard]] std::span<const device_info> devices() const noexcept override { return devices_; }
  result<memory_amounts> memory_info(int device) override;
  result<int> current_device() override;
  result<void> set_current_device(int device) override;
  result<void> synchronize_device(int device) override;
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override;
  // NOLINTNEXTLINE(bugprone-exception-escape): a process without memory or locks ends here
  void charge(const host_work& work) noexcept override;

  result<void*> allocate_device(int device, bytes_t bytes, coherence grain) override;
  result<void> free_device(void* memory) override;
  result<void*> allocate_pinned(bytes_t bytes, const pinned_options& how) override;
  result<void> free_pinned(void* memory) override;
  result<void*> allocate_managed(int device, bytes_t bytes) override;
  result<void> free_managed(void* memory) override;
  result<void> register_host(void* memory, bytes_t bytes, const register_options& how) override;
  result<void> unregister_host(void* memory) override;
  result<void*> device_address(void* host_memory) override;
  result<pointer_info> classify(const void* memory) override;
  result<void> advise(const void* memory, bytes_t bytes, advice what,
                      memory_location where) override;
  result<void> prefetch_async(const void* memory, bytes_t bytes, memory_location where,
                              stream_handle stream) override;

  result<void> copy(void* dst, const void* src, bytes_t bytes) override;
  result<void> copy_async(void* dst, const void* src, bytes_t bytes, stream_handle stream) override;
  result<void> copy_2d_sync(const copy_2d& what) override;
  result<void> copy_2d_async(const copy_2d& what, stream_handle stream) override;
  result<void> copy_peer_async(void* dst, int dst_device, const void* src, int src_device,
                               bytes_t bytes, stream_handle stream) override;
  result<void> fill(void* dst, std::byte value, bytes_t bytes) override;
  result<void> fill_async(void* dst, std::byte value, bytes_t bytes, stream_handle stream) override;

  result<stream_handle> create_stream(int device, const stream_options& how) override;
  result<void> destroy_stream(stream_handle stream) override;
  result<void> synchronize_stream(stream_handle stream) override;
  result<progress> query_stream(stream_handle stream) override;
  result<void> wait_event(stream_handle stream, event_handle event) override;
  result<void> call_host(stream_handle stream, host_function function, void* data) override;

  result<event_handle> create_event(int device, const event_options& how) override;
  result<void> destroy_event(event_handle event) override;
  result<void> record_event(event_handle event, stream_handle stream) override;
  result<progress> query_event(event_handle event) override;
  result<void> synchronize_event(event_handle event) override;
  result<std::chrono::nanoseconds> elapsed(event_handle start, event_handle end) override;

  result<bool> can_access_peer(int device, int peer) override;
  result<void> enable_peer_access(int device, int peer) override;
  result<void> disable_peer_access(int device, int peer) override;

  result<void> prepare_kernels(int device) override;
  result<void> launch(const kernel_request& request, stream_handle stream,
                      launch_shape shape) override;

  result<capture_status> stream_capture_status(stream_handle stream) override;
  result<capture_mode> exchange_capture_mode(capture_mode mode) override;

  // sim_driver
  [[nodiscard]] std::vector<executed_operation> executed() const override;
  [[nodiscard]] std::string executed_text() const override;
  void inject(const fault& what) override;
  void clear_faults() override;
  [[nodiscard]] std::uint64_t calls() const override;
  [[nodiscard]] holdings held() const override;
  result<void> begin_capture(stream_handle stream, capture_mode mode) override;
  result<std::size_t> end_capture(stream_handle stream) override;
  void declare_pages(const void* memory, bytes_t bytes, page_facts facts) override;
  [[nodiscard]] executor* workers() noexcept override;

private:
  using lock = scheduler::lock;
  using stream_pointer = std::shared_ptr<stream_state>;

  // scheduler::observer
  running_cost starts(operation& what) override;
  void ended(const operation& what) override;
  void faulted(const operation& what, const memory_range& where) override;
  void note_places(const operation& what);

  // Every call begins so: it is counted, takes its time, and may be made to fail.
  result<lock> enter(call which, bytes_t requested = 0);
  [[nodiscard]] thread_state& this_thread();
  void spend(double ns) noexcept;

  // Nothing, or the error: no such device, or a lost one.
  [[nodiscard]] result<void> check_device(int device, call which) const;
  [[nodiscard]] result<void> check_alive(int device, call which) const;
  [[nodiscard]] result<void> require(capability what, call which) const;
  [[nodiscard]] bool has(capability what) const noexcept { return info_.capabilities.has(what); }
  [[nodiscard]] const device_info& device(int index) const {
    return devices_[static_cast<std::size_t>(index)];
  }

  // --- memory ---
  [[nodiscard]] result<void*> allocate(allocation made, call which, bytes_t limit, bytes_t used);
  [[nodiscard]] result<void> release(void* memory, memory_kind kind, call which,
                                     machine::operation cost);
  [[nodiscard]] result<memory_range> resolve(const void* first, bytes_t bytes, call which) const;
  // The device can use it in a kernel.
  [[nodiscard]] result<void> check_reach(const memory_range& range, access_kind how, int device,
                                         call which) const;
  void make_visible();

  // --- copies ---
  struct copy_request {
    void* dst;
    std::size_t dst_pitch;
    const void* src;
    std::size_t src_pitch;
    std::size_t width;
    std::size_t rows;
  };
  enum class blocking : std::uint8_t { yes, no };
  [[nodiscard]] result<copy_work> plan_copy(const copy_request& what, int device, call which) const;
  [[nodiscard]] result<void> run_copy(const copy_request& what, stream_handle stream, blocking wait,
                                      call which);
  [[nodiscard]] result<void> run_host_copy(lock& held, stream_state& on, copy_work what,
                                           call which);
  [[nodiscard]] result<void> run_device_copy(lock& held, stream_state& on, copy_work what,
                                             blocking wait, call which);
  [[nodiscard]] result<void> run_fill(void* dst, std::byte value, bytes_t bytes,
                                      stream_handle stream, blocking wait, call which);
  [[nodiscard]] bool may_stage(const copy_work& what) const noexcept;

  // --- streams ---
  [[nodiscard]] result<stream_pointer> find_stream(stream_handle stream, call which);
  [[nodiscard]] result<std::shared_ptr<event_state>> find_event(event_handle event, call which);
  [[nodiscard]] std::vector<std::uint64_t> predecessors(const stream_state& on) const;
  // Queues; null where a capture has recorded it instead. `device` carries it.
  [[nodiscard]] result<std::shared_ptr<operation>> queue(stream_state& on, operation_work what,
                                                         lane where, int device, call which);
  [[nodiscard]] result<void> wait_for(lock& held, const operation& what, call which);
  // All earlier work of the stream.
  [[nodiscard]] result<void> drain(lock& held, stream_state& on, call which);
  [[nodiscard]] result<void> refuse_if_capturing(const stream_state& on, call which);
  [[nodiscard]] result<void> check_implicit_capture(const stream_state& on, call which);
  [[nodiscard]] stream_pointer make_stream(int device, stream_role role, stream_ordering ordering);
  // All streams of the device, the default ones included.
  [[nodiscard]] std::vector<stream_pointer> streams_of(int device) const;
  void forget_idle(std::vector<stream_pointer>& streams) const;

  // --- kernels ---
  [[nodiscard]] result<kernel_work> plan_kernel(const kernel_request& request, launch_shape shape,
                                                int device) const;
  [[nodiscard]] double host_cost(const host_work& work);
  [[nodiscard]] double managed_host_cost(const void* first, bytes_t bytes, access_kind how);

  const options how_;
  const machine::model model_;
  const migration migration_;
  const std::uint64_t identity_;  // among all simulated runtimes of the process
  runtime_info info_;
  std::vector<device_info> devices_;

  costs costs_;
  pricing pricing_;
  address_space space_;
  host_pages pages_;
  fault_plan faults_;
  journal journal_;
  captures captures_;
  std::map<std::uintptr_t, stream_pointer> streams_;
  std::vector<stream_pointer> default_streams_;  // by device
  // Per-thread and destroyed streams: their work is waited for after the thread or handle has gone.
  std::vector<stream_pointer> per_thread_streams_;
  std::vector<stream_pointer> destroyed_streams_;
  std::map<std::uintptr_t, std::shared_ptr<event_state>> events_;
  std::vector<std::pair<int, int>> peers_enabled_;
  std::vector<std::string> lost_because_;  // by device
  std::uint64_t allocated_ = 0;
  std::uint64_t streams_made_ = 0;
  std::uint64_t events_made_ = 0;

  // Last: their threads use all of the above.
  mutable scheduler scheduler_;
  std::unique_ptr<virtual_executor> workers_;
};

}  // namespace berth::runtime::sim
