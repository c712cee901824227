// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1 that works: host memory plays all memories, and each call has done
// all that it is to do when it returns. For programs under --fix where there is no GPU. When it
// goes, it writes to FAKE_CUDA_COUNTS how many copies of a megabyte and more came with a pageable
// end, and how many copies with a page-locked one: what is fixed comes as the latter.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "interpose/capture/abi.hpp"
#include "runtime/cuda/abi.hpp"

using namespace berth::runtime::cuda;  // NOLINT

namespace {

enum class kind : std::uint8_t { pageable, locked, device };

struct range {
  std::size_t bytes;
  kind of;
};

class machine {
public:
  machine() = default;
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;
  machine(machine&&) = delete;
  machine& operator=(machine&&) = delete;
  ~machine() {
    if (const char* const path = std::getenv("FAKE_CUDA_COUNTS")) {
      if (std::FILE* const file = std::fopen(path, "w")) {
        std::fprintf(file, "%lu %lu\n", pageable_.load(), locked_.load());
        std::fclose(file);
      }
    }
  }

  void* add(void* memory, std::size_t bytes, kind of) {
    const std::scoped_lock lock(mutex_);
    ranges_.insert_or_assign(reinterpret_cast<std::uintptr_t>(memory), range{bytes, of});
    return memory;
  }
  bool remove(void* memory) {
    const std::scoped_lock lock(mutex_);
    return ranges_.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1;
  }
  struct found {
    std::uintptr_t base = 0;
    range what{0, kind::pageable};
  };
  found find(std::uintptr_t address) {
    const std::scoped_lock lock(mutex_);
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) {
      return {};
    }
    --after;
    return address < after->first + after->second.bytes ? found{after->first, after->second}
                                                        : found{};
  }
  status copy(std::uintptr_t dst, std::uintptr_t src, std::size_t bytes) {
    for (const auto end : {find(dst).what.of, find(src).what.of}) {
      pageable_ += end == kind::pageable && bytes >= 1U << 20U ? 1U : 0U;
      locked_ += end == kind::locked ? 1U : 0U;
    }
    std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), bytes);  // NOLINT
    return code::success;
  }

private:
  std::mutex mutex_;
  std::map<std::uintptr_t, range> ranges_;
  std::atomic<unsigned long> pageable_{0};
  std::atomic<unsigned long> locked_{0};
};

machine& the_machine() {
  static machine one;
  return one;
}

int primary = 0;
int other = 0;
int handles = 0;
thread_local context_t current = nullptr;

std::uintptr_t number(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

status copy_rows(const copy_2d_t& what) {
  const auto source =
      what.src_type == memory_type::host ? number(what.src_host) : std::uintptr_t{what.src_device};
  const auto target =
      what.dst_type == memory_type::host ? number(what.dst_host) : std::uintptr_t{what.dst_device};
  for (std::size_t row = 0; row < what.rows; ++row) {
    the_machine().copy(target + (what.dst_y + row) * what.dst_pitch + what.dst_x,
                       source + (what.src_y + row) * what.src_pitch + what.src_x, what.width);
  }
  return code::success;
}

}  // namespace

extern "C" {

status cuInit(unsigned) {
  return code::success;
}
status cuDriverGetVersion(int* version) {
  *version = 12040;
  return code::success;
}
status cuGetErrorName(status, const char** name) {
  *name = "CUDA_ERROR_OF_A_STAND_IN";
  return code::success;
}
status cuDeviceGetCount(int* count) {
  *count = 1;
  return code::success;
}
status cuDeviceGet(device_t* device, int index) {
  *device = 0;
  return index == 0 ? code::success : code::invalid_device;
}
status cuDeviceGetAttribute(int* value, int, device_t) {
  *value = 0;
  return code::success;
}
status cuDeviceGetName(char* name, int length, device_t) {
  std::snprintf(name, static_cast<std::size_t>(length), "stand-in");
  return code::success;
}
status cuDeviceGetPCIBusId(char* name, int length, device_t) {
  std::snprintf(name, static_cast<std::size_t>(length), "0000:01:00.0");
  return code::success;
}
status cuDeviceTotalMem_v2(std::size_t* total, device_t) {
  *total = std::size_t{1} << 32U;
  return code::success;
}
status cuDevicePrimaryCtxRetain(context_t* context, device_t) {
  *context = &primary;
  return code::success;
}
status cuDevicePrimaryCtxRelease_v2(device_t) {
  return code::success;
}
status cuDevicePrimaryCtxGetState(device_t, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return code::success;
}
status cuCtxCreate_v2(context_t* context, unsigned, device_t) {
  *context = current = &other;
  return code::success;
}
status cuCtxGetCurrent(context_t* context) {
  *context = current;
  return code::success;
}
status cuCtxSetCurrent(context_t context) {
  current = context;
  return code::success;
}
status cuCtxGetDevice(device_t* device) {
  *device = 0;
  return current != nullptr ? code::success : code::invalid_context;
}
status cuCtxSynchronize() {
  return code::success;
}
status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 32U;
  return code::success;
}
status cuMemAlloc_v2(address_t* memory, std::size_t bytes) {
  *memory = number(the_machine().add(std::malloc(bytes), bytes, kind::device));
  return code::success;
}
status cuMemFree_v2(address_t memory) {
  auto* const address = reinterpret_cast<void*>(memory);  // NOLINT
  if (!the_machine().remove(address)) {
    return code::invalid_value;
  }
  std::free(address);
  return code::success;
}
status cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = the_machine().add(std::malloc(bytes), bytes, kind::locked);
  return code::success;
}
status cuMemFreeHost(void* memory) {
  if (!the_machine().remove(memory)) {
    return code::invalid_value;
  }
  std::free(memory);
  return code::success;
}
status cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  the_machine().add(memory, bytes, kind::locked);
  return code::success;
}
status cuMemHostUnregister(void* memory) {
  return the_machine().remove(memory) ? code::success : code::invalid_value;
}
status cuMemHostGetDevicePointer_v2(address_t* address, void* memory, unsigned) {
  *address = number(memory);
  return code::success;
}
status cuPointerGetAttributes(unsigned count, int* attributes, void** data, address_t memory) {
  const auto found = the_machine().find(memory);
  for (unsigned index = 0; index < count; ++index) {
    std::uint64_t value = 0;
    std::size_t bytes = sizeof value;
    const bool is_ours = found.what.of != kind::pageable;
    switch (attributes[index]) {
      case pointer_attribute::memory_type:
        bytes = sizeof(int);
        value = !is_ours                        ? 0
                : found.what.of == kind::device ? memory_type::device
                                                : memory_type::host;
        break;
      case pointer_attribute::device:
        bytes = sizeof(int);
        value = is_ours ? 0 : static_cast<unsigned>(-2);
        break;
      case pointer_attribute::device_address:
        value = is_ours ? memory : 0;
        break;
      case pointer_attribute::host_address:
        value = found.what.of == kind::locked ? memory : 0;
        break;
      case pointer_attribute::range_start:
        value = found.base;
        break;
      case pointer_attribute::range_bytes:
        value = found.what.bytes;
        break;
      default:
        bytes = sizeof(int);
        break;
    }
    std::memcpy(data[index], &value, bytes);
  }
  return code::success;
}
status cuMemcpy(address_t dst, address_t src, std::size_t bytes) {
  return the_machine().copy(dst, src, bytes);
}
status cuMemcpyAsync(address_t dst, address_t src, std::size_t bytes, stream_t) {
  return the_machine().copy(dst, src, bytes);
}
status cuMemcpyHtoD_v2(address_t dst, const void* src, std::size_t bytes) {
  return the_machine().copy(dst, number(src), bytes);
}
status cuMemcpyHtoDAsync_v2(address_t dst, const void* src, std::size_t bytes, stream_t) {
  return the_machine().copy(dst, number(src), bytes);
}
status cuMemcpyDtoH_v2(void* dst, address_t src, std::size_t bytes) {
  return the_machine().copy(number(dst), src, bytes);
}
status cuMemcpyDtoHAsync_v2(void* dst, address_t src, std::size_t bytes, stream_t) {
  return the_machine().copy(number(dst), src, bytes);
}
status cuMemcpy2DUnaligned_v2(const copy_2d_t* what) {
  return copy_rows(*what);
}
status cuMemcpy2DAsync_v2(const copy_2d_t* what, stream_t) {
  return copy_rows(*what);
}
status cuMemsetD8_v2(address_t dst, unsigned char value, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(dst), value, bytes);  // NOLINT
  return code::success;
}
status cuMemsetD8Async(address_t dst, unsigned char value, std::size_t bytes, stream_t) {
  return cuMemsetD8_v2(dst, value, bytes);
}
status cuStreamCreate(stream_t* stream, unsigned) {
  *stream = &handles;
  return code::success;
}
status cuStreamDestroy_v2(stream_t) {
  return code::success;
}
status cuStreamSynchronize(stream_t) {
  return code::success;
}
status cuStreamQuery(stream_t) {
  return code::success;
}
status cuStreamWaitEvent(stream_t, event_t, unsigned) {
  return code::success;
}
status cuEventCreate(event_t* event, unsigned) {
  *event = &handles;
  return code::success;
}
status cuEventDestroy_v2(event_t) {
  return code::success;
}
status cuEventRecord(event_t, stream_t) {
  return code::success;
}
status cuEventQuery(event_t) {
  return code::success;
}
status cuEventSynchronize(event_t) {
  return code::success;
}
status cuEventElapsedTime(float* milliseconds, event_t, event_t) {
  *milliseconds = 0;
  return code::success;
}
}
