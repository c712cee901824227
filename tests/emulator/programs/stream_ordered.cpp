// SPDX-License-Identifier: Apache-2.0
// Shows a fault of AMD's runtime, HIP 5.2: after hipMallocAsync and hipFreeAsync, hipStreamDestroy
// never returns. Its walk over the streams of the memory pool does not advance. Prints "destroyed"
// where the runtime has no such fault.
#include "program.hpp"

int main() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  void* memory = nullptr;
  CHECK(hipMallocAsync(&memory, 1UL << 20U, stream));
  CHECK(hipFreeAsync(memory, stream));
  CHECK(hipStreamSynchronize(stream));
  std::puts("synchronised");
  std::fflush(stdout);
  CHECK(hipStreamDestroy(stream));
  std::puts("destroyed");
}
