// SPDX-License-Identifier: Apache-2.0
// How libamdhip64 becomes a driver: found, version, devices, capabilities.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "runtime/hip/decode.hpp"
#include "runtime/hip/driver.hpp"
#include "runtime/hip/hip_driver.hpp"

namespace berth::runtime::hip {
namespace {

constexpr runtime_version oldest_version{5, 0, 0};  // attribute numbers are stable since
// HIP 5.2 ends the process for a kernel in the per-thread stream; seen on an emulated device.
constexpr runtime_version first_with_per_thread_kernels{5, 3, 0};

capability_set capabilities_of(const api& calls, const runtime_version& version) {
  capability_set found;
  const auto add = [&found](capability which, auto... needed) {
    if (((needed != nullptr) && ...)) {
      found.add(which);
    }
  };
  add(capability::managed, calls.hipMallocManaged);
  add(capability::advise, calls.hipMemAdvise);
  add(capability::coarse_grain_advice, calls.hipMemAdvise);
  add(capability::prefetch, calls.hipMemPrefetchAsync);
  add(capability::peer_access, calls.hipDeviceCanAccessPeer, calls.hipDeviceEnablePeerAccess,
      calls.hipDeviceDisablePeerAccess, calls.hipMemcpyPeerAsync);
  add(capability::stream_priority, calls.hipStreamCreateWithPriority,
      calls.hipDeviceGetStreamPriorityRange);
  add(capability::stream_capture, calls.hipStreamIsCapturing,
      calls.hipThreadExchangeStreamCaptureMode);
  add(capability::kernels, calls.hipModuleLoadData, calls.hipModuleGetFunction,
      calls.hipModuleUnload, calls.hipModuleLaunchKernel);
  add(capability::fine_grained_device, calls.hipExtMallocWithFlags);
  add(capability::tells_range, calls.hipMemGetAddressRange);
  if (calls.hipLaunchHostFunc != nullptr || calls.hipStreamAddCallback != nullptr) {
    found.add(capability::host_callback);
  }
  if (!(version < first_with_per_thread_kernels)) {
    found.add(capability::per_thread_stream);
  }
  found.add(capability::host_coherence);
  found.add(capability::host_numa);
  found.add(capability::system_release);
  return found;
}

// The version, if the library says one that berth can use.
result<runtime_version> usable_version(const api& calls, const std::string& path) {
  int value = 0;
  if (const status answer = calls.hipRuntimeGetVersion(&value); answer != code::success) {
    forget_last_error(calls, answer);
    return error(errc::gpu_runtime_unusable,
                 failed_call("", calls.hipGetErrorName(answer), answer).message(),
                 path + ": hipRuntimeGetVersion");
  }
  const runtime_version version = decode_version(value);
  if (version < oldest_version) {
    return error(errc::gpu_runtime_unusable,
                 fmt::format("HIP {} is too old, 5.0 is the oldest that works", to_string(version)),
                 path);
  }
  return version;
}

}  // namespace

std::vector<std::string> rocm_directories(const linker& with) {
  std::vector<std::string> directories;
  if (const auto root = with.environment("ROCM_PATH"); !root.empty()) {
    directories.push_back(root + "/lib");
  }
  directories.emplace_back("/opt/rocm/lib");
  return directories;
}

result<std::shared_ptr<driver>> open_driver(const linker& with, candidate& seen) {
  // Far above today's number, so that a newer ROCm is found too.
  const library_request request{.what = "HIP runtime",
                                .override_variable = "BERTH_HIP_LIBRARY",
                                .stem = "libamdhip64.so",
                                .newest = 20,
                                .oldest = 4,
                                .directories = rocm_directories(with)};
  parts made;
  made.with = with;
  auto loaded = load_table(request, made.calls, with);
  if (!loaded) {
    return loaded.error();
  }
  made.library = loaded->handle;
  seen.library = loaded->path;
  seen.tried = loaded->tried;
  const auto version = usable_version(made.calls, loaded->path);
  if (!version) {
    return version.error();
  }
  seen.version = *version;
  auto devices = list_devices(made.calls);
  if (!devices) {
    return devices.error();
  }
  made.devices = std::move(*devices);
  made.info = {.kind = runtime_kind::hip,
               .version = *version,
               .library = loaded->path,
               .timing = provenance::measured,
               .capabilities = capabilities_of(made.calls, *version),
               .missing_symbols = std::move(loaded->missing)};
  return std::shared_ptr<driver>(std::make_shared<hip_driver>(std::move(made)));
}

}  // namespace berth::runtime::hip
