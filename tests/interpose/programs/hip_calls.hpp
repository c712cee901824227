// SPDX-License-Identifier: Apache-2.0
// HIP as the test programs see it, without HIP's headers; and what they do with it.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
int hipMalloc(void** memory, std::size_t bytes);
int hipHostMalloc(void** memory, std::size_t bytes, unsigned flags);
int hipFree(void* memory);
int hipHostFree(void* memory);
int hipMemcpy(void* dst, const void* src, std::size_t bytes, int kind);
int hipMemcpyAsync(void* dst, const void* src, std::size_t bytes, int kind, void* stream);
int hipMemcpy2D(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                std::size_t width, std::size_t rows, int kind);
int hipStreamSynchronize(void* stream);
}

namespace program {

constexpr int to_device = 1;
constexpr int to_host = 2;
constexpr std::size_t room = 4096;

using copy_function = int (*)(void*, const void*, std::size_t, int);

// The size of copy `index`: they differ, so that lost ones and doubled ones are seen.
constexpr std::size_t size_of(int index) {
  return static_cast<std::size_t>(index % 29) + 1;
}

// Copies there and back, and fails the program where the bytes are wrong.
inline void copy_with(copy_function copy, int count) {
  std::vector<unsigned char> host(room);
  std::vector<unsigned char> device(room);
  for (int index = 0; index < count; ++index) {
    const auto bytes = size_of(index);
    std::memset(host.data(), index, bytes);
    const bool forth = index % 2 == 0;
    const int status = forth ? copy(device.data(), host.data(), bytes, to_device)
                             : copy(host.data(), device.data(), bytes, to_host);
    if (status != 0 || (forth && std::memcmp(host.data(), device.data(), bytes) != 0)) {
      std::printf("copy %d failed: %d\n", index, status);
      std::exit(9);
    }
  }
}

}  // namespace program
