// SPDX-License-Identifier: Apache-2.0
// What a thread needs around the engine's own GPU calls: the right device, and a capture mode in
// which a capture elsewhere neither refuses the calls nor is spoilt by them. What was there before
// comes back at the end, since the thread may be the program's.
#pragma once

#include <utility>

#include "runtime/driver.hpp"

namespace berth::transfer {

class gpu_scope {
public:
  // The driver must outlive it.
  static result<gpu_scope> enter(runtime::driver& gpu, int device) {
    auto current = runtime::scoped_device::make(gpu, device);
    if (!current) {
      return current.error();
    }
    auto mode = gpu.exchange_capture_mode(runtime::capture_mode::relaxed);
    if (!mode) {
      return mode.error();
    }
    return gpu_scope(gpu, std::move(*current), *mode);
  }
  gpu_scope(const gpu_scope&) = delete;
  gpu_scope& operator=(const gpu_scope&) = delete;
  gpu_scope(gpu_scope&& other) noexcept
      : gpu_(std::exchange(other.gpu_, nullptr)),
        current_(std::move(other.current_)),
        mode_(other.mode_) {}
  gpu_scope& operator=(gpu_scope&&) = delete;
  ~gpu_scope() {
    // Once more where it fails: the program's own mode must not be lost.
    if (gpu_ != nullptr && !gpu_->exchange_capture_mode(mode_)) {
      static_cast<void>(gpu_->exchange_capture_mode(mode_));
    }
  }

private:
  gpu_scope(runtime::driver& gpu, runtime::scoped_device current, runtime::capture_mode mode)
      : gpu_(&gpu), current_(std::move(current)), mode_(mode) {}

  runtime::driver* gpu_;  // null: moved from
  runtime::scoped_device current_;
  runtime::capture_mode mode_;
};

}  // namespace berth::transfer
