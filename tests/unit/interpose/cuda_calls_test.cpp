// SPDX-License-Identifier: Apache-2.0
// The recorder's declarations against cuda.h. Compiling it is the test. Those of spec/gpu_api.def
// are compared by tests/unit/runtime.
#include <cstddef>

#include <gtest/gtest.h>

// With it, cuda.h declares each entry point under its own, suffixed name.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "interpose/capture/abi.hpp"
#include "unit/runtime/abi_match.hpp"

namespace berth::interpose {
namespace {

using runtime::testing::call_match;

namespace ours {
using namespace berth::interpose::abi;  // NOLINT
using namespace berth::runtime::cuda;   // NOLINT
#define BERTH_SEEN_CUDA(name, since, operation, parameters, words) \
  using name##_form = status(*) parameters;
#include "seen_calls.def"
}  // namespace ours

#define BERTH_COMPARE(name) \
  static_assert(call_match<ours::name##_form, decltype(&::name)>::value, #name);
#define BERTH_COMPARE_0(name) BERTH_COMPARE(name)
#if CUDA_VERSION >= 11010
#define BERTH_COMPARE_1101(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1101(name)
#endif
#if CUDA_VERSION >= 11020
#define BERTH_COMPARE_1102(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1102(name)
#endif
#if CUDA_VERSION >= 11030
#define BERTH_COMPARE_1103(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1103(name)
#endif
#if CUDA_VERSION >= 11060
#define BERTH_COMPARE_1106(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1106(name)
#endif
#if CUDA_VERSION >= 12000
#define BERTH_COMPARE_1200(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1200(name)
#endif
#if CUDA_VERSION >= 12020
#define BERTH_COMPARE_1202(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1202(name)
#endif
#if CUDA_VERSION >= 12030
#define BERTH_COMPARE_1203(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1203(name)
#endif
#if CUDA_VERSION >= 12080
#define BERTH_COMPARE_1208(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1208(name)
#endif
#if CUDA_VERSION >= 13000
#define BERTH_COMPARE_1300(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_1300(name)
#endif
#undef BERTH_SEEN_CUDA
#define BERTH_SEEN_CUDA(name, since, operation, parameters, words) BERTH_COMPARE_##since(name)
#include "seen_calls.def"

static_assert(sizeof(::CUipcMemHandle) == sizeof(abi::ipc_handle_t));

using volume = ::CUDA_MEMCPY3D_v2;
static_assert(sizeof(volume) == sizeof(abi::cuda_copy_3d_t));
static_assert(offsetof(volume, srcMemoryType) == offsetof(abi::cuda_copy_3d_t, src_type));
static_assert(offsetof(volume, srcHost) == offsetof(abi::cuda_copy_3d_t, src_host));
static_assert(offsetof(volume, srcDevice) == offsetof(abi::cuda_copy_3d_t, src_device));
static_assert(offsetof(volume, dstMemoryType) == offsetof(abi::cuda_copy_3d_t, dst_type));
static_assert(offsetof(volume, dstHost) == offsetof(abi::cuda_copy_3d_t, dst_host));
static_assert(offsetof(volume, dstDevice) == offsetof(abi::cuda_copy_3d_t, dst_device));
static_assert(offsetof(volume, WidthInBytes) == offsetof(abi::cuda_copy_3d_t, width));
static_assert(offsetof(volume, Height) == offsetof(abi::cuda_copy_3d_t, rows));
static_assert(offsetof(volume, Depth) == offsetof(abi::cuda_copy_3d_t, depth));

using peers = ::CUDA_MEMCPY3D_PEER;
static_assert(sizeof(peers) == sizeof(abi::cuda_copy_3d_peer_t));
static_assert(offsetof(peers, srcDevice) == offsetof(abi::cuda_copy_3d_t, src_device));
static_assert(offsetof(peers, dstMemoryType) == offsetof(abi::cuda_copy_3d_t, dst_type));
static_assert(offsetof(peers, dstDevice) == offsetof(abi::cuda_copy_3d_t, dst_device));
static_assert(offsetof(peers, WidthInBytes) == offsetof(abi::cuda_copy_3d_t, width));
static_assert(offsetof(peers, Depth) == offsetof(abi::cuda_copy_3d_t, depth));

using launch = ::CUlaunchConfig;
static_assert(sizeof(launch) == sizeof(abi::cuda_launch_t));
static_assert(offsetof(launch, hStream) == offsetof(abi::cuda_launch_t, stream));

TEST(RecordedCudaCalls, AreDeclaredAsCudaDeclaresThem) {
  SUCCEED() << "it has compiled";
}

}  // namespace
}  // namespace berth::interpose
