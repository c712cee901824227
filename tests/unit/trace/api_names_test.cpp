// SPDX-License-Identifier: Apache-2.0
#include "trace/import/api_names.hpp"

#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using berth::direction;
using berth::memory_kind;
using berth::trace::direction_of_kind;
using berth::trace::event_kind;
using berth::trace::gpu_api;
using berth::trace::meaning_of_call;
using berth::trace::meaning_of_copy;
using berth::trace::runtime_kernel;

struct call_case {
  std::string_view name;
  event_kind kind;
  gpu_api api;
  memory_kind memory = memory_kind::unknown;
};

// Every call that moves, holds or waits for memory, as CUDA's runtime, CUDA's driver and HIP spell
// it, and some that must not be taken for one.
constexpr call_case calls[] = {
    {"cudaMemcpy", event_kind::copy_call, gpu_api::cuda},
    {"cudaMemcpyAsync", event_kind::copy_call, gpu_api::cuda},
    {"cudaMemcpy2DAsync", event_kind::copy_call, gpu_api::cuda},
    {"cudaMemcpyPeerAsync", event_kind::copy_call, gpu_api::cuda},
    {"cudaMemcpyToSymbol", event_kind::copy_call, gpu_api::cuda},
    {"cudaMemsetAsync", event_kind::copy_call, gpu_api::cuda},
    {"cuMemcpyHtoDAsync_v2", event_kind::copy_call, gpu_api::cuda},
    {"cuMemcpyDtoH_v2", event_kind::copy_call, gpu_api::cuda},
    {"cuMemsetD8Async", event_kind::copy_call, gpu_api::cuda},
    {"hipMemcpy", event_kind::copy_call, gpu_api::hip},
    {"hipMemcpyAsync", event_kind::copy_call, gpu_api::hip},
    {"hipMemcpyWithStream", event_kind::copy_call, gpu_api::hip},
    {"hipMemcpyDtoHAsync", event_kind::copy_call, gpu_api::hip},
    {"hipMemset", event_kind::copy_call, gpu_api::hip},
    {"hipMemsetAsync", event_kind::copy_call, gpu_api::hip},

    {"cudaDeviceSynchronize", event_kind::synchronisation, gpu_api::cuda},
    {"cudaStreamSynchronize", event_kind::synchronisation, gpu_api::cuda},
    {"cudaEventSynchronize", event_kind::synchronisation, gpu_api::cuda},
    {"cuCtxSynchronize", event_kind::synchronisation, gpu_api::cuda},
    {"hipDeviceSynchronize", event_kind::synchronisation, gpu_api::hip},
    {"hipStreamSynchronize", event_kind::synchronisation, gpu_api::hip},
    {"hipEventSynchronize", event_kind::synchronisation, gpu_api::hip},
    // The stream waits, not the thread.
    {"cudaStreamWaitEvent", event_kind::other_call, gpu_api::cuda},
    {"hipStreamWaitEvent", event_kind::other_call, gpu_api::hip},

    {"cudaLaunchKernel", event_kind::launch_call, gpu_api::cuda},
    {"cudaLaunchKernelExC", event_kind::launch_call, gpu_api::cuda},
    {"cudaGraphLaunch", event_kind::launch_call, gpu_api::cuda},
    {"cuLaunchKernel", event_kind::launch_call, gpu_api::cuda},
    {"cuLaunchKernelEx", event_kind::launch_call, gpu_api::cuda},
    {"hipLaunchKernel", event_kind::launch_call, gpu_api::hip},
    {"hipModuleLaunchKernel", event_kind::launch_call, gpu_api::hip},
    {"hipExtModuleLaunchKernel", event_kind::launch_call, gpu_api::hip},
    {"hipGraphLaunch", event_kind::launch_call, gpu_api::hip},

    {"cudaMalloc", event_kind::allocation, gpu_api::cuda, memory_kind::device},
    {"cudaMallocAsync", event_kind::allocation, gpu_api::cuda, memory_kind::device},
    {"cudaMallocPitch", event_kind::allocation, gpu_api::cuda, memory_kind::device},
    {"cudaMallocManaged", event_kind::allocation, gpu_api::cuda, memory_kind::managed},
    {"cudaMallocHost", event_kind::allocation, gpu_api::cuda, memory_kind::pinned},
    {"cudaHostAlloc", event_kind::allocation, gpu_api::cuda, memory_kind::pinned},
    {"cuMemAlloc_v2", event_kind::allocation, gpu_api::cuda, memory_kind::device},
    {"cuMemAllocManaged", event_kind::allocation, gpu_api::cuda, memory_kind::managed},
    {"cuMemAllocHost_v2", event_kind::allocation, gpu_api::cuda, memory_kind::pinned},
    {"cuMemHostAlloc", event_kind::allocation, gpu_api::cuda, memory_kind::pinned},
    {"hipMalloc", event_kind::allocation, gpu_api::hip, memory_kind::device},
    {"hipExtMallocWithFlags", event_kind::allocation, gpu_api::hip, memory_kind::device},
    {"hipMallocManaged", event_kind::allocation, gpu_api::hip, memory_kind::managed},
    {"hipHostMalloc", event_kind::allocation, gpu_api::hip, memory_kind::pinned},
    {"hipMallocHost", event_kind::allocation, gpu_api::hip, memory_kind::pinned},
    {"hipMemAllocHost", event_kind::allocation, gpu_api::hip, memory_kind::pinned},
    {"hipHostAlloc", event_kind::allocation, gpu_api::hip, memory_kind::pinned},

    {"cudaFree", event_kind::free, gpu_api::cuda},
    {"cudaFreeAsync", event_kind::free, gpu_api::cuda},
    {"cudaFreeHost", event_kind::free, gpu_api::cuda, memory_kind::pinned},
    {"cuMemFree_v2", event_kind::free, gpu_api::cuda},
    {"cuMemFreeHost", event_kind::free, gpu_api::cuda, memory_kind::pinned},
    {"hipFree", event_kind::free, gpu_api::hip},
    {"hipHostFree", event_kind::free, gpu_api::hip, memory_kind::pinned},
    {"hipFreeHost", event_kind::free, gpu_api::hip, memory_kind::pinned},

    {"cudaHostRegister", event_kind::other_call, gpu_api::cuda},
    {"hipHostUnregister", event_kind::other_call, gpu_api::hip},
    {"cudaEventRecord", event_kind::other_call, gpu_api::cuda},
    {"cudaMemGetInfo", event_kind::other_call, gpu_api::cuda},
    {"cuMemPrefetchAsync", event_kind::other_call, gpu_api::cuda},
    {"hipGetDevicePropertiesR0600", event_kind::other_call, gpu_api::hip},
    {"cuda", event_kind::other_call, gpu_api::cuda},
    {"", event_kind::other_call, gpu_api::unknown},
    {"Memcpy", event_kind::other_call, gpu_api::unknown},
    {"__cudaPushCallConfiguration", event_kind::other_call, gpu_api::unknown},
    {"malloc", event_kind::other_call, gpu_api::unknown},
};

TEST(meaning_of_call, knows_the_calls_of_cuda_and_hip) {
  for (const auto& expected : calls) {
    const auto meaning = meaning_of_call(expected.name);
    EXPECT_EQ(meaning.kind, expected.kind) << expected.name;
    EXPECT_EQ(meaning.api, expected.api) << expected.name;
    EXPECT_EQ(meaning.memory, expected.memory) << expected.name;
  }
}

struct copy_case {
  std::string_view name;
  direction way;
  memory_kind source = memory_kind::unknown;
  memory_kind destination = memory_kind::unknown;
};

constexpr copy_case copies[] = {
    {"Memcpy HtoD (Pageable -> Device)", direction::host_to_device, memory_kind::pageable,
     memory_kind::device},
    {"Memcpy HtoD (Pinned -> Device)", direction::host_to_device, memory_kind::pinned,
     memory_kind::device},
    {"Memcpy DtoH (Device -> Pageable)", direction::device_to_host, memory_kind::device,
     memory_kind::pageable},
    {"Memcpy DtoH (Device -> Pinned)", direction::device_to_host, memory_kind::device,
     memory_kind::pinned},
    {"Memcpy DtoD (Device -> Device)", direction::device_to_device, memory_kind::device,
     memory_kind::device},
    {"Memcpy PtoP (Device -> Device)", direction::peer_to_peer, memory_kind::device,
     memory_kind::device},
    {"Memcpy HtoH (Pageable -> Pinned)", direction::host_to_host, memory_kind::pageable,
     memory_kind::pinned},
    {"Memcpy DtoA (Device -> Array)", direction::device_to_device, memory_kind::device,
     memory_kind::device},
    {"Memcpy HtoD (Managed -> Device)", direction::host_to_device, memory_kind::managed,
     memory_kind::device},
    {"Memcpy HtoD (Unified -> Device)", direction::host_to_device, memory_kind::managed,
     memory_kind::device},
    // ROCm builds do not say what the host's memory is.
    {"Memcpy HtoD (Host -> Device)", direction::host_to_device, memory_kind::unknown,
     memory_kind::device},
    {"Memcpy DtoH (Device -> Host)", direction::device_to_host, memory_kind::device,
     memory_kind::unknown},
    {"Memcpy HtoD (Unknown -> Unknown)", direction::host_to_device},
    {"Memcpy HtoD", direction::host_to_device},
    {"CopyHostToDevice", direction::host_to_device},
    {"CopyDeviceToHost", direction::device_to_host},
    {"CopyDeviceToDevice", direction::device_to_device},
    {"MEMORY_COPY_HOST_TO_DEVICE", direction::host_to_device},
    {"MEMORY_COPY_DEVICE_TO_HOST", direction::device_to_host},
    {"MEMORY_COPY_DEVICE_TO_DEVICE", direction::device_to_device},
    {"[CUDA memcpy Host-to-Device]", direction::host_to_device},
    {"[CUDA memcpy Device-to-Host]", direction::device_to_host},
    // Damaged brackets say nothing of kinds.
    {"Memcpy HtoD ) -> (", direction::host_to_device},
    {"Memcpy HtoD (Pageable", direction::host_to_device},
    {"Memcpy HtoD (Pageable -> ", direction::host_to_device},
    {"Memcpy HtoD (-> Device)", direction::host_to_device},
};

TEST(meaning_of_copy, knows_old_and_new_spellings) {
  for (const auto& expected : copies) {
    const auto meaning = meaning_of_copy(expected.name);
    ASSERT_TRUE(meaning.has_value()) << expected.name;
    EXPECT_EQ(meaning->direction, expected.way) << expected.name;
    EXPECT_EQ(meaning->source, expected.source) << expected.name;
    EXPECT_EQ(meaning->destination, expected.destination) << expected.name;
  }
}

TEST(meaning_of_copy, is_nothing_where_no_direction_is_named) {
  for (const auto* name : {"", "Memcpy", "Memset (Device)", "Memcpy (Pageable -> Device)"}) {
    EXPECT_EQ(meaning_of_copy(name), std::nullopt) << name;
  }
}

TEST(direction_of_kind, follows_the_runtimes_numbers) {
  EXPECT_EQ(direction_of_kind(0), direction::host_to_host);
  EXPECT_EQ(direction_of_kind(1), direction::host_to_device);
  EXPECT_EQ(direction_of_kind(2), direction::device_to_host);
  EXPECT_EQ(direction_of_kind(3), direction::device_to_device);
  // 4 is "default": the runtime finds out.
  EXPECT_EQ(direction_of_kind(4), direction::unknown);
  EXPECT_EQ(direction_of_kind(~0ULL), direction::unknown);
}

TEST(runtime_kernel, knows_amds_own_copies_and_fills) {
  for (const auto* name : {"__amd_rocclr_copyBuffer", "__amd_rocclr_copyBufferAligned",
                           "__amd_rocclr_copyBufferRect", "__amd_rocclr_copyBuffer.kd"}) {
    EXPECT_EQ(runtime_kernel(name), event_kind::copy) << name;
  }
  for (const auto* name : {"__amd_rocclr_fillBuffer", "__amd_rocclr_fillBufferAligned",
                           "__amd_rocclr_fillBufferAligned2D"}) {
    EXPECT_EQ(runtime_kernel(name), event_kind::fill) << name;
  }
  for (const auto* name : {"", "copyBuffer", "my_copy_kernel", "__amd_rocclr_initHeap",
                           "void fill<float>(float*)", "x__amd_rocclr_copyBuffer"}) {
    EXPECT_EQ(runtime_kernel(name), std::nullopt) << name;
  }
}

}  // namespace
