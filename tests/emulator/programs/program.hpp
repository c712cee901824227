// SPDX-License-Identifier: Apache-2.0
// What the test programs share. They are plain HIP programs against AMD's headers; each checks its
// own results and prints what it has asked of the device, one "did" line a piece, which the tests
// compare with what the emulated devices say they have done:
//   did copy DIRECTION BYTES     in one piece
//   did copies DIRECTION BYTES   in as many pieces as the runtime likes
//   did fill BYTES               did fills BYTES
//   did allocate BYTES           device memory, in at least so many bytes
// What the runtime does by the CPU has no line: fills of host memory, and small copies of
// pageable memory, which it writes into the device's memory itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <hip/hip_runtime_api.h>

namespace program {

[[noreturn]] inline void fail(const char* what, const char* where, int line) {
  std::printf("FAILED %s at %s:%d\n", what, where, line);
  std::fflush(stdout);
  std::_Exit(1);
}

inline void check(hipError_t answered, const char* call, const char* where, int line) {
  if (answered != hipSuccess) {
    std::printf("%s: %s\n", hipGetErrorName(answered), hipGetErrorString(answered));
    fail(call, where, line);
  }
}

inline void did_copy(const char* direction, std::size_t bytes) {
  std::printf("did copy %s %zu\n", direction, bytes);
}
inline void did_copies(const char* direction, std::size_t bytes) {
  std::printf("did copies %s %zu\n", direction, bytes);
}
inline void did_fills(std::size_t bytes) {
  std::printf("did fills %zu\n", bytes);
}
inline void did_fill(std::size_t bytes) {
  std::printf("did fill %zu\n", bytes);
}
inline void did_allocate(std::size_t bytes) {
  std::printf("did allocate %zu\n", bytes);
}

inline constexpr const char* to_device = "host_to_device";
inline constexpr const char* to_host = "device_to_host";
inline constexpr const char* inside = "device_to_device";
inline constexpr const char* to_peer = "peer_to_peer";

// Bytes that differ from place to place and from seed to seed.
inline void write_pattern(void* at, std::size_t bytes, unsigned seed) {
  auto* const to = static_cast<unsigned char*>(at);
  for (std::size_t i = 0; i < bytes; ++i) {
    to[i] = static_cast<unsigned char>(i * 131 + (i >> 9) + seed * 29);
  }
}

inline std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> made(bytes);
  write_pattern(made.data(), bytes, seed);
  return made;
}

inline bool has_pattern(const void* at, std::size_t bytes, unsigned seed) {
  const auto* const from = static_cast<const unsigned char*>(at);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (from[i] != static_cast<unsigned char>(i * 131 + (i >> 9) + seed * 29)) {
      return false;
    }
  }
  return true;
}

template <typename Type = unsigned char>
Type* device_memory(std::size_t bytes) {
  void* at = nullptr;
  check(hipMalloc(&at, bytes), "hipMalloc", __FILE__, __LINE__);
  did_allocate(bytes);
  return static_cast<Type*>(at);
}

template <typename Type = unsigned char>
Type* pinned_memory(std::size_t bytes) {
  void* at = nullptr;
  check(hipHostMalloc(&at, bytes, hipHostMallocDefault), "hipHostMalloc", __FILE__, __LINE__);
  return static_cast<Type*>(at);
}

}  // namespace program

#define CHECK(call) program::check((call), #call, __FILE__, __LINE__)
#define REQUIRE(condition)                         \
  if (!(condition)) {                              \
    program::fail(#condition, __FILE__, __LINE__); \
  }
