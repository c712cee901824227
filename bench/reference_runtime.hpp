// SPDX-License-Identifier: Apache-2.0
// The few calls of CUDA's driver and of HIP that reference_copy needs, found at run time and with
// nothing of berth between. Every failure ends the program: exit status 3.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace reference {

using stream_t = void*;
using event_t = void*;

class gpu_runtime {
public:
  gpu_runtime() = default;
  gpu_runtime(const gpu_runtime&) = delete;
  gpu_runtime& operator=(const gpu_runtime&) = delete;
  gpu_runtime(gpu_runtime&&) = delete;
  gpu_runtime& operator=(gpu_runtime&&) = delete;
  virtual ~gpu_runtime() = default;

  [[nodiscard]] virtual void* device_memory(std::size_t bytes) = 0;
  [[nodiscard]] virtual void* pinned_memory(std::size_t bytes) = 0;
  virtual void free_device_memory(void* memory) = 0;
  virtual void free_pinned_memory(void* memory) = 0;
  virtual void clear(void* device, std::size_t bytes, stream_t on) = 0;
  virtual void to_device(void* device, const void* host, std::size_t bytes, stream_t on) = 0;
  virtual void to_host(void* host, const void* device, std::size_t bytes, stream_t on) = 0;
  [[nodiscard]] virtual stream_t stream() = 0;
  [[nodiscard]] virtual event_t event() = 0;
  virtual void record(event_t what, stream_t on) = 0;
  virtual void wait(stream_t which, event_t until) = 0;
  // Nothing behind it begins before `open` is true.
  virtual void hold(stream_t on, const std::atomic<bool>& open) = 0;
  virtual void synchronize(stream_t which) = 0;
  [[nodiscard]] virtual double elapsed_ns(event_t from, event_t to) = 0;
};

[[nodiscard]] std::unique_ptr<gpu_runtime> open_cuda(int device);
[[nodiscard]] std::unique_ptr<gpu_runtime> open_hip(int device);

// Of a figure that cannot be had. Does not return.
[[noreturn]] void give_up(const std::string& why);

}  // namespace reference
