// SPDX-License-Identifier: Apache-2.0
// Copies with a pitch: from and to pageable and pinned memory, inside the device, and fills.
#include "program.hpp"

namespace {

constexpr std::size_t width = 100;
constexpr std::size_t height = 50;

struct pitched {
  unsigned char* at = nullptr;
  std::size_t pitch = 0;
};

pitched make_pitched() {
  pitched made;
  CHECK(hipMallocPitch(reinterpret_cast<void**>(&made.at), &made.pitch, width, height));
  return made;
}

void there_and_back(unsigned char* source, unsigned char* result, std::size_t host_pitch) {
  const auto a = make_pitched();
  const auto b = make_pitched();
  std::memset(result, 0, host_pitch * height);
  CHECK(hipMemcpy2D(a.at, a.pitch, source, host_pitch, width, height, hipMemcpyHostToDevice));
  CHECK(hipMemcpy2D(b.at, b.pitch, a.at, a.pitch, width, height, hipMemcpyDeviceToDevice));
  CHECK(hipMemcpy2D(result, host_pitch, b.at, b.pitch, width, height, hipMemcpyDeviceToHost));
  program::did_copies(program::to_device, width * height);
  program::did_copies(program::inside, width * height);
  program::did_copies(program::to_host, width * height);
  for (std::size_t row = 0; row < height; ++row) {
    REQUIRE(std::memcmp(source + row * host_pitch, result + row * host_pitch, width) == 0);
  }
  CHECK(hipMemset2D(a.at, a.pitch, 0x77, width / 2, height));
  CHECK(hipMemcpy2D(result, host_pitch, a.at, a.pitch, width, height, hipMemcpyDeviceToHost));
  program::did_fills(width / 2 * height);
  program::did_copies(program::to_host, width * height);
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      const auto wanted =
          column < width / 2 ? static_cast<unsigned char>(0x77) : source[row * host_pitch + column];
      REQUIRE(result[row * host_pitch + column] == wanted);
    }
  }
  CHECK(hipFree(a.at));
  CHECK(hipFree(b.at));
}

}  // namespace

int main() {
  for (const std::size_t host_pitch : {width, width + 4, width + 7}) {
    const std::size_t bytes = host_pitch * height;
    auto source = program::pattern(bytes, 8);
    std::vector<unsigned char> result(bytes);
    there_and_back(source.data(), result.data(), host_pitch);
    auto* const pinned_source = program::pinned_memory(bytes);
    auto* const pinned_result = program::pinned_memory(bytes);
    program::write_pattern(pinned_source, bytes, 8);
    there_and_back(pinned_source, pinned_result, host_pitch);
    CHECK(hipHostFree(pinned_source));
    CHECK(hipHostFree(pinned_result));
  }
}
