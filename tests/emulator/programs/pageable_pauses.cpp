// SPDX-License-Identifier: Apache-2.0
// Pageable copies, a pause, a wait for the device, and pageable copies again. On the standard
// error: how much memory is kept from children (which berth's rings are) before and after the
// pause.
#include <unistd.h>

#include <fstream>
#include <string>

#include "program.hpp"

namespace {

constexpr std::size_t size = std::size_t{16} << 20U;

// KiB of mappings with the flag "dc", do not copy on fork.
long uncopied_kib() {
  std::ifstream maps("/proc/self/smaps");
  std::string word;
  long sum = 0;
  long last = 0;
  while (maps >> word) {
    if (word == "Size:") {
      maps >> last;
    } else if (word == "dc") {
      sum += last;
    }
  }
  return sum;
}

void copy_both_ways(void* device, unsigned seed) {
  const auto from = program::pattern(size, seed);
  std::vector<unsigned char> to(size);
  CHECK(hipMemcpy(device, from.data(), size, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(to.data(), device, size, hipMemcpyDeviceToHost));
  REQUIRE(program::has_pattern(to.data(), size, seed));
}

}  // namespace

int main() {
  void* device = nullptr;
  CHECK(hipMalloc(&device, size));
  for (unsigned seed = 0; seed < 4; ++seed) {
    copy_both_ways(device, seed);
  }
  std::fprintf(stderr, "uncopied before %ld KiB\n", uncopied_kib());
  ::usleep(1'200'000);
  CHECK(hipDeviceSynchronize());
  std::fprintf(stderr, "uncopied after %ld KiB\n", uncopied_kib());
  for (unsigned seed = 4; seed < 8; ++seed) {
    copy_both_ways(device, seed);
    ::usleep(100'000);
  }
  std::printf("all right\n");
  CHECK(hipFree(device));
  return 0;
}
