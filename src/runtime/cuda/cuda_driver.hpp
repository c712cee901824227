// SPDX-License-Identifier: Apache-2.0
// The contract over libcuda. memory.cpp has allocations and pointers, work.cpp copies, streams and
// events, driver.cpp devices, peers and kernels, open.cpp how a library becomes a driver. What the
// driver says is decoded in decode.cpp.
//
// Context: CUDA's driver calls need a context current in the thread, where the contract knows a
// current device. Each device has one primary context, the one that the CUDA runtime uses too, so
// that handles and memory are shared with programs; it is retained at first use. A thread without
// one gets device 0's when a call fails for the lack of it, which costs the usual call nothing.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/cuda/abi.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/driver.hpp"
#include "runtime/status.hpp"

namespace berth::runtime::cuda {

inline stream_t raw(stream_handle stream) noexcept {
  return reinterpret_cast<stream_t>(stream.bits);  // NOLINT(performance-no-int-to-ptr): a handle
}

inline event_t raw(event_handle event) noexcept {
  return reinterpret_cast<event_t>(event.bits);  // NOLINT(performance-no-int-to-ptr): a handle
}

inline address_t raw(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

inline void* pointer_of(address_t address) noexcept {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): an integer API
}

template <typename Handle>
Handle handle_of(const void* pointer) noexcept {
  return Handle{reinterpret_cast<std::uintptr_t>(pointer)};
}

// Makes a context current for a call, and the former one, or none, again afterwards.
class context_guard {
public:
  context_guard(const api& calls, context_t context)
      : calls_(calls), failed_(calls.cuCtxGetCurrent(&former_)) {
    if (failed_ == code::success && former_ != context) {
      failed_ = calls_.cuCtxSetCurrent(context);
      changed_ = failed_ == code::success;
    }
  }
  context_guard(const context_guard&) = delete;
  context_guard& operator=(const context_guard&) = delete;
  context_guard(context_guard&&) = delete;
  context_guard& operator=(context_guard&&) = delete;
  ~context_guard() {
    if (changed_) {
      static_cast<void>(calls_.cuCtxSetCurrent(former_));
    }
  }
  [[nodiscard]] status failed() const noexcept { return failed_; }

private:
  const api& calls_;
  context_t former_ = nullptr;
  status failed_ = code::success;
  bool changed_ = false;
};

// What is made of a device at first use.
struct device_state {
  std::once_flag retain_once;
  context_t context = nullptr;
  status retain_failed = code::success;

  std::once_flag kernels_once;
  std::optional<error> kernels_failure;
  kernel_functions kernels{};
};

// What a driver is made of.
struct parts {
  api calls;
  runtime_info info;
  std::vector<device_entry> devices;
};

class cuda_driver final : public driver {
public:
  explicit cuda_driver(parts made);
  ~cuda_driver() override;
  cuda_driver(const cuda_driver&) = delete;
  cuda_driver& operator=(const cuda_driver&) = delete;
  cuda_driver(cuda_driver&&) = delete;
  cuda_driver& operator=(cuda_driver&&) = delete;

  [[nodiscard]] const runtime_info& info() const noexcept override { return info_; }
  [[nodiscard]] std::span<const device_info> devices() const noexcept override { return devices_; }

  result<memory_amounts> memory_info(int device) override;
  result<int> current_device() override;
  result<void> set_current_device(int device) override;
  result<void> synchronize_device(int device) override;
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override;

  // --- Memory

  result<void*> allocate_device(int device, bytes_t bytes, coherence grain) override;
  result<void> free_device(void* memory) override;
  result<void*> allocate_pinned(bytes_t bytes, const pinned_options& options) override;
  result<void> free_pinned(void* memory) override;
  result<void*> allocate_managed(int device, bytes_t bytes) override;
  result<void> free_managed(void* memory) override;
  result<void> register_host(void* memory, bytes_t bytes, const register_options& options) override;
  result<void> unregister_host(void* memory) override;
  result<void*> device_address(void* host_memory) override;
  result<pointer_info> classify(const void* memory) override;
  result<void> advise(const void* memory, bytes_t bytes, advice what,
                      memory_location where) override;
  result<void> prefetch_async(const void* memory, bytes_t bytes, memory_location where,
                              stream_handle stream) override;

  // --- Copies and fills

  result<void> copy(void* dst, const void* src, bytes_t bytes) override;
  result<void> copy_async(void* dst, const void* src, bytes_t bytes, stream_handle stream) override;
  result<void> copy_2d_sync(const copy_2d& what) override;
  result<void> copy_2d_async(const copy_2d& what, stream_handle stream) override;
  result<void> copy_peer_async(void* dst, int dst_device, const void* src, int src_device,
                               bytes_t bytes, stream_handle stream) override;
  result<void> fill(void* dst, std::byte value, bytes_t bytes) override;
  result<void> fill_async(void* dst, std::byte value, bytes_t bytes, stream_handle stream) override;

  // --- Streams

  result<stream_handle> create_stream(int device, const stream_options& options) override;
  result<void> destroy_stream(stream_handle stream) override;
  result<void> synchronize_stream(stream_handle stream) override;
  result<progress> query_stream(stream_handle stream) override;
  result<void> wait_event(stream_handle stream, event_handle event) override;
  result<void> call_host(stream_handle stream, host_function function, void* data) override;

  // --- Events

  result<event_handle> create_event(int device, const event_options& options) override;
  result<void> destroy_event(event_handle event) override;
  result<void> record_event(event_handle event, stream_handle stream) override;
  result<progress> query_event(event_handle event) override;
  result<void> synchronize_event(event_handle event) override;
  result<std::chrono::nanoseconds> elapsed(event_handle start, event_handle end) override;

  // --- Peers

  result<bool> can_access_peer(int device, int peer) override;
  result<void> enable_peer_access(int device, int peer) override;
  result<void> disable_peer_access(int device, int peer) override;

  // --- Kernels

  result<void> prepare_kernels(int device) override;
  result<void> launch(const kernel_request& request, stream_handle stream,
                      launch_shape shape) override;

  // --- Graph capture

  result<capture_status> stream_capture_status(stream_handle stream) override;
  result<capture_mode> exchange_capture_mode(capture_mode mode) override;

private:
  [[nodiscard]] bool is_device(int device) const noexcept {
    return device >= 0 && static_cast<std::size_t>(device) < devices_.size();
  }

  // The device's primary context. Pre: is_device(device).
  result<context_t> context_of(int device);

  // Gives this thread device 0's context if it has none; whether that was so.
  [[nodiscard, gnu::cold, gnu::noinline]] bool adopt_context();

  // A call in whatever context is current; see the file's head for a thread without one.
  template <typename Call>
  status in_context(Call call) {
    const status answer = call();
    if (answer != code::invalid_context) [[likely]] {
      return answer;
    }
    return adopt_context() ? call() : answer;
  }

  template <typename Call>
  result<void> run(const char* name, Call call) {
    const status answer = in_context(call);
    if (answer == code::success) [[likely]] {
      return {};
    }
    return failure(name, answer);
  }

  // A call with the device's primary context current.
  template <typename Call>
  result<void> on_device(int device, const char* name, Call call) {
    if (!is_device(device)) {
      return device_out_of_range(device, devices_.size());
    }
    const auto context = context_of(device);
    if (!context) {
      return context.error();
    }
    const context_guard guard(calls_, *context);
    const status answer = guard.failed() == code::success ? call() : guard.failed();
    return answer == code::success ? result<void>() : result<void>(failure(name, answer));
  }

  // An allocation for the device, `call(address)`. Amounts of an out-of-memory error are those of
  // the side that the memory is on.
  template <typename Call>
  result<void*> allocate(int device, bytes_t bytes, const char* name, side where, Call call) {
    if (bytes == 0) {
      return nothing_requested(name);
    }
    address_t address = 0;
    status answer = code::success;
    const auto made = on_device(device, name, [&] { return answer = call(&address); });
    if (made) {
      return pointer_of(address);
    }
    if (answer == code::out_of_memory) {
      return failed_allocation(
          name, name_of(calls_, answer), answer,
          where == side::host ? host_shortage(bytes) : device_shortage(device, bytes));
    }
    return made.error();
  }

  [[nodiscard, gnu::cold, gnu::noinline]] error failure(const char* call, status answer) const;
  [[nodiscard]] error lacking(const char* operation) const;
  result<progress> progress_of(const char* call, status answer) const;
  memory_shortage device_shortage(int device, bytes_t requested);
  result<location_t> location_of(memory_location where) const;
  status create_raw_stream(stream_t& stream, const stream_options& options) const;
  result<void> checked_pair(const char* operation, int device, int peer) const;
  template <typename Call>
  result<void> switch_peer(const char* name, int device, int peer, status already, Call call);
  result<void> launch_planned(launch_plan plan, const kernel_functions& functions,
                              stream_handle stream);

  const api calls_;
  const runtime_info info_;
  const std::vector<device_t> handles_;
  const std::vector<device_info> devices_;
  std::vector<device_state> states_;
};

}  // namespace berth::runtime::cuda
