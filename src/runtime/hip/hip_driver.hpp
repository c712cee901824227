// SPDX-License-Identifier: Apache-2.0
// The contract over libamdhip64: one HIP call for each operation. memory.cpp has allocations and
// pointers, work.cpp copies, streams and events, driver.cpp devices, peers and kernels, open.cpp
// how a library becomes a driver. What HIP says is decoded in decode.cpp.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/hip/abi.hpp"
#include "runtime/hip/devices.hpp"
#include "runtime/hip/kernels.hpp"
#include "runtime/hip/registrations.hpp"
#include "runtime/status.hpp"

namespace berth::runtime::hip {

inline stream_t raw(stream_handle stream) noexcept {
  return reinterpret_cast<stream_t>(stream.bits);  // NOLINT(performance-no-int-to-ptr): a handle
}

inline event_t raw(event_handle event) noexcept {
  return reinterpret_cast<event_t>(event.bits);  // NOLINT(performance-no-int-to-ptr): a handle
}

template <typename Handle>
Handle handle_of(const void* pointer) noexcept {
  return Handle{reinterpret_cast<std::uintptr_t>(pointer)};
}

// HIP has one current device for each thread: this makes another one current for a call.
class device_guard {
public:
  device_guard(const api& calls, int device)
      : calls_(calls), failed_(calls.hipGetDevice(&former_)) {
    if (failed_ == code::success && former_ != device) {
      failed_ = calls_.hipSetDevice(device);
      changed_ = failed_ == code::success;
    }
  }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  device_guard(device_guard&&) = delete;
  device_guard& operator=(device_guard&&) = delete;
  ~device_guard() {
    if (changed_) {
      static_cast<void>(calls_.hipSetDevice(former_));
    }
  }
  [[nodiscard]] status failed() const noexcept { return failed_; }

private:
  const api& calls_;
  int former_ = 0;
  status failed_ = code::success;
  bool changed_ = false;
};

// The kernels of one device, made at first use.
struct device_kernels {
  std::once_flag once;
  std::optional<error> failure;
  kernel_functions functions{};
  std::int64_t clock_khz = 0;
};

// What a driver is made of.
struct parts {
  api calls;
  runtime_info info;
  std::vector<device_info> devices;
  void* library = nullptr;
  linker with;
};

class hip_driver final : public driver {
public:
  explicit hip_driver(parts made)
      : calls_(made.calls),
        info_(std::move(made.info)),
        devices_(std::move(made.devices)),
        library_(made.library),
        with_(std::move(made.with)),
        kernels_(devices_.size()) {}

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
  // What hipStreamAddCallback is given: its function has another form, and is told of errors.
  struct host_call {
    host_function function;
    void* data;

    static void run(stream_t /*stream*/, status /*error*/, void* self) {
      const std::unique_ptr<host_call> call(static_cast<host_call*>(self));
      call->function(call->data);
    }
  };

  [[nodiscard]] bool is_device(int device) const noexcept {
    return device >= 0 && static_cast<std::size_t>(device) < devices_.size();
  }

  [[nodiscard, gnu::cold, gnu::noinline]] error failure(const char* call, status answer) const;
  result<void> done(const char* call, status answer) const {
    if (answer == code::success) [[likely]] {
      return {};
    }
    return failure(call, answer);
  }

  [[nodiscard]] error lacking(const char* operation) const;
  result<progress> progress_of(const char* call, status answer) const;

  // Calls with `device` current.
  template <typename Call>
  result<void> on_device(int device, const char* name, Call call) const {
    if (!is_device(device)) {
      return device_out_of_range(device, devices_.size());
    }
    const device_guard guard(calls_, device);
    return done(name, guard.failed() == code::success ? call() : guard.failed());
  }

  template <typename Call>
  result<void*> allocate(int device, bytes_t bytes, const char* name, Call call,
                         side where = side::device) {
    if (bytes == 0) {
      return nothing_requested(name);
    }
    if (!is_device(device)) {
      return device_out_of_range(device, devices_.size());
    }
    void* memory = nullptr;
    status answer = code::success;
    {
      const device_guard guard(calls_, device);
      answer = guard.failed() == code::success ? call(&memory) : guard.failed();
    }
    if (answer == code::success) {
      return memory;
    }
    if (answer == code::out_of_memory) {
      forget_last_error(calls_, answer);
      return failed_allocation(
          name, calls_.hipGetErrorName(answer), answer,
          where == side::host ? host_shortage(bytes) : device_shortage(device, bytes));
    }
    return failure(name, answer);
  }

  memory_shortage device_shortage(int device, bytes_t requested);
  void read_range(const void* memory, pointer_info& info) const;
  result<void> enter_registration(void* memory, bytes_t bytes);
  result<int> device_of(memory_location where) const;
  status create_raw_stream(stream_t& stream, const stream_options& options) const;
  result<void> checked_pair(const char* operation, int device, int peer) const;

  template <typename Call>
  result<void> switch_peer(const char* name, int device, int peer, status already, Call call) {
    if (auto pair = checked_pair(name, device, peer); !pair || device == peer) {
      return pair;
    }
    const device_guard guard(calls_, device);
    const status answer = guard.failed() == code::success ? call() : guard.failed();
    if (answer == already) {
      forget_last_error(calls_, answer);
      return {};
    }
    return done(name, answer);
  }

  void build_kernels(int device, device_kernels& kernels);
  result<kernel_functions> built_kernels() const;
  result<void> launch_planned(launch_plan plan, const kernel_functions& functions,
                              stream_handle stream) const;

  const api calls_;
  const runtime_info info_;
  const std::vector<device_info> devices_;
  void* const library_;
  const linker with_;
  std::vector<device_kernels> kernels_;
  registrations registered_;
};

}  // namespace berth::runtime::hip
