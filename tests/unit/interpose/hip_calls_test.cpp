// SPDX-License-Identifier: Apache-2.0
// The recorder's declarations against HIP's own headers. Compiling it is the test. Those of
// spec/gpu_api.def are compared by tests/unit/runtime.
#include <cstddef>

#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include "interpose/capture/abi.hpp"
#include "unit/runtime/abi_match.hpp"

namespace berth::interpose {
namespace {

using runtime::testing::call_match;

namespace ours {
using namespace berth::interpose::abi;  // NOLINT
using namespace berth::runtime::hip;    // NOLINT
using berth::runtime::cuda::location_t;
#define BERTH_SEEN_HIP(name, since, operation, parameters, words) \
  using name##_form = status(*) parameters;
#include "seen_calls.def"
}  // namespace ours

// Without the calls that these headers overload, or declare elsewhere or not at all.
#define BERTH_LEFT_OUT_hipExtModuleLaunchKernel ~, 1
#define BERTH_LEFT_OUT_hipHccModuleLaunchKernel ~, 1
#define BERTH_LEFT_OUT_hipMemcpy3DAsync_spt ~, 1
#define BERTH_LEFT_OUT_hipMemcpyFromSymbolAsync_spt ~, 1
#define BERTH_LEFT_OUT_hipMemcpyToSymbolAsync_spt ~, 1
#define BERTH_LEFT_OUT_hipMemset2DAsync_spt ~, 1
#define BERTH_LEFT_OUT_hipMemset3DAsync_spt ~, 1
#define BERTH_LEFT_OUT_hipMemsetAsync_spt ~, 1
#define BERTH_LEFT_OUT_hipMallocAsync ~, 1
#define BERTH_LEFT_OUT_hipMallocFromPoolAsync ~, 1
#define BERTH_LEFT_OUT_hipMemcpyToSymbol ~, 1
#define BERTH_LEFT_OUT_hipMemcpyToSymbolAsync ~, 1
#define BERTH_LEFT_OUT_hipMemcpyFromSymbol ~, 1
#define BERTH_LEFT_OUT_hipMemcpyFromSymbolAsync ~, 1
#define BERTH_LEFT_OUT_hipLaunchCooperativeKernel ~, 1
#define BERTH_SECOND(first, second, ...) second
#define BERTH_SECOND_OF(...) BERTH_SECOND(__VA_ARGS__)
#define BERTH_IS_LEFT_OUT(name) BERTH_SECOND_OF(BERTH_LEFT_OUT_##name, 0, ~)
#define BERTH_COMPARE_IF_0(name) \
  static_assert(call_match<ours::name##_form, decltype(&::name)>::value, #name);
#define BERTH_COMPARE_IF_1(name)
#define BERTH_JOINED(a, b) a##b
#define BERTH_JOIN(a, b) BERTH_JOINED(a, b)
#define BERTH_COMPARE(name) BERTH_JOIN(BERTH_COMPARE_IF_, BERTH_IS_LEFT_OUT(name))(name)
// By the first version that has the call; what the tests' machines have is compared.
#define BERTH_COMPARE_0(name) BERTH_COMPARE(name)
#define BERTH_COMPARE_502(name) BERTH_COMPARE(name)
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 503
#define BERTH_COMPARE_503(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_503(name)
#endif
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 505
#define BERTH_COMPARE_505(name) BERTH_COMPARE(name)
#else
#define BERTH_COMPARE_505(name)
#endif
#define BERTH_COMPARE_600(name)
#define BERTH_COMPARE_601(name)
#define BERTH_COMPARE_701(name)
#undef BERTH_SEEN_HIP
#define BERTH_SEEN_HIP(name, since, operation, parameters, words) BERTH_COMPARE_##since(name)
#include "seen_calls.def"

static_assert(sizeof(::dim3) == sizeof(abi::dim3_t));
static_assert(sizeof(::hipIpcMemHandle_t) == sizeof(abi::ipc_handle_t));
static_assert(sizeof(::hipExtent) == sizeof(abi::extent_t));
static_assert(offsetof(::hipExtent, height) == offsetof(abi::extent_t, height));
static_assert(offsetof(::hipExtent, depth) == offsetof(abi::extent_t, depth));
static_assert(sizeof(::hipPitchedPtr) == sizeof(abi::pitched_t));
static_assert(offsetof(::hipPitchedPtr, ptr) == offsetof(abi::pitched_t, address));
static_assert(offsetof(::hipPitchedPtr, pitch) == offsetof(abi::pitched_t, pitch));

using rows = ::hip_Memcpy2D;
static_assert(sizeof(rows) == sizeof(abi::hip_copy_2d_t));
static_assert(offsetof(rows, srcHost) == offsetof(abi::hip_copy_2d_t, src_host));
static_assert(offsetof(rows, srcDevice) == offsetof(abi::hip_copy_2d_t, src_device));
static_assert(offsetof(rows, srcArray) == offsetof(abi::hip_copy_2d_t, src_array));
static_assert(offsetof(rows, dstHost) == offsetof(abi::hip_copy_2d_t, dst_host));
static_assert(offsetof(rows, dstDevice) == offsetof(abi::hip_copy_2d_t, dst_device));
static_assert(offsetof(rows, dstArray) == offsetof(abi::hip_copy_2d_t, dst_array));
static_assert(offsetof(rows, WidthInBytes) == offsetof(abi::hip_copy_2d_t, width));
static_assert(offsetof(rows, Height) == offsetof(abi::hip_copy_2d_t, rows));

using volume = ::hipMemcpy3DParms;
static_assert(sizeof(volume) == sizeof(abi::hip_copy_3d_t));
static_assert(offsetof(volume, srcArray) == offsetof(abi::hip_copy_3d_t, src_array));
static_assert(offsetof(volume, srcPtr) == offsetof(abi::hip_copy_3d_t, src));
static_assert(offsetof(volume, dstArray) == offsetof(abi::hip_copy_3d_t, dst_array));
static_assert(offsetof(volume, dstPtr) == offsetof(abi::hip_copy_3d_t, dst));
static_assert(offsetof(volume, extent) == offsetof(abi::hip_copy_3d_t, extent));
static_assert(offsetof(volume, kind) == offsetof(abi::hip_copy_3d_t, kind));

TEST(RecordedHipCalls, AreDeclaredAsHipDeclaresThem) {
  SUCCEED() << "it has compiled";
}

}  // namespace
}  // namespace berth::interpose
