// SPDX-License-Identifier: Apache-2.0
// A stand-in for libamdhip64: host memory plays all memories, and it has the calls that the tests
// make. As AMD's does, it enters its own exported calls: hipMemcpy is made of hipMemcpyAsync, so
// one call of a program reaches a recorder twice. FAKE_HIP_COUNTS names a file for the calls that
// came in, to compare with what was recorded.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "interpose/capture/abi.hpp"

using namespace berth::interpose::abi;  // NOLINT
using namespace berth::runtime::hip;    // NOLINT
using berth::runtime::cuda::location_t;

namespace {

struct counts {
  std::atomic<unsigned long> calls{0};
  std::atomic<unsigned long> copies{0};
  std::atomic<unsigned long> bytes{0};
  counts() = default;
  counts(const counts&) = delete;
  counts& operator=(const counts&) = delete;
  counts(counts&&) = delete;
  counts& operator=(counts&&) = delete;
  ~counts() {
    if (const char* const path = std::getenv("FAKE_HIP_COUNTS")) {
      if (std::FILE* const file = std::fopen(path, "w")) {
        std::fprintf(file, "%lu %lu %lu\n", calls.load(), copies.load(), bytes.load());
        std::fclose(file);
      }
    }
  }
};
counts seen;

// A call that ends with an error of its own choice, to see that the status arrives.
constexpr std::size_t too_much = std::size_t{1} << 46;
constexpr status out_of_memory = 2;
constexpr status not_ready = 600;
constexpr int changed_errno = 77;

}  // namespace

extern "C" {

status hipMalloc(void** out_memory, std::size_t bytes) {
  ++seen.calls;
  if (bytes >= too_much) {
    return out_of_memory;
  }
  *out_memory = std::malloc(bytes);
  return 0;
}
status hipHostMalloc(void** out_memory, std::size_t bytes, unsigned) {
  return hipMalloc(out_memory, bytes);  // through the PLT, as AMD's does
}
status hipFree(void* memory) {
  ++seen.calls;
  std::free(memory);
  return 0;
}
status hipHostFree(void* memory) {
  return hipFree(memory);
}

status hipMemcpyAsync(void* dst, const void* src, std::size_t bytes, int, stream_t) {
  if (bytes >= too_much) {
    errno = changed_errno;
    return out_of_memory;
  }
  ++seen.copies;
  seen.bytes += bytes;
  if (dst != nullptr && src != nullptr) {
    std::memmove(dst, src, bytes);
  }
  return 0;
}
status hipMemcpy(void* dst, const void* src, std::size_t bytes, int kind) {
  ++seen.calls;
  return hipMemcpyAsync(dst, src, bytes, kind, nullptr);
}
status hipMemcpy2D(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                   std::size_t width, std::size_t rows, int) {
  ++seen.copies;
  seen.bytes += width * rows;
  for (std::size_t row = 0; row < rows; ++row) {
    std::memmove(static_cast<char*>(dst) + row * dst_pitch,
                 static_cast<const char*>(src) + row * src_pitch, width);
  }
  return 0;
}
// Waits as long as `stream` says, in milliseconds: threads may be cancelled meanwhile.
status hipStreamSynchronize(stream_t stream) {
  const auto milliseconds = reinterpret_cast<std::uintptr_t>(stream);
  const timespec wait{.tv_sec = static_cast<time_t>(milliseconds / 1000),
                      .tv_nsec = static_cast<long>(milliseconds % 1000) * 1'000'000};
  ::nanosleep(&wait, nullptr);
  return 0;
}
status hipStreamQuery(stream_t) {
  return not_ready;
}
status hipGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
const char* hipGetErrorName(status) {
  return "hipErrorFake";
}

// What fake_program asks for by name; the pointers are those of the symbols.
status hipGetProcAddress(const char* name, void** out_function, int, unsigned long long, int*) {
  *out_function =
      std::strcmp(name, "hipMemcpy") == 0
          ? reinterpret_cast<void*>(
                static_cast<status (*)(void*, const void*, std::size_t, int)>(&hipMemcpy))
          : nullptr;
  return *out_function == nullptr ? 500 : 0;
}
}
