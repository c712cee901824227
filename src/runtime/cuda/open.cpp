// SPDX-License-Identifier: Apache-2.0
// How libcuda becomes a driver: found, version, devices, capabilities.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "runtime/cuda/cuda_driver.hpp"
#include "runtime/cuda/decode.hpp"
#include "runtime/cuda/driver.hpp"

namespace berth::runtime::cuda {
namespace {

constexpr runtime_version oldest_version{11, 0, 0};

capability_set capabilities_of(const api& calls) {
  capability_set found;
  const auto add = [&found](capability which, auto... needed) {
    if (((needed != nullptr) && ...)) {
      found.add(which);
    }
  };
  add(capability::managed, calls.cuMemAllocManaged);
  add(capability::peer_access, calls.cuDeviceCanAccessPeer, calls.cuCtxEnablePeerAccess,
      calls.cuCtxDisablePeerAccess, calls.cuMemcpyPeerAsync);
  add(capability::stream_priority, calls.cuStreamCreateWithPriority,
      calls.cuCtxGetStreamPriorityRange);
  add(capability::host_callback, calls.cuLaunchHostFunc);
  add(capability::stream_capture, calls.cuStreamIsCapturing,
      calls.cuThreadExchangeStreamCaptureMode);
  add(capability::kernels, calls.cuModuleLoadDataEx, calls.cuModuleGetFunction,
      calls.cuModuleUnload, calls.cuLaunchKernel);
  if (calls.cuMemAdvise != nullptr || calls.cuMemAdvise_v2 != nullptr) {
    found.add(capability::advise);
  }
  if (calls.cuMemPrefetchAsync != nullptr || calls.cuMemPrefetchAsync_v2 != nullptr) {
    found.add(capability::prefetch);
  }
  found.add(capability::per_thread_stream);
  found.add(capability::host_numa);
  found.add(capability::tells_range);
  return found;
}

result<runtime_version> usable_version(const api& calls, const std::string& path) {
  int value = 0;
  if (const status answer = calls.cuDriverGetVersion(&value); answer == code::stub_library) {
    return error(errc::gpu_runtime_unusable,
                 "this is the toolkit's stub for linking, not the driver's library (34)", path,
                 "install the NVIDIA driver, or take the stubs folder out of the search path");
  } else if (answer != code::success) {
    return error(errc::gpu_runtime_unusable,
                 failed_call("", name_of(calls, answer), answer).message(),
                 path + ": cuDriverGetVersion");
  }
  const runtime_version version = decode_version(value);
  if (version < oldest_version) {
    return error(
        errc::gpu_runtime_unusable,
        fmt::format("CUDA driver {} is too old, 11.0 is the oldest that works", to_string(version)),
        path);
  }
  return version;
}

}  // namespace

result<std::shared_ptr<driver>> open_driver(const linker& with, candidate& seen) {
  // libcuda has had the number 1 since it exists.
  const library_request request{.what = "CUDA driver library",
                                .override_variable = "BERTH_CUDA_LIBRARY",
                                .stem = "libcuda.so",
                                .newest = 1,
                                .oldest = 1,
                                .directories = {}};
  parts made;
  auto loaded = load_table(request, made.calls, with);
  if (!loaded) {
    return loaded.error();
  }
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
  made.info = {.kind = runtime_kind::cuda,
               .version = *version,
               .library = loaded->path,
               .timing = provenance::measured,
               .capabilities = capabilities_of(made.calls),
               .missing_symbols = std::move(loaded->missing)};
  return std::shared_ptr<driver>(std::make_shared<cuda_driver>(std::move(made)));
}

}  // namespace berth::runtime::cuda
