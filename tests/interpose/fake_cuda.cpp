// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1: host memory plays all memories. cuGetProcAddress hands out the same
// functions as the symbols, and for the per-thread flag those of the thread's stream. It counts
// what comes in as fake_hip.cpp does (FAKE_CUDA_COUNTS).
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interpose/capture/abi.hpp"

using namespace berth::interpose::abi;  // NOLINT
using namespace berth::runtime::cuda;   // NOLINT

namespace {

struct counts {
  std::atomic<unsigned long> copies{0};
  std::atomic<unsigned long> bytes{0};
  counts() = default;
  counts(const counts&) = delete;
  counts& operator=(const counts&) = delete;
  counts(counts&&) = delete;
  counts& operator=(counts&&) = delete;
  ~counts() {
    if (const char* const path = std::getenv("FAKE_CUDA_COUNTS")) {
      if (std::FILE* const file = std::fopen(path, "w")) {
        std::fprintf(file, "%lu %lu\n", copies.load(), bytes.load());
        std::fclose(file);
      }
    }
  }
};
counts seen;

status move(address_t dst, const void* src, std::size_t bytes) {
  ++seen.copies;
  seen.bytes += bytes;
  std::memmove(reinterpret_cast<void*>(dst), src, bytes);  // NOLINT
  return 0;
}

}  // namespace

extern "C" {

status cuInit(unsigned) {
  return 0;
}
status cuMemAlloc_v2(address_t* out_memory, std::size_t bytes) {
  *out_memory = reinterpret_cast<address_t>(std::malloc(bytes));
  return 0;
}
status cuMemFree_v2(address_t memory) {
  std::free(reinterpret_cast<void*>(memory));  // NOLINT
  return 0;
}
status cuMemHostAlloc(void** out_memory, std::size_t bytes, unsigned) {
  *out_memory = std::malloc(bytes);
  return 0;
}
status cuMemFreeHost(void* memory) {
  std::free(memory);
  return 0;
}
status cuMemcpyHtoD_v2(address_t dst, const void* src, std::size_t bytes) {
  return move(dst, src, bytes);
}
status cuMemcpyHtoDAsync_v2(address_t dst, const void* src, std::size_t bytes, stream_t) {
  return move(dst, src, bytes);
}
status cuMemcpyHtoDAsync_v2_ptsz(address_t dst, const void* src, std::size_t bytes, stream_t) {
  return move(dst, src, bytes);
}
status cuMemcpyDtoH_v2(void* dst, address_t src, std::size_t bytes) {
  return move(reinterpret_cast<address_t>(dst), reinterpret_cast<void*>(src), bytes);  // NOLINT
}
status cuMemcpy2DAsync_v2(const copy_2d_t* info, stream_t) {
  return move(info->dst_device, info->src_host, info->width * info->rows);
}
status cuMemcpyBatchAsync_v2(address_t* dst, address_t* src, std::size_t* bytes, std::size_t count,
                             void*, std::size_t*, std::size_t, stream_t) {
  for (std::size_t index = 0; index < count; ++index) {
    move(dst[index], reinterpret_cast<void*>(src[index]), bytes[index]);  // NOLINT
  }
  return 0;
}
status cuStreamSynchronize(stream_t) {
  return 0;
}

status cuGetProcAddress(const char* name, void** out_function, int version,
                        unsigned long long flags);
status cuGetProcAddress_v2(const char* name, void** out_function, int version,
                           unsigned long long flags, int* out_status);
}

namespace {

struct entry {
  const char* name;
  void* function;
  void* per_thread;
};

template <class Function>
void* pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

status look_up(const char* name, void** out_function, unsigned long long flags) {
  constexpr unsigned long long per_thread = 2;
  const entry known[] = {
      {"cuInit", pointer(&cuInit), nullptr},
      {"cuMemAlloc", pointer(&cuMemAlloc_v2), nullptr},
      {"cuMemFree", pointer(&cuMemFree_v2), nullptr},
      {"cuMemcpyHtoD", pointer(&cuMemcpyHtoD_v2), nullptr},
      {"cuMemcpyHtoDAsync", pointer(&cuMemcpyHtoDAsync_v2), pointer(&cuMemcpyHtoDAsync_v2_ptsz)},
      {"cuMemcpyDtoH", pointer(&cuMemcpyDtoH_v2), nullptr},
      {"cuStreamSynchronize", pointer(&cuStreamSynchronize), nullptr},
      {"cuGetProcAddress", pointer(&cuGetProcAddress_v2), nullptr},
  };
  for (const auto& one : known) {
    if (std::strcmp(one.name, name) == 0) {
      *out_function =
          (flags & per_thread) != 0 && one.per_thread != nullptr ? one.per_thread : one.function;
      return 0;
    }
  }
  *out_function = nullptr;
  return 500;
}

}  // namespace

extern "C" {

status cuGetProcAddress(const char* name, void** out_function, int, unsigned long long flags) {
  return look_up(name, out_function, flags);
}
status cuGetProcAddress_v2(const char* name, void** out_function, int, unsigned long long flags,
                           int*) {
  return look_up(name, out_function, flags);
}
}
