// SPDX-License-Identifier: Apache-2.0
/// @file
/// A stream of a device, owned: the order in which work runs, and in which pooled memory may be
/// used again.
#pragma once

#include <memory>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"

namespace berth {

namespace memory {
class context_state;
}

/// A stream that berth made. Move-only; its end tells every pool of the context that the stream is
/// gone, so that memory freed in its order is not lost, and not handed out too early.
class stream {
public:
  stream(stream&& other) noexcept;
  stream& operator=(stream&& other) noexcept;
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  /// Queued work still runs to its end; may block for it.
  ~stream();

  /// The runtime's own handle (hipStream_t, CUstream, cudaStream_t), for kernels and libraries.
  [[nodiscard]] runtime::stream_handle handle() const noexcept { return handle_; }
  [[nodiscard]] int device() const noexcept { return device_; }
  /// Pools take streams by handle.
  operator runtime::stream_handle() const noexcept {
    return handle_;
  }  // NOLINT: implicit by design

  /// Blocks until all queued work is done; all memory is visible to the host then.
  /// @errors those of the work
  [[nodiscard]] result<void> try_synchronize() const;
  /// @throws gpu_error
  void synchronize() const { try_synchronize().value(); }

private:
  friend class context;
  stream(std::shared_ptr<memory::context_state> home, int device, runtime::stream_handle handle);
  void end() noexcept;

  std::shared_ptr<memory::context_state> home_;  // null: moved from
  int device_ = 0;
  runtime::stream_handle handle_{};
};

}  // namespace berth
