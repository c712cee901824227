// SPDX-License-Identifier: Apache-2.0
// Page-locked memory that is freed and allocated again, as programs do that never heard of pools:
// what a copy still reads when it is freed arrives, and what is told of a block is the same each
// time.
#include "program.hpp"

namespace {

constexpr std::size_t size = std::size_t{8} << 20U;
constexpr unsigned rounds = 6;

struct told {
  unsigned flags = 0;
  hipMemoryType type = hipMemoryTypeUnified;
  bool has_same_base = false;
};

told ask(void* block) {
  told answer;
  CHECK(hipHostGetFlags(&answer.flags, block));
  hipPointerAttribute_t attributes{};
  CHECK(hipPointerGetAttributes(&attributes, static_cast<char*>(block) + 100));
  answer.type = attributes.memoryType;
  answer.has_same_base = attributes.hostPointer == static_cast<char*>(block) + 100;
  return answer;
}

// Freed while a copy from it is under way, and allocated again at once with other bytes.
void free_under_a_copy(void* device, hipStream_t stream, unsigned seed) {
  void* block = nullptr;
  CHECK(hipHostMalloc(&block, size, hipHostMallocPortable));
  const auto first = ask(block);
  program::write_pattern(block, size, seed);
  CHECK(hipMemcpyAsync(device, block, size, hipMemcpyHostToDevice, stream));
  CHECK(hipHostFree(block));
  CHECK(hipHostMalloc(&block, size, hipHostMallocPortable));
  const auto second = ask(block);
  REQUIRE(first.flags == second.flags && first.type == second.type &&
          first.has_same_base == second.has_same_base);
  std::memset(block, 0xEE, size);
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipMemcpy(block, device, size, hipMemcpyDeviceToHost));
  REQUIRE(program::has_pattern(block, size, seed));
  CHECK(hipHostFree(block));
}

void free_beside_a_capture(hipStream_t stream) {
  void* block = nullptr;
  void* device = nullptr;
  CHECK(hipHostMalloc(&block, size, hipHostMallocPortable));
  CHECK(hipMalloc(&device, 4096));
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  CHECK(hipMemsetAsync(device, 1, 4096, stream));
  CHECK(hipHostFree(block));
  hipGraph_t graph = nullptr;
  CHECK(hipStreamEndCapture(stream, &graph));
  REQUIRE(graph != nullptr);
  CHECK(hipGraphDestroy(graph));
  CHECK(hipFree(device));
}

}  // namespace

int main() {
  void* device = nullptr;
  hipStream_t stream = nullptr;
  CHECK(hipMalloc(&device, size));
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (unsigned seed = 0; seed < rounds; ++seed) {
    free_under_a_copy(device, stream, seed);
  }
  free_beside_a_capture(stream);
  void* other = nullptr;
  CHECK(hipHostMalloc(&other, size, hipHostMallocDefault));
  unsigned flags = 0;
  CHECK(hipHostGetFlags(&flags, other));
  std::printf("%u rounds, flags of the other sort %#x\n", rounds, flags);
  CHECK(hipHostFree(other));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(device));
  return 0;
}
