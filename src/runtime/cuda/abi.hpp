// SPDX-License-Identifier: Apache-2.0
// What berth needs of the CUDA driver's binary interface: our own declarations, so that no toolkit
// is needed to build. libcuda keeps every old entry point under its old name, and structures only
// change with a new suffix. A test compares these with cuda.h where it is installed.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/loader.hpp"
#include "runtime/symbol_table.hpp"

namespace berth::runtime::cuda {

using status = int;    // CUresult
using device_t = int;  // CUdevice
using context_t = void*;
using stream_t = void*;
using event_t = void*;
using module_t = void*;
using kernel_t = void*;
using address_t = unsigned long long;  // CUdeviceptr
using host_function = void (*)(void* data);

struct unique_id {
  char bytes[16];
};

struct location_t {
  int type;
  int id;
};

// CUDA_MEMCPY2D_v2
struct copy_2d_t {
  std::size_t src_x;
  std::size_t src_y;
  int src_type;
  const void* src_host;
  address_t src_device;
  void* src_array;
  std::size_t src_pitch;

  std::size_t dst_x;
  std::size_t dst_y;
  int dst_type;
  void* dst_host;
  address_t dst_device;
  void* dst_array;
  std::size_t dst_pitch;

  std::size_t width;
  std::size_t rows;
};

namespace code {
inline constexpr status success = 0;
inline constexpr status invalid_value = 1;
inline constexpr status out_of_memory = 2;
inline constexpr status not_initialized = 3;
inline constexpr status deinitialized = 4;
inline constexpr status stub_library = 34;
inline constexpr status device_unavailable = 46;
inline constexpr status no_device = 100;
inline constexpr status invalid_device = 101;
inline constexpr status invalid_image = 200;
inline constexpr status invalid_context = 201;
inline constexpr status map_failed = 205;
inline constexpr status no_binary_for_gpu = 209;
inline constexpr status ecc_uncorrectable = 214;
inline constexpr status peer_access_unsupported = 217;
inline constexpr status invalid_ptx = 218;
inline constexpr status nvlink_uncorrectable = 220;
inline constexpr status jit_compiler_not_found = 221;
inline constexpr status unsupported_ptx_version = 222;
inline constexpr status jit_compilation_disabled = 223;
inline constexpr status contained = 226;
inline constexpr status operating_system = 304;
inline constexpr status invalid_handle = 400;
inline constexpr status not_found = 500;
inline constexpr status not_ready = 600;
inline constexpr status illegal_address = 700;
inline constexpr status launch_out_of_resources = 701;
inline constexpr status launch_timeout = 702;
inline constexpr status peer_access_already_enabled = 704;
inline constexpr status peer_access_not_enabled = 705;
inline constexpr status context_is_destroyed = 709;
inline constexpr status assertion = 710;
inline constexpr status too_many_peers = 711;
inline constexpr status host_memory_already_registered = 712;
inline constexpr status host_memory_not_registered = 713;
inline constexpr status hardware_stack_error = 714;
inline constexpr status launch_failed = 719;
inline constexpr status not_permitted = 800;
inline constexpr status not_supported = 801;
inline constexpr status system_not_ready = 802;
inline constexpr status system_driver_mismatch = 803;
inline constexpr status compat_not_supported = 804;
inline constexpr status capture_unsupported = 900;
inline constexpr status capture_wrong_thread = 908;
inline constexpr status unknown = 999;
}  // namespace code

namespace attribute {
inline constexpr int wave_size = 10;
inline constexpr int compute_units = 16;
inline constexpr int integrated = 18;
inline constexpr int can_map_host_memory = 19;
inline constexpr int memory_clock_rate = 36;
inline constexpr int memory_bus_width = 37;
inline constexpr int l2_bytes = 38;
inline constexpr int copy_engines = 40;
inline constexpr int unified_addressing = 41;
inline constexpr int capability_major = 75;
inline constexpr int capability_minor = 76;
inline constexpr int managed_memory = 83;
inline constexpr int host_native_atomics = 86;
inline constexpr int pageable_access = 88;
inline constexpr int concurrent_managed_access = 89;
inline constexpr int host_register_supported = 99;
inline constexpr int pageable_uses_host_page_tables = 100;
inline constexpr int direct_managed_access_from_host = 101;
inline constexpr int host_numa_node = 134;
}  // namespace attribute

namespace pointer_attribute {
inline constexpr int memory_type = 2;
inline constexpr int device_address = 3;
inline constexpr int host_address = 4;
inline constexpr int is_managed = 8;
inline constexpr int device = 9;
inline constexpr int range_start = 11;
inline constexpr int range_bytes = 12;
}  // namespace pointer_attribute

namespace memory_type {
inline constexpr int host = 1;
inline constexpr int device = 2;
inline constexpr int array = 3;
inline constexpr int unified = 4;
}  // namespace memory_type

namespace flag {
inline constexpr unsigned host_portable = 0x1;
inline constexpr unsigned host_mapped = 0x2;
inline constexpr unsigned host_write_combined = 0x4;
inline constexpr unsigned managed_global = 0x1;
inline constexpr unsigned register_portable = 0x1;
inline constexpr unsigned register_mapped = 0x2;
inline constexpr unsigned register_read_only = 0x8;
inline constexpr unsigned stream_non_blocking = 0x1;
inline constexpr unsigned event_blocking = 0x1;
inline constexpr unsigned event_no_timing = 0x2;
}  // namespace flag

namespace jit_option {
inline constexpr int error_log = 5;
inline constexpr int error_log_bytes = 6;
}  // namespace jit_option

inline constexpr device_t cpu_device = -1;
inline constexpr int location_device = 1;
inline constexpr int location_host = 2;

// A table of calls: a member for each row of spec/gpu_api.def, null where the library lacks it.
struct api {
#define BERTH_CUDA BERTH_AS_MEMBER
#include "gpu_api.def"
  static std::span<const symbol> symbols() noexcept;
  void store(std::size_t index, void* pointer) noexcept;
};

}  // namespace berth::runtime::cuda
