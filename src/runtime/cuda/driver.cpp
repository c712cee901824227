// SPDX-License-Identifier: Apache-2.0
// The CUDA driver: devices, contexts, peers, kernels.
#include <array>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "runtime/cuda/cuda_driver.hpp"

namespace berth::runtime::cuda {
namespace {

std::vector<device_t> handles_of(const std::vector<device_entry>& entries) {
  std::vector<device_t> handles;
  handles.reserve(entries.size());
  for (const auto& entry : entries) {
    handles.push_back(entry.handle);
  }
  return handles;
}

std::vector<device_info> infos_of(std::vector<device_entry> entries) {
  std::vector<device_info> infos;
  infos.reserve(entries.size());
  for (auto& entry : entries) {
    infos.push_back(std::move(entry.info));
  }
  return infos;
}

}  // namespace

cuda_driver::cuda_driver(parts made)
    : calls_(made.calls),
      info_(std::move(made.info)),
      handles_(handles_of(made.devices)),
      devices_(infos_of(std::move(made.devices))),
      states_(devices_.size()) {}

cuda_driver::~cuda_driver() {
  for (std::size_t index = 0; index < states_.size(); ++index) {
    if (states_[index].context != nullptr) {
      // After the driver's own shutdown this answers "deinitialized", and nothing is left to do.
      static_cast<void>(calls_.cuDevicePrimaryCtxRelease_v2(handles_[index]));
    }
  }
}

result<context_t> cuda_driver::context_of(int device) {
  const auto index = static_cast<std::size_t>(device);
  device_state& state = states_[index];
  std::call_once(state.retain_once, [&] {
    state.retain_failed = calls_.cuDevicePrimaryCtxRetain(&state.context, handles_[index]);
    if (state.retain_failed != code::success) {
      state.context = nullptr;
    }
  });
  if (state.context == nullptr) {
    return failure("cuDevicePrimaryCtxRetain", state.retain_failed);
  }
  return state.context;
}

bool cuda_driver::adopt_context() {
  context_t current = nullptr;
  if (calls_.cuCtxGetCurrent(&current) != code::success || current != nullptr) {
    return false;
  }
  const auto context = context_of(0);
  return context && calls_.cuCtxSetCurrent(*context) == code::success;
}

result<int> cuda_driver::current_device() {
  device_t handle = 0;
  const status answer = calls_.cuCtxGetDevice(&handle);
  if (answer == code::invalid_context) {
    return 0;  // a thread without a context: the first device, as in the CUDA runtime
  }
  if (answer != code::success) {
    return failure("cuCtxGetDevice", answer);
  }
  for (std::size_t index = 0; index < handles_.size(); ++index) {
    if (handles_[index] == handle) {
      return static_cast<int>(index);
    }
  }
  return error(errc::gpu_unexpected, fmt::format("the driver names an unknown device {}", handle),
               "cuCtxGetDevice");
}

result<void> cuda_driver::set_current_device(int device) {
  if (!is_device(device)) {
    return device_out_of_range(device, devices_.size());
  }
  const auto context = context_of(device);
  if (!context) {
    return context.error();
  }
  const status answer = calls_.cuCtxSetCurrent(*context);
  return answer == code::success ? result<void>() : failure("cuCtxSetCurrent", answer);
}

result<void> cuda_driver::synchronize_device(int device) {
  return on_device(device, "cuCtxSynchronize", [this] { return calls_.cuCtxSynchronize(); });
}

std::chrono::nanoseconds cuda_driver::now() const noexcept {
  return std::chrono::steady_clock::now().time_since_epoch();
}

result<bool> cuda_driver::can_access_peer(int device, int peer) {
  if (auto pair = checked_pair("can_access_peer", device, peer); !pair) {
    return pair.error();
  }
  if (device == peer) {
    return true;
  }
  int can = 0;
  const status answer = calls_.cuDeviceCanAccessPeer(
      &can, handles_[static_cast<std::size_t>(device)], handles_[static_cast<std::size_t>(peer)]);
  if (answer != code::success) {
    return failure("cuDeviceCanAccessPeer", answer);
  }
  return can != 0;
}

template <typename Call>
result<void> cuda_driver::switch_peer(const char* name, int device, int peer, status already,
                                      Call call) {
  if (auto pair = checked_pair(name, device, peer); !pair || device == peer) {
    return pair;
  }
  const auto peer_context = context_of(peer);
  if (!peer_context) {
    return peer_context.error();
  }
  return on_device(device, name, [&] {
    const status answer = call(*peer_context);
    return answer == already ? code::success : answer;
  });
}

result<void> cuda_driver::enable_peer_access(int device, int peer) {
  return switch_peer(
      "cuCtxEnablePeerAccess", device, peer, code::peer_access_already_enabled,
      [this](context_t context) { return calls_.cuCtxEnablePeerAccess(context, 0); });
}

result<void> cuda_driver::disable_peer_access(int device, int peer) {
  return switch_peer("cuCtxDisablePeerAccess", device, peer, code::peer_access_not_enabled,
                     [this](context_t context) { return calls_.cuCtxDisablePeerAccess(context); });
}

result<void> cuda_driver::prepare_kernels(int device) {
  if (!is_device(device)) {
    return device_out_of_range(device, devices_.size());
  }
  if (!info_.capabilities.has(capability::kernels)) {
    return lacking("prepare_kernels");
  }
  device_state& state = states_[static_cast<std::size_t>(device)];
  std::call_once(state.kernels_once, [&] {
    const auto context = context_of(device);
    if (!context) {
      state.kernels_failure = context.error();
      return;
    }
    const context_guard guard(calls_, *context);
    if (guard.failed() != code::success) {
      state.kernels_failure = failure("cuCtxSetCurrent", guard.failed());
      return;
    }
    const auto loaded = load_kernels(calls_);
    if (loaded) {
      state.kernels = *loaded;
    } else {
      state.kernels_failure = loaded.error();
    }
  });
  return state.kernels_failure ? result<void>(*state.kernels_failure) : result<void>();
}

result<void> cuda_driver::launch(const kernel_request& request, stream_handle stream,
                                 launch_shape shape) {
  const auto device = current_device();
  if (!device) {
    return device.error();
  }
  if (auto prepared = prepare_kernels(*device); !prepared) {
    return prepared;
  }
  const auto index = static_cast<std::size_t>(*device);
  const launch_target target{.compute_units = devices_[index].compute_units.value_or(1)};
  const auto made = plan_launch(request, shape, target);
  if (!made) {
    return made.error();
  }
  const std::optional<launch_plan>& plan = *made;
  return plan ? launch_planned(*plan, states_[index].kernels, stream) : result<void>();
}

error cuda_driver::failure(const char* call, status answer) const {
  return failed_call(call, name_of(calls_, answer), answer);
}

error cuda_driver::lacking(const char* operation) const {
  return not_supported(operation,
                       fmt::format("CUDA driver {} does not have it", to_string(info_.version)));
}

result<void> cuda_driver::checked_pair(const char* operation, int device, int peer) const {
  for (const int each : {device, peer}) {
    if (!is_device(each)) {
      return device_out_of_range(each, devices_.size());
    }
  }
  return info_.capabilities.has(capability::peer_access) ? result<void>() : lacking(operation);
}

result<void> cuda_driver::launch_planned(launch_plan plan, const kernel_functions& functions,
                                         stream_handle stream) {
  std::array<void*, std::tuple_size_v<decltype(plan.parameters)>> parameters{};
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    parameters[index] = &plan.parameters[index];
  }
  const auto which = static_cast<std::size_t>(plan.kernel);
  return run("cuLaunchKernel", [&] {
    return calls_.cuLaunchKernel(functions[which], plan.blocks, 1, 1, plan.threads, 1, 1, 0,
                                 raw(stream), parameters.data(), nullptr);
  });
}

}  // namespace berth::runtime::cuda
