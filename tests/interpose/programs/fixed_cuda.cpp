// SPDX-License-Identifier: Apache-2.0
// A program that is linked with CUDA's driver, with pageable copies of all forms that --fix knows,
// in the primary context and in another, and page-locked memory that is freed and allocated again.
#include <cstdio>
#include <cstring>
#include <vector>

#include "runtime/cuda/abi.hpp"

using namespace berth::runtime::cuda;  // NOLINT

extern "C" {
status cuInit(unsigned flags);
status cuDevicePrimaryCtxRetain(context_t* context, device_t device);
status cuCtxSetCurrent(context_t context);
status cuCtxCreate_v2(context_t* context, unsigned flags, device_t device);
status cuMemAlloc_v2(address_t* memory, std::size_t bytes);
status cuMemFree_v2(address_t memory);
status cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags);
status cuMemFreeHost(void* memory);
status cuMemcpy(address_t dst, address_t src, std::size_t bytes);
status cuMemcpyHtoD_v2(address_t dst, const void* src, std::size_t bytes);
status cuMemcpyHtoDAsync_v2(address_t dst, const void* src, std::size_t bytes, stream_t stream);
status cuMemcpyDtoH_v2(void* dst, address_t src, std::size_t bytes);
status cuMemcpyDtoHAsync_v2(void* dst, address_t src, std::size_t bytes, stream_t stream);
status cuMemcpy2DUnaligned_v2(const copy_2d_t* info);
status cuStreamSynchronize(stream_t stream);
}

namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;

int wrong = 0;

void check(bool right) {
  wrong += right ? 0 : 1;
}

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> made(bytes);
  for (std::size_t index = 0; index < bytes; ++index) {
    made[index] = static_cast<unsigned char>(index * 31 + (index >> 10U) + seed);
  }
  return made;
}

address_t number(void* memory) {
  return reinterpret_cast<address_t>(memory);
}

void round_trip(address_t device, std::size_t bytes, unsigned form) {
  auto from = pattern(bytes, form);
  std::vector<unsigned char> to(bytes);
  switch (form) {
    case 0:
      check(cuMemcpyHtoD_v2(device, from.data(), bytes) == 0);
      check(cuMemcpyDtoH_v2(to.data(), device, bytes) == 0);
      break;
    case 1:
      check(cuMemcpyHtoDAsync_v2(device, from.data(), bytes, nullptr) == 0);
      check(cuMemcpyDtoHAsync_v2(to.data(), device, bytes, nullptr) == 0);
      check(cuStreamSynchronize(nullptr) == 0);
      break;
    default:
      check(cuMemcpy(device, number(from.data()), bytes) == 0);
      check(cuMemcpy(number(to.data()), device, bytes) == 0);
      break;
  }
  check(from == to);
}

void rows(address_t device) {
  constexpr std::size_t width = 3000;
  constexpr std::size_t pitch = 4096;
  constexpr std::size_t count = 700;
  const auto from = pattern(pitch * count, 9);
  std::vector<unsigned char> to(pitch * count, 0xEE);
  copy_2d_t up{};
  up.src_type = memory_type::host;
  up.src_host = from.data();
  up.src_pitch = pitch;
  up.dst_type = memory_type::device;
  up.dst_device = device;
  up.dst_pitch = width;
  up.width = width;
  up.rows = count;
  copy_2d_t down{};
  down.src_type = memory_type::device;
  down.src_device = device;
  down.src_pitch = width;
  down.dst_type = memory_type::host;
  down.dst_host = to.data();
  down.dst_pitch = pitch;
  down.width = width;
  down.rows = count;
  check(cuMemcpy2DUnaligned_v2(&up) == 0);
  check(cuMemcpy2DUnaligned_v2(&down) == 0);
  for (std::size_t row = 0; row < count; ++row) {
    check(std::memcmp(from.data() + row * pitch, to.data() + row * pitch, width) == 0);
    check(to[row * pitch + width] == 0xEE);
  }
}

void reuse() {
  for (int times = 0; times < 4; ++times) {
    void* block = nullptr;
    check(cuMemHostAlloc(&block, 4 * mib, 1) == 0);
    std::memset(block, times, 4 * mib);
    check(cuMemFreeHost(block) == 0);
  }
}

}  // namespace

int main() {
  context_t primary = nullptr;
  address_t device = 0;
  check(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&primary, 0) == 0);
  check(cuCtxSetCurrent(primary) == 0 && cuMemAlloc_v2(&device, 9 * mib) == 0);
  for (const auto bytes : {mib, 2 * mib + 12345, 8 * mib - 3}) {
    for (unsigned form = 0; form < 3; ++form) {
      round_trip(device, bytes, form);
    }
  }
  rows(device);
  reuse();
  context_t other = nullptr;
  check(cuCtxCreate_v2(&other, 0, 0) == 0);
  round_trip(device, 2 * mib, 0);
  check(cuCtxSetCurrent(primary) == 0 && cuMemFree_v2(device) == 0);
  std::printf("wrong %d\n", wrong);
  return wrong == 0 ? 0 : 1;
}
