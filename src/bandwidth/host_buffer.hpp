// SPDX-License-Identifier: Apache-2.0
// Memory that is measured, of each kind, given back as it was got.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "berth/result.hpp"
#include "berth/units.hpp"
#include "machine/cost_model.hpp"
#include "runtime/driver.hpp"

namespace berth::bandwidth {

class owned_memory {
public:
  owned_memory() = default;
  owned_memory(std::byte* data, std::function<void()> release)
      : data_(data), release_(std::move(release)) {}
  owned_memory(owned_memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        release_(std::exchange(other.release_, nullptr)) {}
  owned_memory& operator=(owned_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(release_, other.release_);
    return *this;
  }
  owned_memory(const owned_memory&) = delete;
  owned_memory& operator=(const owned_memory&) = delete;
  ~owned_memory() {
    if (release_) {
      release_();
    }
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

private:
  std::byte* data_ = nullptr;
  std::function<void()> release_;
};

// Memory of the path's host end, near the device; its pages are there, but for trait::fresh_pages.
// The driver must outlive it. @errors those of the GPU, gpu_out_of_memory of the host
[[nodiscard]] result<owned_memory> make_host_memory(runtime::driver& gpu, int device,
                                                    const machine::path& of, bytes_t bytes);
[[nodiscard]] result<owned_memory> make_device_memory(runtime::driver& gpu, int device,
                                                      bytes_t bytes);

}  // namespace berth::bandwidth
