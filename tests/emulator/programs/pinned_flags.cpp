// SPDX-License-Identifier: Apache-2.0
// A fault of HIP 5.2: the coherence that page-locked memory was asked for is not told again,
// because it stands in the upper 16 bits of the flags. Exit status 3 where that is so, 0 where it
// is told.
#include "program.hpp"

int main() {
  void* host = nullptr;
  CHECK(hipHostMalloc(&host, 4096, hipHostMallocNonCoherent | hipHostMallocPortable));
  unsigned flags = 0;
  CHECK(hipHostGetFlags(&flags, host));
  hipPointerAttribute_t attributes{};
  CHECK(hipPointerGetAttributes(&attributes, host));
  REQUIRE((flags & hipHostMallocPortable) != 0);
  const bool told =
      ((flags | attributes.allocationFlags) & unsigned{hipHostMallocNonCoherent}) != 0;
  std::printf("flags %#x and %#x\n", flags, attributes.allocationFlags);
  CHECK(hipHostFree(host));
  return told ? 0 : 3;
}
