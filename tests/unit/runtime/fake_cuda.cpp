// SPDX-License-Identifier: Apache-2.0
#include "unit/runtime/fake_cuda.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace berth::runtime::testing {
namespace {

namespace code = cuda::code;
using cuda::address_t;
using cuda::context_t;
using cuda::copy_2d_t;
using cuda::device_t;
using cuda::event_t;
using cuda::host_function;
using cuda::kernel_t;
using cuda::location_t;
using cuda::module_t;
using cuda::status;
using cuda::stream_t;
using cuda::unique_id;

fake_cuda* state = nullptr;

int device_of(const void* context) {
  return static_cast<int>(static_cast<const int*>(context) - state->contexts.data());
}

status noted(const std::string& name, const std::string& details = {}) {
  state->log.push_back(details.empty() ? name : name + " " + details);
  const auto wanted = state->next_status.find(name);
  if (wanted == state->next_status.end()) {
    return code::success;
  }
  const status answer = wanted->second;
  state->next_status.erase(wanted);
  return answer;
}

// For a call that needs a context.
status within(const std::string& name, const std::string& details = {}) {
  if (state->current == nullptr) {
    return code::invalid_context;
  }
  return noted(name, fmt::format("{}{}on {}", details, details.empty() ? "" : ", ",
                                 device_of(state->current)));
}

void* pointer(address_t address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

extern "C" {

static status cuInit(unsigned /*flags*/) {
  return state->init_status;
}
static status cuDriverGetVersion(int* version) {
  *version = state->version;
  return noted("cuDriverGetVersion");
}
static status cuGetErrorName(status error, const char** name) {
  *name = error == code::out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return code::success;
}
static status cuDeviceGetCount(int* count) {
  *count = static_cast<int>(state->contexts.size());
  return code::success;
}
static status cuDeviceGet(device_t* out, int device) {
  *out = device;
  return code::success;
}
static status cuDeviceGetAttribute(int* value, int attribute, device_t /*device*/) {
  const auto found = state->attributes.find(attribute);
  if (found == state->attributes.end()) {
    return code::invalid_value;
  }
  *value = found->second;
  return code::success;
}
static status cuDeviceGetName(char* name, int length, device_t device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", device);
  return code::success;
}
static status cuDeviceGetPCIBusId(char* name, int length, device_t device) {
  std::snprintf(name, static_cast<std::size_t>(length), "0000:C%d:00.0", device + 1);
  return code::success;
}
static status cuDeviceGetUuid(unique_id* id, device_t device) {
  std::memset(id->bytes, device + 1, sizeof id->bytes);
  return code::success;
}
static status cuDeviceTotalMem_v2(std::size_t* total, device_t /*device*/) {
  *total = 4000;
  return code::success;
}
static status cuDevicePrimaryCtxRetain(context_t* context, device_t device) {
  int& retained = state->contexts[static_cast<std::size_t>(device)];
  ++retained;
  *context = &retained;
  return noted("cuDevicePrimaryCtxRetain", std::to_string(device));
}
static status cuDevicePrimaryCtxRelease_v2(device_t device) {
  --state->contexts[static_cast<std::size_t>(device)];
  return code::success;
}
static status cuCtxGetCurrent(context_t* context) {
  *context = state->current;
  return code::success;
}
static status cuCtxSetCurrent(context_t context) {
  state->current = context;
  return code::success;
}
static status cuCtxGetDevice(device_t* device) {
  if (state->current == nullptr) {
    return code::invalid_context;
  }
  *device = device_of(state->current);
  return code::success;
}
static status cuCtxSynchronize() {
  return within("cuCtxSynchronize");
}
static status cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return code::success;
}
static status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = state->free_bytes;
  *total = 4000;
  return within("cuMemGetInfo");
}
static status cuDeviceCanAccessPeer(int* can, device_t /*device*/, device_t /*peer*/) {
  *can = 1;
  return code::success;
}
static status cuCtxEnablePeerAccess(context_t peer, unsigned /*flags*/) {
  return within("cuCtxEnablePeerAccess", std::to_string(device_of(peer)));
}
static status cuCtxDisablePeerAccess(context_t peer) {
  return within("cuCtxDisablePeerAccess", std::to_string(device_of(peer)));
}
static status cuMemAlloc_v2(address_t* memory, std::size_t bytes) {
  const status answer = within("cuMemAlloc", fmt::format("{} bytes", bytes));
  *memory = answer == code::success ? reinterpret_cast<address_t>(std::malloc(bytes)) : 0;
  return answer;
}
static status cuMemFree_v2(address_t memory) {
  const status answer = within("cuMemFree");
  if (answer == code::success) {
    std::free(pointer(memory));
  }
  return answer;
}
static status cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  const status answer = within("cuMemHostAlloc", fmt::format("{} bytes, flags {}", bytes, flags));
  *memory = answer == code::success ? std::malloc(bytes) : nullptr;
  return answer;
}
static status cuMemFreeHost(void* memory) {
  std::free(memory);
  return within("cuMemFreeHost");
}
static status cuMemAllocManaged(address_t* memory, std::size_t bytes, unsigned flags) {
  const status answer =
      within("cuMemAllocManaged", fmt::format("{} bytes, flags {}", bytes, flags));
  *memory = answer == code::success ? reinterpret_cast<address_t>(std::malloc(bytes)) : 0;
  return answer;
}
static status cuMemHostRegister_v2(void* /*memory*/, std::size_t bytes, unsigned flags) {
  return within("cuMemHostRegister", fmt::format("{} bytes, flags {}", bytes, flags));
}
static status cuMemHostUnregister(void* /*memory*/) {
  return within("cuMemHostUnregister");
}
static status cuMemHostGetDevicePointer_v2(address_t* address, void* memory, unsigned /*flags*/) {
  *address = reinterpret_cast<address_t>(memory);
  return within("cuMemHostGetDevicePointer");
}
static status cuPointerGetAttributes(unsigned count, int* attributes, void** data,
                                     address_t memory) {
  if (const status answer = within("cuPointerGetAttributes"); answer != code::success) {
    return answer;
  }
  const auto found = state->pointers.find(pointer(memory));
  if (found == state->pointers.end()) {
    return code::success;  // every place is left as it was
  }
  for (unsigned index = 0; index < count; ++index) {
    switch (attributes[index]) {
      case cuda::pointer_attribute::memory_type: {
        const unsigned type = found->second == 100 ? 2U : static_cast<unsigned>(found->second);
        std::memcpy(data[index], &type, sizeof type);
        break;
      }
      case cuda::pointer_attribute::is_managed: {
        const char managed = found->second == 100 ? 1 : 0;
        std::memcpy(data[index], &managed, sizeof managed);
        break;
      }
      case cuda::pointer_attribute::device: {
        const int device = 1;
        std::memcpy(data[index], &device, sizeof device);
        break;
      }
      case cuda::pointer_attribute::range_bytes: {
        const std::size_t bytes = 64;
        std::memcpy(data[index], &bytes, sizeof bytes);
        break;
      }
      default:
        std::memcpy(data[index], &memory, sizeof memory);
    }
  }
  return code::success;
}
static status cuMemAdvise(address_t /*memory*/, std::size_t bytes, int advice, device_t device) {
  return within("cuMemAdvise", fmt::format("{} bytes, {}, device {}", bytes, advice, device));
}
static status cuMemAdvise_v2(address_t /*memory*/, std::size_t bytes, int advice,
                             location_t where) {
  return within("cuMemAdvise_v2",
                fmt::format("{} bytes, {}, {}:{}", bytes, advice, where.type, where.id));
}
static status cuMemPrefetchAsync(address_t /*memory*/, std::size_t bytes, device_t device,
                                 stream_t /*stream*/) {
  return within("cuMemPrefetchAsync", fmt::format("{} bytes, device {}", bytes, device));
}
static status cuMemPrefetchAsync_v2(address_t /*memory*/, std::size_t bytes, location_t where,
                                    unsigned /*flags*/, stream_t /*stream*/) {
  return within("cuMemPrefetchAsync_v2",
                fmt::format("{} bytes, {}:{}", bytes, where.type, where.id));
}
static status cuMemcpy(address_t dst, address_t src, std::size_t bytes) {
  std::memcpy(pointer(dst), pointer(src), bytes);
  return within("cuMemcpy", fmt::format("{} bytes", bytes));
}
static status cuMemcpyAsync(address_t dst, address_t src, std::size_t bytes, stream_t stream) {
  std::memcpy(pointer(dst), pointer(src), bytes);
  return within("cuMemcpyAsync", fmt::format("{} bytes, stream {}", bytes,
                                             reinterpret_cast<std::uintptr_t>(stream)));
}
static status cuMemcpy2DUnaligned_v2(const copy_2d_t* info) {
  state->last_2d = *info;
  return within("cuMemcpy2DUnaligned");
}
static status cuMemcpy2DAsync_v2(const copy_2d_t* info, stream_t /*stream*/) {
  state->last_2d = *info;
  return within("cuMemcpy2DAsync");
}
static status cuMemcpyPeerAsync(address_t /*dst*/, context_t dst_context, address_t /*src*/,
                                context_t src_context, std::size_t bytes, stream_t /*stream*/) {
  return within("cuMemcpyPeerAsync", fmt::format("{} bytes, {} to {}", bytes,
                                                 device_of(src_context), device_of(dst_context)));
}
static status cuMemsetD8_v2(address_t /*dst*/, unsigned char value, std::size_t bytes) {
  return within("cuMemsetD8", fmt::format("{} bytes of {}", bytes, value));
}
static status cuMemsetD8Async(address_t /*dst*/, unsigned char value, std::size_t bytes,
                              stream_t /*stream*/) {
  return within("cuMemsetD8Async", fmt::format("{} bytes of {}", bytes, value));
}
static status cuStreamCreate(stream_t* stream, unsigned flags) {
  *stream = state;
  return within("cuStreamCreate", fmt::format("flags {}", flags));
}
static status cuStreamCreateWithPriority(stream_t* stream, unsigned flags, int priority) {
  *stream = state;
  return within("cuStreamCreateWithPriority", fmt::format("flags {}, {}", flags, priority));
}
static status cuStreamDestroy_v2(stream_t /*stream*/) {
  return within("cuStreamDestroy");
}
static status cuStreamSynchronize(stream_t stream) {
  return within("cuStreamSynchronize",
                fmt::format("stream {}", reinterpret_cast<std::uintptr_t>(stream)));
}
static status cuStreamQuery(stream_t /*stream*/) {
  return within("cuStreamQuery");
}
static status cuStreamWaitEvent(stream_t /*stream*/, event_t /*event*/, unsigned /*flags*/) {
  return within("cuStreamWaitEvent");
}
static status cuLaunchHostFunc(stream_t /*stream*/, host_function function, void* data) {
  function(data);
  return within("cuLaunchHostFunc");
}
static status cuStreamIsCapturing(stream_t /*stream*/, int* out) {
  *out = 2;
  return within("cuStreamIsCapturing");
}
static status cuThreadExchangeStreamCaptureMode(int* mode) {
  *mode = 0;
  return noted("cuThreadExchangeStreamCaptureMode");
}
static status cuEventCreate(event_t* event, unsigned flags) {
  *event = state;
  return within("cuEventCreate", fmt::format("flags {}", flags));
}
static status cuEventDestroy_v2(event_t /*event*/) {
  return within("cuEventDestroy");
}
static status cuEventRecord(event_t /*event*/, stream_t /*stream*/) {
  return within("cuEventRecord");
}
static status cuEventQuery(event_t /*event*/) {
  return within("cuEventQuery");
}
static status cuEventSynchronize(event_t /*event*/) {
  return within("cuEventSynchronize");
}
static status cuEventElapsedTime(float* time, event_t /*start*/, event_t /*end*/) {
  *time = -0.25F;
  return within("cuEventElapsedTime");
}
static status cuModuleLoadDataEx(module_t* module, const void* image, unsigned count, int* options,
                                 void** values) {
  *module = state;
  const status answer = within("cuModuleLoadDataEx");
  if (answer != code::success && count == 2 && options[0] == cuda::jit_option::error_log) {
    std::snprintf(static_cast<char*>(values[0]), reinterpret_cast<std::size_t>(values[1]),
                  "ptxas: no");
  }
  return std::strstr(static_cast<const char*>(image), ".visible .entry berth_copy") != nullptr
             ? answer
             : code::invalid_image;
}
static status cuModuleGetFunction(kernel_t* kernel, module_t /*module*/, const char* name) {
  *kernel = const_cast<char*>(name);
  return within("cuModuleGetFunction", name);
}
static status cuModuleUnload(module_t /*module*/) {
  return within("cuModuleUnload");
}
static status cuLaunchKernel(kernel_t kernel, unsigned grid_x, unsigned /*grid_y*/,
                             unsigned /*grid_z*/, unsigned block_x, unsigned /*block_y*/,
                             unsigned /*block_z*/, unsigned /*shared*/, stream_t /*stream*/,
                             void** parameters, void** /*extra*/) {
  return within("cuLaunchKernel",
                fmt::format("{} {}x{} p1 {}", static_cast<const char*>(kernel), grid_x, block_x,
                            *static_cast<const std::uint64_t*>(parameters[1])));
}

}  // extern "C"

fake_cuda::fake_cuda() {
  state = this;
}

fake_cuda::~fake_cuda() {
  state = nullptr;
}

fake_library fake_cuda::library() {
  fake_library made;
#define BERTH_CUDA(name, need, since, operation, result, parameters, roles) \
  made.symbols[#name] = reinterpret_cast<void*>(&name);
#include "gpu_api.def"
  return made;
}

}  // namespace berth::runtime::testing
