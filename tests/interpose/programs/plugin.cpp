// SPDX-License-Identifier: Apache-2.0
// A library that is linked with HIP. With COPY_IN_CONSTRUCTOR it uses it while it is loaded.
#include "programs/hip_calls.hpp"

extern "C" void run_plugin() {
  program::copy_with(&hipMemcpy, 10);
}

#ifdef COPY_IN_CONSTRUCTOR
namespace {
__attribute__((constructor)) void begin() {
  program::copy_with(&hipMemcpy, 4);
}
}  // namespace
#endif
