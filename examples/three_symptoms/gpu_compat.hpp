// SPDX-License-Identifier: Apache-2.0
// One name for what HIP and CUDA call alike, so that one source makes both programs.
//
//   hipcc three_symptoms.cpp                          HIP, for an AMD GPU
//   g++ -D__HIP_PLATFORM_AMD__ ... -lamdhip64         HIP without its compiler: kernels are
//   compiled
//                                                     when the program runs
//   nvcc -x cu three_symptoms.cpp                     CUDA
//   g++ -DGPU_CUDA ... -lcudart                       CUDA without its compiler: fills stand in for
//                                                     kernels
#pragma once

#include <cstdio>
#include <cstdlib>

#if defined(__CUDACC__) && !defined(__HIP__)
#define GPU_CUDA
#endif
#if defined(__CUDACC__) || defined(__HIPCC__)
#define GPU_COMPILER
#endif

#ifdef GPU_CUDA
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#define gpuHostMalloc(at, bytes) cudaMallocHost(at, bytes)
#define gpuHostFree cudaFreeHost
#else
#ifdef GPU_COMPILER
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#endif
#define GPU(name) hip##name
#define gpuHostMalloc(at, bytes) hipHostMalloc(at, bytes, hipHostMallocDefault)
#define gpuHostFree hipHostFree
#endif

#define gpuError_t GPU(Error_t)
#define gpuSuccess GPU(Success)
#define gpuGetErrorString GPU(GetErrorString)
#define gpuGetDeviceCount GPU(GetDeviceCount)
#define gpuDeviceSynchronize GPU(DeviceSynchronize)
#define gpuMalloc GPU(Malloc)
#define gpuFree GPU(Free)
#define gpuMallocManaged GPU(MallocManaged)
#define gpuMemAttachGlobal GPU(MemAttachGlobal)
#define gpuMemcpy GPU(Memcpy)
#define gpuMemcpyAsync GPU(MemcpyAsync)
#define gpuMemcpyHostToDevice GPU(MemcpyHostToDevice)
#define gpuMemcpyDeviceToHost GPU(MemcpyDeviceToHost)
#define gpuMemsetAsync GPU(MemsetAsync)
#define gpuStream_t GPU(Stream_t)

namespace gpu {

inline void check(gpuError_t answered, const char* call, int line) {
  if (answered != gpuSuccess) {
    std::fprintf(stderr, "line %d: %s: %s\n", line, call, gpuGetErrorString(answered));
    std::exit(1);
  }
}

}  // namespace gpu

#define GPU_CHECK(call) gpu::check((call), #call, __LINE__)

// GPU_KERNEL(name, definition) gives gpu::launch_NAME(data, count, factor, stream): by the GPU's
// compiler, by the runtime's (at the first launch), or, as a stand-in, a fill of the same memory.
#if defined(GPU_COMPILER)

#define GPU_KERNEL(name, ...)                                                           \
  __VA_ARGS__                                                                           \
  namespace gpu {                                                                       \
  inline void launch_##name(float* data, unsigned count, float factor, gpuStream_t s) { \
    name<<<(count + 255) / 256, 256, 0, s>>>(data, count, factor);                      \
    GPU_CHECK(GPU(GetLastError)());                                                     \
  }                                                                                     \
  }

#elif defined(GPU_CUDA)

#define GPU_KERNEL(name, ...)                                                         \
  namespace gpu {                                                                     \
  inline void launch_##name(float* data, unsigned count, float, gpuStream_t stream) { \
    GPU_CHECK(gpuMemsetAsync(data, 0, count * sizeof(float), stream));                \
  }                                                                                   \
  }

#else

namespace gpu {

// A kernel of this source text, for the first device. Compiled when it is made.
class runtime_kernel {
public:
  runtime_kernel(const char* text, const char* name) {
    hiprtcProgram program = nullptr;
    std::size_t bytes = 0;
    if (hiprtcCreateProgram(&program, text, name, 0, nullptr, nullptr) != HIPRTC_SUCCESS ||
        hiprtcCompileProgram(program, 0, nullptr) != HIPRTC_SUCCESS ||
        hiprtcGetCodeSize(program, &bytes) != HIPRTC_SUCCESS) {
      std::fprintf(stderr, "the kernel %s does not compile\n", name);
      std::exit(1);
    }
    // It stays as long as the module: until the process ends.
    auto* const code = static_cast<char*>(std::malloc(bytes));
    hiprtcGetCode(program, code);
    hiprtcDestroyProgram(&program);
    GPU_CHECK(hipModuleLoadData(&module_, code));
    GPU_CHECK(hipModuleGetFunction(&function_, module_, name));
  }
  void launch(float* data, unsigned count, float factor, hipStream_t stream) const {
    void* arguments[] = {&data, &count, &factor};
    GPU_CHECK(hipModuleLaunchKernel(function_, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream,
                                    arguments, nullptr));
  }

private:
  hipModule_t module_ = nullptr;
  hipFunction_t function_ = nullptr;
};

}  // namespace gpu

#define GPU_KERNEL(name, ...)                                                                \
  namespace gpu {                                                                            \
  inline void launch_##name(float* data, unsigned count, float factor, gpuStream_t stream) { \
    static const runtime_kernel kernel(#__VA_ARGS__, #name);                                 \
    kernel.launch(data, count, factor, stream);                                              \
  }                                                                                          \
  }

#endif
