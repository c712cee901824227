// SPDX-License-Identifier: Apache-2.0
// The HIP driver: copies, fills, streams, events, graph capture.
#include <cmath>
#include <memory>

#include "runtime/hip/decode.hpp"
#include "runtime/hip/hip_driver.hpp"

namespace berth::runtime::hip {

result<void> hip_driver::copy(void* dst, const void* src, bytes_t bytes) {
  if (bytes == 0) {
    return {};
  }
  return done("hipMemcpy", calls_.hipMemcpy(dst, src, bytes, copy_default));
}

result<void> hip_driver::copy_async(void* dst, const void* src, bytes_t bytes,
                                    stream_handle stream) {
  if (bytes == 0) {
    return {};
  }
  return done("hipMemcpyAsync", calls_.hipMemcpyAsync(dst, src, bytes, copy_default, raw(stream)));
}

result<void> hip_driver::copy_2d_sync(const copy_2d& what) {
  if (auto shape = checked_shape(what); !shape || what.width == 0 || what.rows == 0) {
    return shape;
  }
  return done("hipMemcpy2D", calls_.hipMemcpy2D(what.dst, what.dst_pitch, what.src, what.src_pitch,
                                                what.width, what.rows, copy_default));
}

result<void> hip_driver::copy_2d_async(const copy_2d& what, stream_handle stream) {
  if (auto shape = checked_shape(what); !shape || what.width == 0 || what.rows == 0) {
    return shape;
  }
  return done("hipMemcpy2DAsync",
              calls_.hipMemcpy2DAsync(what.dst, what.dst_pitch, what.src, what.src_pitch,
                                      what.width, what.rows, copy_default, raw(stream)));
}

result<void> hip_driver::copy_peer_async(void* dst, int dst_device, const void* src, int src_device,
                                         bytes_t bytes, stream_handle stream) {
  if (!info_.capabilities.has(capability::peer_access)) {
    return lacking("copy_peer_async");
  }
  for (const int device : {dst_device, src_device}) {
    if (!is_device(device)) {
      return device_out_of_range(device, devices_.size());
    }
  }
  if (bytes == 0) {
    return {};
  }
  return done("hipMemcpyPeerAsync",
              calls_.hipMemcpyPeerAsync(dst, dst_device, src, src_device, bytes, raw(stream)));
}

result<void> hip_driver::fill(void* dst, std::byte value, bytes_t bytes) {
  if (bytes == 0) {
    return {};
  }
  auto queued = done("hipMemset", calls_.hipMemset(dst, std::to_integer<int>(value), bytes));
  return queued ? synchronize_stream(default_stream) : queued;
}

result<void> hip_driver::fill_async(void* dst, std::byte value, bytes_t bytes,
                                    stream_handle stream) {
  if (bytes == 0) {
    return {};
  }
  return done("hipMemsetAsync",
              calls_.hipMemsetAsync(dst, std::to_integer<int>(value), bytes, raw(stream)));
}

result<stream_handle> hip_driver::create_stream(int device, const stream_options& options) {
  stream_t stream = nullptr;
  if (auto made =
          on_device(device, "hipStreamCreate", [&] { return create_raw_stream(stream, options); });
      !made) {
    return made.error();
  }
  return handle_of<stream_handle>(stream);
}

result<void> hip_driver::destroy_stream(stream_handle stream) {
  return done("hipStreamDestroy", calls_.hipStreamDestroy(raw(stream)));
}

result<void> hip_driver::synchronize_stream(stream_handle stream) {
  return done("hipStreamSynchronize", calls_.hipStreamSynchronize(raw(stream)));
}

result<progress> hip_driver::query_stream(stream_handle stream) {
  return progress_of("hipStreamQuery", calls_.hipStreamQuery(raw(stream)));
}

result<void> hip_driver::wait_event(stream_handle stream, event_handle event) {
  return done("hipStreamWaitEvent", calls_.hipStreamWaitEvent(raw(stream), raw(event), 0));
}

result<void> hip_driver::call_host(stream_handle stream, host_function function, void* data) {
  if (calls_.hipLaunchHostFunc != nullptr) {
    return done("hipLaunchHostFunc", calls_.hipLaunchHostFunc(raw(stream), function, data));
  }
  if (calls_.hipStreamAddCallback == nullptr) {
    return lacking("call_host");
  }
  auto call = std::make_unique<host_call>(host_call{function, data});
  const status answer = calls_.hipStreamAddCallback(raw(stream), &host_call::run, call.get(), 0);
  if (answer == code::success) {
    static_cast<void>(call.release());  // run() owns it
  }
  return done("hipStreamAddCallback", answer);
}

result<event_handle> hip_driver::create_event(int device, const event_options& options) {
  event_t event = nullptr;
  if (auto made =
          on_device(device, "hipEventCreateWithFlags",
                    [&] { return calls_.hipEventCreateWithFlags(&event, event_flags(options)); });
      !made) {
    return made.error();
  }
  return handle_of<event_handle>(event);
}

result<void> hip_driver::destroy_event(event_handle event) {
  return done("hipEventDestroy", calls_.hipEventDestroy(raw(event)));
}

result<void> hip_driver::record_event(event_handle event, stream_handle stream) {
  return done("hipEventRecord", calls_.hipEventRecord(raw(event), raw(stream)));
}

result<progress> hip_driver::query_event(event_handle event) {
  return progress_of("hipEventQuery", calls_.hipEventQuery(raw(event)));
}

result<void> hip_driver::synchronize_event(event_handle event) {
  return done("hipEventSynchronize", calls_.hipEventSynchronize(raw(event)));
}

result<std::chrono::nanoseconds> hip_driver::elapsed(event_handle start, event_handle end) {
  float milliseconds = 0;
  const status answer = calls_.hipEventElapsedTime(&milliseconds, raw(start), raw(end));
  if (answer != code::success) {
    return failure("hipEventElapsedTime", answer);
  }
  return std::chrono::nanoseconds(std::llround(static_cast<double>(milliseconds) * 1e6));
}

result<capture_status> hip_driver::stream_capture_status(stream_handle stream) {
  int state = 0;
  if (calls_.hipStreamIsCapturing == nullptr) {
    return capture_status::none;
  }
  const status answer = calls_.hipStreamIsCapturing(raw(stream), &state);
  if (answer != code::success) {
    return failure("hipStreamIsCapturing", answer);
  }
  return static_cast<capture_status>(state);  // the same values
}

result<capture_mode> hip_driver::exchange_capture_mode(capture_mode mode) {
  int value = static_cast<int>(mode);  // the same values
  if (calls_.hipThreadExchangeStreamCaptureMode == nullptr) {
    return mode;
  }
  const status answer = calls_.hipThreadExchangeStreamCaptureMode(&value);
  if (answer != code::success) {
    return failure("hipThreadExchangeStreamCaptureMode", answer);
  }
  return static_cast<capture_mode>(value);
}

result<progress> hip_driver::progress_of(const char* call, status answer) const {
  if (answer == code::success) [[likely]] {
    return progress::complete;
  }
  if (answer == code::not_ready) {
    forget_last_error(calls_, answer);  // some versions keep it as an error
    return progress::pending;
  }
  return failure(call, answer);
}

status hip_driver::create_raw_stream(stream_t& stream, const stream_options& options) const {
  const unsigned flags =
      options.ordering == stream_ordering::non_blocking ? flag::stream_non_blocking : 0;
  if (options.priority == stream_priority::normal ||
      !info_.capabilities.has(capability::stream_priority)) {
    return calls_.hipStreamCreateWithFlags(&stream, flags);
  }
  int least = 0;
  int greatest = 0;
  if (const status answer = calls_.hipDeviceGetStreamPriorityRange(&least, &greatest);
      answer != code::success) {
    return answer;
  }
  return calls_.hipStreamCreateWithPriority(
      &stream, flags, options.priority == stream_priority::high ? greatest : least);
}

}  // namespace berth::runtime::hip
