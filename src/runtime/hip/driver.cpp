// SPDX-License-Identifier: Apache-2.0
// The HIP driver: devices, peers, kernels.
#include <array>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "runtime/hip/hip_driver.hpp"

namespace berth::runtime::hip {

result<int> hip_driver::current_device() {
  int device = 0;
  if (const status answer = calls_.hipGetDevice(&device); answer != code::success) {
    return failure("hipGetDevice", answer);
  }
  return device;
}

result<void> hip_driver::set_current_device(int device) {
  if (!is_device(device)) {
    return device_out_of_range(device, devices_.size());
  }
  return done("hipSetDevice", calls_.hipSetDevice(device));
}

result<void> hip_driver::synchronize_device(int device) {
  return on_device(device, "hipDeviceSynchronize",
                   [this] { return calls_.hipDeviceSynchronize(); });
}

std::chrono::nanoseconds hip_driver::now() const noexcept {
  return std::chrono::steady_clock::now().time_since_epoch();
}

result<bool> hip_driver::can_access_peer(int device, int peer) {
  if (auto pair = checked_pair("can_access_peer", device, peer); !pair) {
    return pair.error();
  }
  if (device == peer) {
    return true;
  }
  int can = 0;
  const status answer = calls_.hipDeviceCanAccessPeer(&can, device, peer);
  if (answer != code::success) {
    return failure("hipDeviceCanAccessPeer", answer);
  }
  return can != 0;
}

result<void> hip_driver::enable_peer_access(int device, int peer) {
  return switch_peer("hipDeviceEnablePeerAccess", device, peer, code::peer_access_already_enabled,
                     [&] { return calls_.hipDeviceEnablePeerAccess(peer, 0); });
}

result<void> hip_driver::disable_peer_access(int device, int peer) {
  return switch_peer("hipDeviceDisablePeerAccess", device, peer, code::peer_access_not_enabled,
                     [&] { return calls_.hipDeviceDisablePeerAccess(peer); });
}

result<void> hip_driver::prepare_kernels(int device) {
  if (!is_device(device)) {
    return device_out_of_range(device, devices_.size());
  }
  if (!info_.capabilities.has(capability::kernels)) {
    return lacking("prepare_kernels");
  }
  device_kernels& kernels = kernels_[static_cast<std::size_t>(device)];
  std::call_once(kernels.once, [&] { build_kernels(device, kernels); });
  return kernels.failure ? result<void>(*kernels.failure) : result<void>();
}

result<void> hip_driver::launch(const kernel_request& request, stream_handle stream,
                                launch_shape shape) {
  if (stream == per_thread_stream && !info_.capabilities.has(capability::per_thread_stream)) {
    return lacking("per_thread_stream");
  }
  const auto device = current_device();
  if (!device) {
    return device.error();
  }
  if (auto prepared = prepare_kernels(*device); !prepared) {
    return prepared;
  }
  const auto index = static_cast<std::size_t>(*device);
  const launch_target target{.compute_units = devices_[index].compute_units.value_or(1),
                             .clock_khz = kernels_[index].clock_khz};
  const auto made = plan_launch(request, shape, target);
  if (!made) {
    return made.error();
  }
  const std::optional<launch_plan>& plan = *made;
  return plan ? launch_planned(*plan, kernels_[index].functions, stream) : result<void>();
}

error hip_driver::failure(const char* call, status answer) const {
  forget_last_error(calls_, answer);
  const char* name = calls_.hipGetErrorName(answer);
  return failed_call(call, name != nullptr ? name : "unknown error", answer);
}

error hip_driver::lacking(const char* operation) const {
  return not_supported(operation, fmt::format("HIP {} does not have it", to_string(info_.version)));
}

result<void> hip_driver::checked_pair(const char* operation, int device, int peer) const {
  for (const int each : {device, peer}) {
    if (!is_device(each)) {
      return device_out_of_range(each, devices_.size());
    }
  }
  return info_.capabilities.has(capability::peer_access) ? result<void>() : lacking(operation);
}

void hip_driver::build_kernels(int device, device_kernels& kernels) {
  const device_guard guard(calls_, device);
  if (guard.failed() != code::success) {
    kernels.failure = failure("hipSetDevice", guard.failed());
    return;
  }
  kernels.clock_khz = wall_clock_khz(calls_, device);
  auto functions = built_kernels();
  if (functions) {
    kernels.functions = *functions;
  } else {
    forget_last_error(calls_, calls_.hipPeekAtLastError());
    kernels.failure = functions.error();
  }
}

result<kernel_functions> hip_driver::built_kernels() const {
  const auto compiler = load_compiler(library_, info_.version.major, with_);
  if (!compiler) {
    return compiler.error();
  }
  const auto image = compile_kernels(*compiler);
  if (!image) {
    return image.error();
  }
  return load_kernels(calls_, *image);
}

result<void> hip_driver::launch_planned(launch_plan plan, const kernel_functions& functions,
                                        stream_handle stream) const {
  std::array<void*, std::tuple_size_v<decltype(plan.parameters)>> parameters{};
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    parameters[index] = &plan.parameters[index];
  }
  const auto which = static_cast<std::size_t>(plan.kernel);
  return done("hipModuleLaunchKernel",
              calls_.hipModuleLaunchKernel(functions[which], plan.blocks, 1, 1, plan.threads, 1, 1,
                                           0, raw(stream), parameters.data(), nullptr));
}

}  // namespace berth::runtime::hip
