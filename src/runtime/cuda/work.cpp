// SPDX-License-Identifier: Apache-2.0
// The CUDA driver: copies, fills, streams, events, graph capture.
#include <cmath>

#include "runtime/cuda/cuda_driver.hpp"
#include "runtime/cuda/decode.hpp"

namespace berth::runtime::cuda {
namespace {

// Both ends are addresses of the unified space: the driver finds out what they are.
copy_2d_t rows_of(const copy_2d& what) noexcept {
  copy_2d_t rows{};
  rows.src_type = memory_type::unified;
  rows.src_device = raw(what.src);
  rows.src_pitch = what.src_pitch;
  rows.dst_type = memory_type::unified;
  rows.dst_device = raw(what.dst);
  rows.dst_pitch = what.dst_pitch;
  rows.width = what.width;
  rows.rows = what.rows;
  return rows;
}

}  // namespace

result<void> cuda_driver::copy(void* dst, const void* src, bytes_t bytes) {
  if (bytes == 0) {
    return {};
  }
  return run("cuMemcpy", [&] { return calls_.cuMemcpy(raw(dst), raw(src), bytes); });
}

result<void> cuda_driver::copy_async(void* dst, const void* src, bytes_t bytes,
                                     stream_handle stream) {
  if (bytes == 0) {
    return {};
  }
  return run("cuMemcpyAsync",
             [&] { return calls_.cuMemcpyAsync(raw(dst), raw(src), bytes, raw(stream)); });
}

result<void> cuda_driver::copy_2d_sync(const copy_2d& what) {
  if (auto shape = checked_shape(what); !shape || what.width == 0 || what.rows == 0) {
    return shape;
  }
  const copy_2d_t rows = rows_of(what);
  // The plain form may refuse pitches within a device that its own allocator would not give.
  return run("cuMemcpy2DUnaligned", [&] { return calls_.cuMemcpy2DUnaligned_v2(&rows); });
}

result<void> cuda_driver::copy_2d_async(const copy_2d& what, stream_handle stream) {
  if (auto shape = checked_shape(what); !shape || what.width == 0 || what.rows == 0) {
    return shape;
  }
  const copy_2d_t rows = rows_of(what);
  return run("cuMemcpy2DAsync", [&] { return calls_.cuMemcpy2DAsync_v2(&rows, raw(stream)); });
}

result<void> cuda_driver::copy_peer_async(void* dst, int dst_device, const void* src,
                                          int src_device, bytes_t bytes, stream_handle stream) {
  if (auto pair = checked_pair("copy_peer_async", dst_device, src_device); !pair || bytes == 0) {
    return pair;
  }
  const auto to = context_of(dst_device);
  const auto from = context_of(src_device);
  if (!to || !from) {
    return to ? from.error() : to.error();
  }
  return run("cuMemcpyPeerAsync", [&] {
    return calls_.cuMemcpyPeerAsync(raw(dst), *to, raw(src), *from, bytes, raw(stream));
  });
}

result<void> cuda_driver::fill(void* dst, std::byte value, bytes_t bytes) {
  if (bytes == 0) {
    return {};
  }
  auto queued = run("cuMemsetD8", [&] {
    return calls_.cuMemsetD8_v2(raw(dst), std::to_integer<unsigned char>(value), bytes);
  });
  return queued ? synchronize_stream(default_stream) : queued;
}

result<void> cuda_driver::fill_async(void* dst, std::byte value, bytes_t bytes,
                                     stream_handle stream) {
  if (bytes == 0) {
    return {};
  }
  return run("cuMemsetD8Async", [&] {
    return calls_.cuMemsetD8Async(raw(dst), std::to_integer<unsigned char>(value), bytes,
                                  raw(stream));
  });
}

result<stream_handle> cuda_driver::create_stream(int device, const stream_options& options) {
  stream_t stream = nullptr;
  if (auto made =
          on_device(device, "cuStreamCreate", [&] { return create_raw_stream(stream, options); });
      !made) {
    return made.error();
  }
  return handle_of<stream_handle>(stream);
}

result<void> cuda_driver::destroy_stream(stream_handle stream) {
  return run("cuStreamDestroy", [&] { return calls_.cuStreamDestroy_v2(raw(stream)); });
}

result<void> cuda_driver::synchronize_stream(stream_handle stream) {
  return run("cuStreamSynchronize", [&] { return calls_.cuStreamSynchronize(raw(stream)); });
}

result<progress> cuda_driver::query_stream(stream_handle stream) {
  return progress_of("cuStreamQuery",
                     in_context([&] { return calls_.cuStreamQuery(raw(stream)); }));
}

result<void> cuda_driver::wait_event(stream_handle stream, event_handle event) {
  return run("cuStreamWaitEvent",
             [&] { return calls_.cuStreamWaitEvent(raw(stream), raw(event), 0); });
}

result<void> cuda_driver::call_host(stream_handle stream, host_function function, void* data) {
  if (calls_.cuLaunchHostFunc == nullptr) {
    return lacking("call_host");
  }
  return run("cuLaunchHostFunc",
             [&] { return calls_.cuLaunchHostFunc(raw(stream), function, data); });
}

result<event_handle> cuda_driver::create_event(int device, const event_options& options) {
  event_t event = nullptr;
  if (auto made = on_device(device, "cuEventCreate",
                            [&] { return calls_.cuEventCreate(&event, event_flags(options)); });
      !made) {
    return made.error();
  }
  return handle_of<event_handle>(event);
}

result<void> cuda_driver::destroy_event(event_handle event) {
  return run("cuEventDestroy", [&] { return calls_.cuEventDestroy_v2(raw(event)); });
}

result<void> cuda_driver::record_event(event_handle event, stream_handle stream) {
  return run("cuEventRecord", [&] { return calls_.cuEventRecord(raw(event), raw(stream)); });
}

result<progress> cuda_driver::query_event(event_handle event) {
  return progress_of("cuEventQuery", in_context([&] { return calls_.cuEventQuery(raw(event)); }));
}

result<void> cuda_driver::synchronize_event(event_handle event) {
  return run("cuEventSynchronize", [&] { return calls_.cuEventSynchronize(raw(event)); });
}

result<std::chrono::nanoseconds> cuda_driver::elapsed(event_handle start, event_handle end) {
  float milliseconds = 0;
  const status answer =
      in_context([&] { return calls_.cuEventElapsedTime(&milliseconds, raw(start), raw(end)); });
  if (answer != code::success) {
    return failure("cuEventElapsedTime", answer);
  }
  return std::chrono::nanoseconds(std::llround(static_cast<double>(milliseconds) * 1e6));
}

result<capture_status> cuda_driver::stream_capture_status(stream_handle stream) {
  if (calls_.cuStreamIsCapturing == nullptr) {
    return capture_status::none;
  }
  int state = 0;
  const status answer = in_context([&] { return calls_.cuStreamIsCapturing(raw(stream), &state); });
  if (answer != code::success) {
    return failure("cuStreamIsCapturing", answer);
  }
  return static_cast<capture_status>(state);  // the same values
}

result<capture_mode> cuda_driver::exchange_capture_mode(capture_mode mode) {
  if (calls_.cuThreadExchangeStreamCaptureMode == nullptr) {
    return mode;
  }
  int value = static_cast<int>(mode);  // the same values
  const status answer = calls_.cuThreadExchangeStreamCaptureMode(&value);
  if (answer != code::success) {
    return failure("cuThreadExchangeStreamCaptureMode", answer);
  }
  return static_cast<capture_mode>(value);
}

result<progress> cuda_driver::progress_of(const char* call, status answer) const {
  if (answer == code::success) [[likely]] {
    return progress::complete;
  }
  if (answer == code::not_ready) {
    return progress::pending;
  }
  return failure(call, answer);
}

status cuda_driver::create_raw_stream(stream_t& stream, const stream_options& options) const {
  const unsigned flags =
      options.ordering == stream_ordering::non_blocking ? flag::stream_non_blocking : 0;
  if (options.priority == stream_priority::normal ||
      !info_.capabilities.has(capability::stream_priority)) {
    return calls_.cuStreamCreate(&stream, flags);
  }
  int least = 0;
  int greatest = 0;
  if (const status answer = calls_.cuCtxGetStreamPriorityRange(&least, &greatest);
      answer != code::success) {
    return answer;
  }
  return calls_.cuStreamCreateWithPriority(
      &stream, flags, options.priority == stream_priority::high ? greatest : least);
}

}  // namespace berth::runtime::cuda
