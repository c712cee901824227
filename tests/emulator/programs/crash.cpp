// SPDX-License-Identifier: Apache-2.0
// Ends by a signal while the device has work.
#include <csignal>

#include "program.hpp"

int main() {
  auto* const device = program::device_memory(1UL << 20U);
  CHECK(hipMemset(device, 1, 1UL << 20U));
  std::raise(SIGSEGV);
}
