// SPDX-License-Identifier: Apache-2.0
// The calls of fake_cuda.cpp that answer something.
#include <cstdio>

#include "runtime/cuda/abi.hpp"

namespace {

using namespace berth::runtime::cuda;

void* const a_context = reinterpret_cast<void*>(0x1000);

}  // namespace

extern "C" {

status cuDriverGetVersion(int* version) {
  *version = 13000;
  return code::success;
}

status cuDeviceGetCount(int* count) {
  *count = 1;
  return code::success;
}

status cuDeviceGet(device_t* out_device, int device) {
  *out_device = device;
  return code::success;
}

status cuDeviceGetName(char* name, int length, device_t /*device*/) {
  std::snprintf(name, static_cast<std::size_t>(length), "a device that does nothing");
  return code::success;
}

status cuDevicePrimaryCtxRetain(context_t* context, device_t /*device*/) {
  *context = a_context;
  return code::success;
}

status cuCtxGetCurrent(context_t* context) {
  *context = a_context;
  return code::success;
}

}  // extern "C"
