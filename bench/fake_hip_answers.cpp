// SPDX-License-Identifier: Apache-2.0
// The calls of fake_hip.cpp that answer something.
#include <cstdio>

#include "runtime/hip/abi.hpp"

namespace {

using namespace berth::runtime::hip;

}  // namespace

extern "C" {

status hipRuntimeGetVersion(int* version) {
  *version = 60240091;
  return code::success;
}

const char* hipGetErrorName(status /*error*/) {
  return "hipSuccess";
}

status hipGetDeviceCount(int* count) {
  *count = 1;
  return code::success;
}

status hipDeviceGetName(char* name, int length, int /*device*/) {
  std::snprintf(name, static_cast<std::size_t>(length), "a device that does nothing");
  return code::success;
}

}  // extern "C"
