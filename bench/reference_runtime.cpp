// SPDX-License-Identifier: Apache-2.0
#include "reference_runtime.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <thread>

namespace reference {
namespace {

constexpr double ns_per_ms = 1e6;
constexpr unsigned no_implicit_order = 1;  // CU_STREAM_NON_BLOCKING, hipStreamNonBlocking
constexpr int hip_to_device = 1;
constexpr int hip_to_host = 2;

void* open_library(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (void* const library = ::dlopen(name, RTLD_NOW)) {
      return library;
    }
  }
  give_up(std::string(*names.begin()) + " cannot be loaded");
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) {
    give_up(std::string(name) + " is missing");
  }
}

void must(int status, const char* call) {
  if (status != 0) {
    give_up(std::string(call) + " failed with " + std::to_string(status));
  }
}

void wait_for(const void* flag) {
  while (!static_cast<const std::atomic<bool>*>(flag)->load()) {
    std::this_thread::yield();
  }
}

class cuda_runtime final : public gpu_runtime {
public:
  explicit cuda_runtime(int ordinal) {
    void* const library = open_library({"libcuda.so.1"});
    int (*init)(unsigned) = nullptr;
    int (*get)(int*, int) = nullptr;
    int (*retain)(void**, int) = nullptr;
    int (*set_current)(void*) = nullptr;
    find(library, "cuInit", init);
    find(library, "cuDeviceGet", get);
    find(library, "cuDevicePrimaryCtxRetain", retain);
    find(library, "cuCtxSetCurrent", set_current);
    find(library, "cuMemAlloc_v2", allocate_);
    find(library, "cuMemFree_v2", free_);
    find(library, "cuMemHostAlloc", allocate_host_);
    find(library, "cuMemFreeHost", free_host_);
    find(library, "cuMemsetD8Async", clear_);
    find(library, "cuMemcpyHtoDAsync_v2", to_device_);
    find(library, "cuMemcpyDtoHAsync_v2", to_host_);
    find(library, "cuStreamCreate", create_stream_);
    find(library, "cuStreamWaitEvent", wait_);
    find(library, "cuStreamSynchronize", synchronize_);
    find(library, "cuLaunchHostFunc", call_host_);
    find(library, "cuEventCreate", create_event_);
    find(library, "cuEventRecord", record_);
    find(library, "cuEventElapsedTime", elapsed_);
    int device = 0;
    void* context = nullptr;
    must(init(0), "cuInit");
    must(get(&device, ordinal), "cuDeviceGet");
    must(retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(set_current(context), "cuCtxSetCurrent");
  }

  void* device_memory(std::size_t bytes) override {
    std::uint64_t address = 0;
    must(allocate_(&address, bytes), "cuMemAlloc");
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  void* pinned_memory(std::size_t bytes) override {
    void* memory = nullptr;
    must(allocate_host_(&memory, bytes, 0), "cuMemHostAlloc");
    return memory;
  }
  void free_device_memory(void* memory) override { must(free_(number(memory)), "cuMemFree"); }
  void free_pinned_memory(void* memory) override { must(free_host_(memory), "cuMemFreeHost"); }
  void clear(void* device, std::size_t bytes, stream_t on) override {
    must(clear_(number(device), 0, bytes, on), "cuMemsetD8Async");
  }
  void to_device(void* device, const void* host, std::size_t bytes, stream_t on) override {
    must(to_device_(number(device), host, bytes, on), "cuMemcpyHtoDAsync");
  }
  void to_host(void* host, const void* device, std::size_t bytes, stream_t on) override {
    must(to_host_(host, number(device), bytes, on), "cuMemcpyDtoHAsync");
  }
  stream_t stream() override {
    stream_t made = nullptr;
    must(create_stream_(&made, no_implicit_order), "cuStreamCreate");
    return made;
  }
  event_t event() override {
    event_t made = nullptr;
    must(create_event_(&made, 0), "cuEventCreate");
    return made;
  }
  void record(event_t what, stream_t on) override { must(record_(what, on), "cuEventRecord"); }
  void wait(stream_t which, event_t until) override {
    must(wait_(which, until, 0), "cuStreamWaitEvent");
  }
  void hold(stream_t on, const std::atomic<bool>& open) override {
    const auto wait = [](const void* data) { wait_for(data); };
    must(call_host_(on, wait, &open), "cuLaunchHostFunc");
  }
  void synchronize(stream_t which) override { must(synchronize_(which), "cuStreamSynchronize"); }
  double elapsed_ns(event_t from, event_t to) override {
    float ms = 0;
    must(elapsed_(&ms, from, to), "cuEventElapsedTime");
    return static_cast<double>(ms) * ns_per_ms;
  }

private:
  static std::uint64_t number(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }

  int (*allocate_)(std::uint64_t*, std::size_t) = nullptr;
  int (*free_)(std::uint64_t) = nullptr;
  int (*allocate_host_)(void**, std::size_t, unsigned) = nullptr;
  int (*free_host_)(void*) = nullptr;
  int (*clear_)(std::uint64_t, unsigned char, std::size_t, stream_t) = nullptr;
  int (*to_device_)(std::uint64_t, const void*, std::size_t, stream_t) = nullptr;
  int (*to_host_)(void*, std::uint64_t, std::size_t, stream_t) = nullptr;
  int (*create_stream_)(stream_t*, unsigned) = nullptr;
  int (*wait_)(stream_t, event_t, unsigned) = nullptr;
  int (*synchronize_)(stream_t) = nullptr;
  int (*call_host_)(stream_t, void (*)(const void*), const void*) = nullptr;
  int (*create_event_)(event_t*, unsigned) = nullptr;
  int (*record_)(event_t, stream_t) = nullptr;
  int (*elapsed_)(float*, event_t, event_t) = nullptr;
};

class hip_runtime final : public gpu_runtime {
public:
  explicit hip_runtime(int ordinal) {
    void* const library = open_library(
        {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"});
    int (*set_device)(int) = nullptr;
    find(library, "hipSetDevice", set_device);
    find(library, "hipMalloc", allocate_);
    find(library, "hipFree", free_);
    find(library, "hipHostMalloc", allocate_host_);
    find(library, "hipHostFree", free_host_);
    find(library, "hipMemsetAsync", clear_);
    find(library, "hipMemcpyAsync", copy_);
    find(library, "hipStreamCreateWithFlags", create_stream_);
    find(library, "hipStreamWaitEvent", wait_);
    find(library, "hipStreamSynchronize", synchronize_);
    find(library, "hipStreamAddCallback", call_host_);
    find(library, "hipEventCreateWithFlags", create_event_);
    find(library, "hipEventRecord", record_);
    find(library, "hipEventElapsedTime", elapsed_);
    must(set_device(ordinal), "hipSetDevice");
  }

  void* device_memory(std::size_t bytes) override {
    void* memory = nullptr;
    must(allocate_(&memory, bytes), "hipMalloc");
    return memory;
  }
  void* pinned_memory(std::size_t bytes) override {
    void* memory = nullptr;
    must(allocate_host_(&memory, bytes, 0), "hipHostMalloc");
    return memory;
  }
  void free_device_memory(void* memory) override { must(free_(memory), "hipFree"); }
  void free_pinned_memory(void* memory) override { must(free_host_(memory), "hipHostFree"); }
  void clear(void* device, std::size_t bytes, stream_t on) override {
    must(clear_(device, 0, bytes, on), "hipMemsetAsync");
  }
  void to_device(void* device, const void* host, std::size_t bytes, stream_t on) override {
    must(copy_(device, host, bytes, hip_to_device, on), "hipMemcpyAsync");
  }
  void to_host(void* host, const void* device, std::size_t bytes, stream_t on) override {
    must(copy_(host, device, bytes, hip_to_host, on), "hipMemcpyAsync");
  }
  stream_t stream() override {
    stream_t made = nullptr;
    must(create_stream_(&made, no_implicit_order), "hipStreamCreateWithFlags");
    return made;
  }
  event_t event() override {
    event_t made = nullptr;
    must(create_event_(&made, 0), "hipEventCreateWithFlags");
    return made;
  }
  void record(event_t what, stream_t on) override { must(record_(what, on), "hipEventRecord"); }
  void wait(stream_t which, event_t until) override {
    must(wait_(which, until, 0), "hipStreamWaitEvent");
  }
  void hold(stream_t on, const std::atomic<bool>& open) override {
    const auto wait = [](stream_t /*on*/, int /*status*/, const void* data) { wait_for(data); };
    must(call_host_(on, wait, &open, 0), "hipStreamAddCallback");
  }
  void synchronize(stream_t which) override { must(synchronize_(which), "hipStreamSynchronize"); }
  double elapsed_ns(event_t from, event_t to) override {
    float ms = 0;
    must(elapsed_(&ms, from, to), "hipEventElapsedTime");
    return static_cast<double>(ms) * ns_per_ms;
  }

private:
  int (*allocate_)(void**, std::size_t) = nullptr;
  int (*free_)(void*) = nullptr;
  int (*allocate_host_)(void**, std::size_t, unsigned) = nullptr;
  int (*free_host_)(void*) = nullptr;
  int (*clear_)(void*, int, std::size_t, stream_t) = nullptr;
  int (*copy_)(void*, const void*, std::size_t, int, stream_t) = nullptr;
  int (*create_stream_)(stream_t*, unsigned) = nullptr;
  int (*wait_)(stream_t, event_t, unsigned) = nullptr;
  int (*synchronize_)(stream_t) = nullptr;
  int (*call_host_)(stream_t, void (*)(stream_t, int, const void*), const void*,
                    unsigned) = nullptr;
  int (*create_event_)(event_t*, unsigned) = nullptr;
  int (*record_)(event_t, stream_t) = nullptr;
  int (*elapsed_)(float*, event_t, event_t) = nullptr;
};

}  // namespace

std::unique_ptr<gpu_runtime> open_cuda(int device) {
  return std::make_unique<cuda_runtime>(device);
}

std::unique_ptr<gpu_runtime> open_hip(int device) {
  return std::make_unique<hip_runtime>(device);
}

// With a gate still shut, no runtime could be ended in order.
void give_up(const std::string& why) {
  std::fprintf(stderr, "reference_copy: %s\n", why.c_str());
  std::fflush(nullptr);
  std::_Exit(3);
}

}  // namespace reference
