// SPDX-License-Identifier: Apache-2.0
// A library that wraps a call of HIP and goes on to the next.
#include <dlfcn.h>

#include <cstdlib>

#include "programs/hip_calls.hpp"

extern "C" int hipMemcpy(void* dst, const void* src, std::size_t bytes, int kind) {
  static int calls = 0;
  static const auto next =
      reinterpret_cast<program::copy_function>(::dlsym(RTLD_NEXT, "hipMemcpy"));
  if (++calls == 1) {
    std::printf("wrapped\n");
  }
  return next(dst, src, bytes, kind);
}
