// SPDX-License-Identifier: Apache-2.0
// Our declarations against HIP's own headers. Compiling it is the test.
#include <cstddef>

#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "runtime/hip/abi.hpp"
#include "unit/runtime/abi_match.hpp"

namespace berth::runtime {
namespace {

using testing::call_match;

#define BERTH_CHECK_HIP(name, need, since, operation, result, parameters, roles) \
  static_assert(call_match<decltype(hip::api::name), decltype(&::name)>::value, #name);
#define BERTH_CHECK_HIPRTC(name, need, since, operation, result, parameters, roles) \
  static_assert(call_match<decltype(hip::compiler_api::name), decltype(&::name)>::value, #name);
#define BERTH_HIP BERTH_CHECK_HIP
#define BERTH_HIPRTC BERTH_CHECK_HIPRTC
#include "gpu_api.def"

using attributes = ::hipPointerAttribute_t;
static_assert(sizeof(attributes) + sizeof(hip::pointer_attributes::reserve) ==
              sizeof(hip::pointer_attributes));
#if HIP_VERSION_MAJOR < 6
static_assert(offsetof(attributes, memoryType) == offsetof(hip::pointer_attributes, type));
#else
static_assert(offsetof(attributes, type) == offsetof(hip::pointer_attributes, type));
#endif
static_assert(offsetof(attributes, device) == offsetof(hip::pointer_attributes, device));
static_assert(offsetof(attributes, devicePointer) ==
              offsetof(hip::pointer_attributes, device_pointer));
static_assert(offsetof(attributes, hostPointer) == offsetof(hip::pointer_attributes, host_pointer));
static_assert(offsetof(attributes, isManaged) == offsetof(hip::pointer_attributes, is_managed));
static_assert(offsetof(attributes, allocationFlags) ==
              offsetof(hip::pointer_attributes, allocation_flags));
static_assert(sizeof(::hipUUID) == sizeof(hip::unique_id));

namespace code = hip::code;
static_assert(code::success == hipSuccess && code::invalid_value == hipErrorInvalidValue);
static_assert(code::out_of_memory == hipErrorOutOfMemory);
static_assert(code::not_initialized == hipErrorNotInitialized);
static_assert(code::deinitialized == hipErrorDeinitialized);
static_assert(code::invalid_configuration == hipErrorInvalidConfiguration);
static_assert(code::invalid_pitch == hipErrorInvalidPitchValue);
static_assert(code::invalid_device_pointer == hipErrorInvalidDevicePointer);
static_assert(code::invalid_copy_direction == hipErrorInvalidMemcpyDirection);
static_assert(code::insufficient_driver == hipErrorInsufficientDriver);
static_assert(code::prior_launch_failure == hipErrorPriorLaunchFailure);
static_assert(code::invalid_device_function == hipErrorInvalidDeviceFunction);
static_assert(code::no_device == hipErrorNoDevice && code::invalid_device == hipErrorInvalidDevice);
static_assert(code::invalid_image == hipErrorInvalidImage);
static_assert(code::invalid_context == hipErrorInvalidContext);
static_assert(code::map_failed == hipErrorMapFailed);
static_assert(code::no_binary_for_gpu == hipErrorNoBinaryForGpu);
static_assert(code::ecc_not_correctable == hipErrorECCNotCorrectable);
static_assert(code::peer_access_unsupported == hipErrorPeerAccessUnsupported);
static_assert(code::operating_system == hipErrorOperatingSystem);
static_assert(code::invalid_handle == hipErrorInvalidHandle);
static_assert(code::not_found == hipErrorNotFound && code::not_ready == hipErrorNotReady);
static_assert(code::illegal_address == hipErrorIllegalAddress);
static_assert(code::launch_out_of_resources == hipErrorLaunchOutOfResources);
static_assert(code::launch_timeout == hipErrorLaunchTimeOut);
static_assert(code::peer_access_already_enabled == hipErrorPeerAccessAlreadyEnabled);
static_assert(code::peer_access_not_enabled == hipErrorPeerAccessNotEnabled);
static_assert(code::context_is_destroyed == hipErrorContextIsDestroyed);
static_assert(code::assertion == hipErrorAssert);
static_assert(code::host_memory_already_registered == hipErrorHostMemoryAlreadyRegistered);
static_assert(code::host_memory_not_registered == hipErrorHostMemoryNotRegistered);
static_assert(code::launch_failure == hipErrorLaunchFailure);
static_assert(code::not_supported == hipErrorNotSupported);
static_assert(code::capture_unsupported == hipErrorStreamCaptureUnsupported);
static_assert(code::capture_wrong_thread == hipErrorStreamCaptureWrongThread);
static_assert(code::unknown == hipErrorUnknown);

namespace attribute = hip::attribute;
static_assert(attribute::copy_engines == hipDeviceAttributeAsyncEngineCount);
static_assert(attribute::can_map_host_memory == hipDeviceAttributeCanMapHostMemory);
static_assert(attribute::concurrent_managed_access == hipDeviceAttributeConcurrentManagedAccess);
static_assert(attribute::direct_managed_access_from_host ==
              hipDeviceAttributeDirectManagedMemAccessFromHost);
static_assert(attribute::host_native_atomics == hipDeviceAttributeHostNativeAtomicSupported);
static_assert(attribute::integrated == hipDeviceAttributeIntegrated);
static_assert(attribute::l2_bytes == hipDeviceAttributeL2CacheSize);
static_assert(attribute::managed_memory == hipDeviceAttributeManagedMemory);
static_assert(attribute::memory_bus_width == hipDeviceAttributeMemoryBusWidth);
static_assert(attribute::memory_clock_rate == hipDeviceAttributeMemoryClockRate);
static_assert(attribute::compute_units == hipDeviceAttributeMultiprocessorCount);
static_assert(attribute::pageable_access == hipDeviceAttributePageableMemoryAccess);
static_assert(attribute::pageable_uses_host_page_tables ==
              hipDeviceAttributePageableMemoryAccessUsesHostPageTables);
static_assert(attribute::unified_addressing == hipDeviceAttributeUnifiedAddressing);
static_assert(attribute::wave_size == hipDeviceAttributeWarpSize);
static_assert(attribute::large_bar == hipDeviceAttributeIsLargeBar);
static_assert(attribute::fine_grained_memory == hipDeviceAttributeFineGrainSupport);

namespace flag = hip::flag;
static_assert(flag::host_portable == hipHostMallocPortable);
static_assert(flag::host_mapped == hipHostMallocMapped);
static_assert(flag::host_write_combined == hipHostMallocWriteCombined);
static_assert(flag::host_numa_user == hipHostMallocNumaUser);
static_assert(flag::host_coherent == hipHostMallocCoherent);
static_assert(flag::host_non_coherent == hipHostMallocNonCoherent);
static_assert(flag::device_fine_grained == hipDeviceMallocFinegrained);
static_assert(flag::managed_global == hipMemAttachGlobal);
static_assert(flag::register_portable == hipHostRegisterPortable);
static_assert(flag::register_mapped == hipHostRegisterMapped);
static_assert(flag::stream_non_blocking == hipStreamNonBlocking);
static_assert(flag::event_blocking == hipEventBlockingSync);
static_assert(flag::event_no_timing == hipEventDisableTiming);
static_assert(flag::event_release_to_system == hipEventReleaseToSystem);
static_assert(hip::copy_default == hipMemcpyDefault && hip::cpu_device == hipCpuDeviceId);

TEST(hip_abi, per_thread_stream_is_the_runtimes) {
  EXPECT_EQ(per_thread_stream.bits, reinterpret_cast<std::uintptr_t>(hipStreamPerThread));
}

}  // namespace
}  // namespace berth::runtime
