// SPDX-License-Identifier: Apache-2.0
// Shows a fault of AMD's runtime, HIP 5.2: a fill of an unaligned address that ends before the next
// multiple of 8 writes up to that multiple, and then as many bytes as 64 bits can count. Prints
// "filled" where the runtime has no such fault.
#include "program.hpp"

int main() {
  auto* const memory = program::device_memory(4096);
  CHECK(hipMemset(memory, 0, 4096));
  CHECK(hipMemset(memory + 1, 0x5c, 1));
  CHECK(hipDeviceSynchronize());
  unsigned char seen[8] = {};
  CHECK(hipMemcpy(seen, memory, sizeof(seen), hipMemcpyDeviceToHost));
  REQUIRE(seen[0] == 0 && seen[1] == 0x5c && seen[2] == 0);
  std::puts("filled");
}
