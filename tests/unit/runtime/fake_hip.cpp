// SPDX-License-Identifier: Apache-2.0
#include "unit/runtime/fake_hip.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "runtime/hip/abi.hpp"

namespace berth::runtime::testing {
namespace {

namespace code = hip::code;
using hip::event_t;
using hip::host_function;
using hip::kernel_t;
using hip::module_t;
using hip::pointer_attributes;
using hip::status;
using hip::stream_callback;
using hip::stream_t;
using hip::unique_id;

fake_hip* state = nullptr;

status fail(status answer) {
  state->last_error = answer;
  return answer;
}

// Notes the call; its status is success or what the test has asked for.
status noted(const std::string& name, const std::string& details = {}) {
  state->log.push_back(details.empty() ? name : name + " " + details);
  const auto wanted = state->next_status.find(name);
  if (wanted == state->next_status.end()) {
    return code::success;
  }
  const status answer = wanted->second;
  state->next_status.erase(wanted);
  return answer == code::success ? answer : fail(answer);
}

status allocated(const std::string& name, void** out, std::size_t bytes, unsigned flags) {
  const status answer =
      noted(name, fmt::format("{} bytes, flags {:#x}, device {}", bytes, flags, state->current));
  *out = answer == code::success ? std::malloc(bytes) : nullptr;
  return answer;
}

}  // namespace

extern "C" {

static status hipRuntimeGetVersion(int* version) {
  *version = state->version;
  return noted("hipRuntimeGetVersion");
}
static const char* hipGetErrorName(status error) {
  switch (error) {
    case code::invalid_value:
      return "hipErrorInvalidValue";
    case code::out_of_memory:
      return "hipErrorOutOfMemory";
    case code::no_device:
      return "hipErrorNoDevice";
    default:
      return "hipErrorOther";
  }
}
static status hipGetLastError() {
  return std::exchange(state->last_error, code::success);
}
static status hipPeekAtLastError() {
  return state->last_error;
}
static status hipGetDeviceCount(int* count) {
  *count = state->device_count;
  return state->device_count > 0 ? noted("hipGetDeviceCount") : fail(code::no_device);
}
static status hipGetDevice(int* device) {
  *device = state->current;
  return code::success;
}
static status hipSetDevice(int device) {
  state->current = device;
  return noted("hipSetDevice", std::to_string(device));
}
static status hipDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  const auto found = state->attributes.find(attribute);
  if (found == state->attributes.end()) {
    return fail(code::invalid_value);
  }
  *value = found->second;
  return code::success;
}
static status hipDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", device);
  return code::success;
}
static status hipDeviceGetPCIBusId(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "0000:C%d:00.0", device + 1);
  return code::success;
}
static status hipDeviceGetUuid(unique_id* id, int device) {
  std::memset(id->bytes, device + 1, sizeof id->bytes);
  return code::success;
}
static status hipDeviceTotalMem(std::size_t* total, int /*device*/) {
  *total = 4000;
  return code::success;
}
static status hipMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = state->free_bytes;
  *total = 4000;
  return noted("hipMemGetInfo", fmt::format("device {}", state->current));
}
static status hipDeviceSynchronize() {
  return noted("hipDeviceSynchronize", fmt::format("device {}", state->current));
}
static status hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 1;
  *greatest = -1;
  return code::success;
}
static status hipDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 1;
  return noted("hipDeviceCanAccessPeer");
}
static status hipDeviceEnablePeerAccess(int peer, unsigned /*flags*/) {
  return noted("hipDeviceEnablePeerAccess", fmt::format("{} from {}", peer, state->current));
}
static status hipDeviceDisablePeerAccess(int peer) {
  return noted("hipDeviceDisablePeerAccess", std::to_string(peer));
}
static status hipMalloc(void** memory, std::size_t bytes) {
  return allocated("hipMalloc", memory, bytes, 0);
}
static status hipExtMallocWithFlags(void** memory, std::size_t bytes, unsigned flags) {
  return allocated("hipExtMallocWithFlags", memory, bytes, flags);
}
static status hipFree(void* memory) {
  std::free(memory);
  return noted("hipFree");
}
static status hipHostMalloc(void** memory, std::size_t bytes, unsigned flags) {
  return allocated("hipHostMalloc", memory, bytes, flags);
}
static status hipHostFree(void* memory) {
  std::free(memory);
  return noted("hipHostFree");
}
static status hipMallocManaged(void** memory, std::size_t bytes, unsigned flags) {
  return allocated("hipMallocManaged", memory, bytes, flags);
}
static status hipHostRegister(void* /*memory*/, std::size_t bytes, unsigned flags) {
  return noted("hipHostRegister", fmt::format("{} bytes, flags {:#x}", bytes, flags));
}
static status hipHostUnregister(void* /*memory*/) {
  return noted("hipHostUnregister");
}
static status hipHostGetDevicePointer(void** address, void* memory, unsigned /*flags*/) {
  *address = memory;
  return noted("hipHostGetDevicePointer");
}
static status hipPointerGetAttributes(pointer_attributes* info, const void* memory) {
  const auto found = state->pointers.find(memory);
  if (found == state->pointers.end()) {
    if (state->version < 60000000) {
      return fail(code::invalid_value);
    }
    *info = {};
    info->device = -2;
    return code::success;
  }
  *info = {};
  info->type = found->second;
  info->host_pointer = const_cast<void*>(memory);
  info->device_pointer = const_cast<void*>(memory);
  return code::success;
}
static status hipMemGetAddressRange(void** base, std::size_t* bytes, void* memory) {
  *base = state->tells_base ? memory : nullptr;
  *bytes = 64;
  return noted("hipMemGetAddressRange");
}
static status hipMemAdvise(const void* /*memory*/, std::size_t bytes, int advice, int device) {
  return noted("hipMemAdvise", fmt::format("{} bytes, {}, device {}", bytes, advice, device));
}
static status hipMemPrefetchAsync(const void* /*memory*/, std::size_t bytes, int device,
                                  stream_t /*stream*/) {
  return noted("hipMemPrefetchAsync", fmt::format("{} bytes, device {}", bytes, device));
}
static status hipMemcpy(void* dst, const void* src, std::size_t bytes, int kind) {
  std::memcpy(dst, src, bytes);
  return noted("hipMemcpy", fmt::format("{} bytes, kind {}", bytes, kind));
}
static status hipMemcpyAsync(void* dst, const void* src, std::size_t bytes, int kind,
                             stream_t stream) {
  std::memcpy(dst, src, bytes);
  return noted("hipMemcpyAsync", fmt::format("{} bytes, kind {}, stream {}", bytes, kind,
                                             reinterpret_cast<std::uintptr_t>(stream)));
}
static status hipMemcpy2D(void* /*dst*/, std::size_t dst_pitch, const void* /*src*/,
                          std::size_t src_pitch, std::size_t width, std::size_t rows, int kind) {
  return noted("hipMemcpy2D",
               fmt::format("{} {} {} {} kind {}", dst_pitch, src_pitch, width, rows, kind));
}
static status hipMemcpy2DAsync(void* /*dst*/, std::size_t dst_pitch, const void* /*src*/,
                               std::size_t src_pitch, std::size_t width, std::size_t rows, int kind,
                               stream_t /*stream*/) {
  return noted("hipMemcpy2DAsync",
               fmt::format("{} {} {} {} kind {}", dst_pitch, src_pitch, width, rows, kind));
}
static status hipMemcpyPeerAsync(void* /*dst*/, int dst_device, const void* /*src*/, int src_device,
                                 std::size_t bytes, stream_t /*stream*/) {
  return noted("hipMemcpyPeerAsync",
               fmt::format("{} bytes, {} to {}", bytes, src_device, dst_device));
}
static status hipMemset(void* /*dst*/, int value, std::size_t bytes) {
  return noted("hipMemset", fmt::format("{} bytes of {}", bytes, value));
}
static status hipMemsetAsync(void* /*dst*/, int value, std::size_t bytes, stream_t /*stream*/) {
  return noted("hipMemsetAsync", fmt::format("{} bytes of {}", bytes, value));
}
static status hipStreamCreateWithFlags(stream_t* stream, unsigned flags) {
  *stream = state;
  return noted("hipStreamCreateWithFlags",
               fmt::format("flags {}, device {}", flags, state->current));
}
static status hipStreamCreateWithPriority(stream_t* stream, unsigned flags, int priority) {
  *stream = state;
  return noted("hipStreamCreateWithPriority", fmt::format("flags {}, {}", flags, priority));
}
static status hipStreamDestroy(stream_t /*stream*/) {
  return noted("hipStreamDestroy");
}
static status hipStreamSynchronize(stream_t stream) {
  return noted("hipStreamSynchronize",
               fmt::format("stream {}", reinterpret_cast<std::uintptr_t>(stream)));
}
static status hipStreamQuery(stream_t /*stream*/) {
  return noted("hipStreamQuery");
}
static status hipStreamWaitEvent(stream_t /*stream*/, event_t /*event*/, unsigned /*flags*/) {
  return noted("hipStreamWaitEvent");
}
static status hipLaunchHostFunc(stream_t /*stream*/, host_function function, void* data) {
  function(data);
  return noted("hipLaunchHostFunc");
}
static status hipStreamAddCallback(stream_t stream, stream_callback callback, void* data,
                                   unsigned /*flags*/) {
  const status answer = noted("hipStreamAddCallback");
  if (answer == code::success) {
    callback(stream, code::success, data);
  }
  return answer;
}
static status hipStreamIsCapturing(stream_t /*stream*/, int* out) {
  *out = 1;
  return noted("hipStreamIsCapturing");
}
static status hipThreadExchangeStreamCaptureMode(int* mode) {
  *mode = 1;
  return noted("hipThreadExchangeStreamCaptureMode");
}
static status hipEventCreateWithFlags(event_t* event, unsigned flags) {
  *event = state;
  return noted("hipEventCreateWithFlags",
               fmt::format("flags {:#x}, device {}", flags, state->current));
}
static status hipEventDestroy(event_t /*event*/) {
  return noted("hipEventDestroy");
}
static status hipEventRecord(event_t /*event*/, stream_t /*stream*/) {
  return noted("hipEventRecord");
}
static status hipEventQuery(event_t /*event*/) {
  return noted("hipEventQuery");
}
static status hipEventSynchronize(event_t /*event*/) {
  return noted("hipEventSynchronize");
}
static status hipEventElapsedTime(float* time, event_t /*start*/, event_t /*end*/) {
  *time = 1.5F;
  return noted("hipEventElapsedTime");
}
static status hipModuleLoadData(module_t* module, const void* image) {
  *module = state;
  return noted("hipModuleLoadData", static_cast<const char*>(image));
}
static status hipModuleGetFunction(kernel_t* kernel, module_t /*module*/, const char* name) {
  *kernel = const_cast<char*>(name);
  return noted("hipModuleGetFunction", name);
}
static status hipModuleUnload(module_t /*module*/) {
  return noted("hipModuleUnload");
}
static status hipModuleLaunchKernel(kernel_t kernel, unsigned grid_x, unsigned /*grid_y*/,
                                    unsigned /*grid_z*/, unsigned block_x, unsigned /*block_y*/,
                                    unsigned /*block_z*/, unsigned /*shared*/, stream_t /*stream*/,
                                    void** parameters, void** /*extra*/) {
  return noted("hipModuleLaunchKernel",
               fmt::format("{} {}x{} p1 {}", static_cast<const char*>(kernel), grid_x, block_x,
                           *static_cast<const std::uint64_t*>(parameters[1])));
}

static status hiprtcVersion(int* major, int* minor) {
  *major = 6;
  *minor = 3;
  return code::success;
}
static status hiprtcCreateProgram(hip::program_t* program, const char* /*source*/,
                                  const char* /*name*/, int /*header_count*/,
                                  const char** /*headers*/, const char** /*header_names*/) {
  *program = state;
  return noted("hiprtcCreateProgram");
}
static status hiprtcCompileProgram(hip::program_t /*program*/, int /*count*/,
                                   const char** /*options*/) {
  return noted("hiprtcCompileProgram", fmt::format("device {}", state->current));
}
static status hiprtcDestroyProgram(hip::program_t* program) {
  *program = nullptr;
  return noted("hiprtcDestroyProgram");
}
static status hiprtcGetProgramLogSize(hip::program_t /*program*/, std::size_t* bytes) {
  *bytes = 16;
  return code::success;
}
static status hiprtcGetProgramLog(hip::program_t /*program*/, char* log) {
  std::memcpy(log, "kernels:1: wrong", 16);
  return code::success;
}
static status hiprtcGetCodeSize(hip::program_t /*program*/, std::size_t* bytes) {
  *bytes = 5;
  return code::success;
}
static status hiprtcGetCode(hip::program_t /*program*/, char* out) {
  std::memcpy(out, "image", 5);
  return code::success;
}

}  // extern "C"

fake_hip::fake_hip() {
  state = this;
}

fake_hip::~fake_hip() {
  state = nullptr;
}

fake_library fake_hip::library() {
  fake_library made;
#define BERTH_TAKE(name, need, since, operation, result, parameters, roles) \
  made.symbols[#name] = reinterpret_cast<void*>(&name);
#define BERTH_HIP BERTH_TAKE
#define BERTH_HIPRTC BERTH_TAKE
#include "gpu_api.def"
#undef BERTH_TAKE
  return made;
}

}  // namespace berth::runtime::testing
