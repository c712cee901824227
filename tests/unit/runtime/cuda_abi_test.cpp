// SPDX-License-Identifier: Apache-2.0
// Our declarations against cuda.h. Compiling it is the test.
#include <cstddef>

#include <gtest/gtest.h>

// With it, cuda.h declares each entry point under its own, suffixed name.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "runtime/cuda/abi.hpp"
#include "unit/runtime/abi_match.hpp"

namespace berth::runtime {
namespace {

using testing::call_match;

#define BERTH_CHECK(name, need, since, operation, result, parameters, roles) \
  static_assert(call_match<decltype(cuda::api::name), decltype(&::name)>::value, #name);
#define BERTH_CUDA BERTH_CHECK
#include "gpu_api.def"

using rows = ::CUDA_MEMCPY2D_v2;
static_assert(sizeof(rows) == sizeof(cuda::copy_2d_t));
static_assert(offsetof(rows, srcMemoryType) == offsetof(cuda::copy_2d_t, src_type));
static_assert(offsetof(rows, srcHost) == offsetof(cuda::copy_2d_t, src_host));
static_assert(offsetof(rows, srcDevice) == offsetof(cuda::copy_2d_t, src_device));
static_assert(offsetof(rows, srcPitch) == offsetof(cuda::copy_2d_t, src_pitch));
static_assert(offsetof(rows, dstXInBytes) == offsetof(cuda::copy_2d_t, dst_x));
static_assert(offsetof(rows, dstMemoryType) == offsetof(cuda::copy_2d_t, dst_type));
static_assert(offsetof(rows, dstDevice) == offsetof(cuda::copy_2d_t, dst_device));
static_assert(offsetof(rows, dstPitch) == offsetof(cuda::copy_2d_t, dst_pitch));
static_assert(offsetof(rows, WidthInBytes) == offsetof(cuda::copy_2d_t, width));
static_assert(offsetof(rows, Height) == offsetof(cuda::copy_2d_t, rows));
static_assert(sizeof(::CUmemLocation) == sizeof(cuda::location_t));
static_assert(sizeof(::CUuuid) == sizeof(cuda::unique_id));

namespace code = cuda::code;
static_assert(code::success == CUDA_SUCCESS && code::invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(code::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(code::not_initialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(code::deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(code::stub_library == CUDA_ERROR_STUB_LIBRARY);
static_assert(code::device_unavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(code::no_device == CUDA_ERROR_NO_DEVICE);
static_assert(code::invalid_device == CUDA_ERROR_INVALID_DEVICE);
static_assert(code::invalid_image == CUDA_ERROR_INVALID_IMAGE);
static_assert(code::invalid_context == CUDA_ERROR_INVALID_CONTEXT);
static_assert(code::map_failed == CUDA_ERROR_MAP_FAILED);
static_assert(code::no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(code::ecc_uncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(code::peer_access_unsupported == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
static_assert(code::invalid_ptx == CUDA_ERROR_INVALID_PTX);
static_assert(code::nvlink_uncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE);
static_assert(code::jit_compiler_not_found == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(code::unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(code::jit_compilation_disabled == CUDA_ERROR_JIT_COMPILATION_DISABLED);
static_assert(code::contained == CUDA_ERROR_CONTAINED);
static_assert(code::operating_system == CUDA_ERROR_OPERATING_SYSTEM);
static_assert(code::invalid_handle == CUDA_ERROR_INVALID_HANDLE);
static_assert(code::not_found == CUDA_ERROR_NOT_FOUND && code::not_ready == CUDA_ERROR_NOT_READY);
static_assert(code::illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(code::launch_out_of_resources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(code::launch_timeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(code::peer_access_already_enabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(code::peer_access_not_enabled == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
static_assert(code::context_is_destroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(code::assertion == CUDA_ERROR_ASSERT);
static_assert(code::too_many_peers == CUDA_ERROR_TOO_MANY_PEERS);
static_assert(code::host_memory_already_registered == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
static_assert(code::host_memory_not_registered == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
static_assert(code::hardware_stack_error == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(code::launch_failed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(code::not_permitted == CUDA_ERROR_NOT_PERMITTED);
static_assert(code::not_supported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(code::system_not_ready == CUDA_ERROR_SYSTEM_NOT_READY);
static_assert(code::system_driver_mismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(code::compat_not_supported == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
static_assert(code::capture_unsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(code::capture_wrong_thread == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
static_assert(code::unknown == CUDA_ERROR_UNKNOWN);

namespace attribute = cuda::attribute;
static_assert(attribute::wave_size == CU_DEVICE_ATTRIBUTE_WARP_SIZE);
static_assert(attribute::compute_units == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(attribute::integrated == CU_DEVICE_ATTRIBUTE_INTEGRATED);
static_assert(attribute::can_map_host_memory == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
static_assert(attribute::memory_clock_rate == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
static_assert(attribute::memory_bus_width == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
static_assert(attribute::l2_bytes == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(attribute::copy_engines == CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
static_assert(attribute::unified_addressing == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
static_assert(attribute::capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(attribute::capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(attribute::managed_memory == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
static_assert(attribute::host_native_atomics == CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
static_assert(attribute::pageable_access == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
static_assert(attribute::concurrent_managed_access ==
              CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
static_assert(attribute::host_register_supported == CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
static_assert(attribute::pageable_uses_host_page_tables ==
              CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
static_assert(attribute::direct_managed_access_from_host ==
              CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
static_assert(attribute::host_numa_node == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);

static_assert(cuda::pointer_attribute::memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(cuda::pointer_attribute::device_address == CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
static_assert(cuda::pointer_attribute::host_address == CU_POINTER_ATTRIBUTE_HOST_POINTER);
static_assert(cuda::pointer_attribute::is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(cuda::pointer_attribute::device == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(cuda::pointer_attribute::range_start == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(cuda::pointer_attribute::range_bytes == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(cuda::memory_type::host == CU_MEMORYTYPE_HOST);
static_assert(cuda::memory_type::device == CU_MEMORYTYPE_DEVICE);
static_assert(cuda::memory_type::array == CU_MEMORYTYPE_ARRAY);
static_assert(cuda::memory_type::unified == CU_MEMORYTYPE_UNIFIED);

static_assert(cuda::flag::host_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(cuda::flag::host_mapped == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(cuda::flag::host_write_combined == CU_MEMHOSTALLOC_WRITECOMBINED);
static_assert(cuda::flag::managed_global == CU_MEM_ATTACH_GLOBAL);
static_assert(cuda::flag::register_portable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(cuda::flag::register_mapped == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(cuda::flag::register_read_only == CU_MEMHOSTREGISTER_READ_ONLY);
static_assert(cuda::flag::stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(cuda::flag::event_blocking == CU_EVENT_BLOCKING_SYNC);
static_assert(cuda::flag::event_no_timing == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::jit_option::error_log == CU_JIT_ERROR_LOG_BUFFER);
static_assert(cuda::jit_option::error_log_bytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(cuda::cpu_device == CU_DEVICE_CPU);
static_assert(cuda::location_device == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(cuda::location_host == CU_MEM_LOCATION_TYPE_HOST);
static_assert(static_cast<int>(advice::set_read_mostly) + 1 == CU_MEM_ADVISE_SET_READ_MOSTLY);
static_assert(static_cast<int>(advice::unset_accessed_by) + 1 == CU_MEM_ADVISE_UNSET_ACCESSED_BY);
static_assert(static_cast<int>(capture_status::invalidated) ==
              CU_STREAM_CAPTURE_STATUS_INVALIDATED);
static_assert(static_cast<int>(capture_mode::relaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);

TEST(cuda_abi, per_thread_stream_is_the_drivers) {
  EXPECT_EQ(per_thread_stream.bits, reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD));
}

}  // namespace
}  // namespace berth::runtime
