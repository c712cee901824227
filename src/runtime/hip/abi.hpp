// SPDX-License-Identifier: Apache-2.0
// What berth needs of HIP's binary interface: our own declarations, so that no ROCm header is
// needed to build. Values are those of HIP 5.0 and later, which only appended to them; the one enum
// that changed, hipMemoryType in 6.0, is decoded in decode.hpp. Structures whose layout moved
// between majors are not used at all. A test compares these with HIP's headers where they are
// installed.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/loader.hpp"
#include "runtime/symbol_table.hpp"

namespace berth::runtime::hip {

using status = int;  // hipError_t, hiprtcResult
using stream_t = void*;
using event_t = void*;
using module_t = void*;
using kernel_t = void*;
using program_t = void*;
using host_function = void (*)(void* data);
using stream_callback = void (*)(stream_t stream, status error, void* data);

struct unique_id {
  char bytes[16];
};

// hipPointerAttribute_t, with room to spare for a version that appends to it.
struct pointer_attributes {
  int type;  // by version: see decode_memory_type
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned allocation_flags;
  std::byte reserve[224];
};

namespace code {
inline constexpr status success = 0;
inline constexpr status invalid_value = 1;
inline constexpr status out_of_memory = 2;
inline constexpr status not_initialized = 3;
inline constexpr status deinitialized = 4;
inline constexpr status invalid_configuration = 9;
inline constexpr status invalid_pitch = 12;
inline constexpr status invalid_device_pointer = 17;
inline constexpr status invalid_copy_direction = 21;
inline constexpr status insufficient_driver = 35;
inline constexpr status prior_launch_failure = 53;
inline constexpr status invalid_device_function = 98;
inline constexpr status no_device = 100;
inline constexpr status invalid_device = 101;
inline constexpr status invalid_image = 200;
inline constexpr status invalid_context = 201;
inline constexpr status map_failed = 205;
inline constexpr status no_binary_for_gpu = 209;
inline constexpr status ecc_not_correctable = 214;
inline constexpr status peer_access_unsupported = 217;
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
inline constexpr status host_memory_already_registered = 712;
inline constexpr status host_memory_not_registered = 713;
inline constexpr status launch_failure = 719;
inline constexpr status not_supported = 801;
inline constexpr status capture_unsupported = 900;
inline constexpr status capture_wrong_thread = 908;
inline constexpr status unknown = 999;
}  // namespace code

namespace attribute {
inline constexpr int copy_engines = 2;
inline constexpr int can_map_host_memory = 3;
inline constexpr int concurrent_managed_access = 9;
inline constexpr int direct_managed_access_from_host = 13;
inline constexpr int host_native_atomics = 15;
inline constexpr int integrated = 16;
inline constexpr int l2_bytes = 19;
inline constexpr int managed_memory = 24;
inline constexpr int memory_bus_width = 59;
inline constexpr int memory_clock_rate = 60;
inline constexpr int compute_units = 63;
inline constexpr int pageable_access = 65;
inline constexpr int pageable_uses_host_page_tables = 66;
inline constexpr int unified_addressing = 85;
inline constexpr int wave_size = 87;
inline constexpr int host_register_supported = 90;  // 6.0
inline constexpr int host_numa_node = 92;           // 6.x
inline constexpr int large_bar = 10011;
inline constexpr int fine_grained_memory = 10016;  // 5.2
inline constexpr int wall_clock_rate = 10017;      // 5.4; kHz
}  // namespace attribute

namespace flag {
inline constexpr unsigned host_portable = 0x1;
inline constexpr unsigned host_mapped = 0x2;
inline constexpr unsigned host_write_combined = 0x4;
inline constexpr unsigned host_numa_user = 0x20000000;
inline constexpr unsigned host_coherent = 0x40000000;
inline constexpr unsigned host_non_coherent = 0x80000000;
inline constexpr unsigned device_fine_grained = 0x1;
inline constexpr unsigned managed_global = 0x1;
inline constexpr unsigned register_portable = 0x1;
inline constexpr unsigned register_mapped = 0x2;
inline constexpr unsigned stream_non_blocking = 0x1;
inline constexpr unsigned event_blocking = 0x1;
inline constexpr unsigned event_no_timing = 0x2;
inline constexpr unsigned event_release_to_system = 0x80000000;
}  // namespace flag

inline constexpr int copy_default =
    4;                                 // hipMemcpyDefault: the direction follows from the addresses
inline constexpr int cpu_device = -1;  // hipCpuDeviceId

// A table of calls: a member for each row of spec/gpu_api.def, null where the library lacks it.
struct api {
#define BERTH_HIP BERTH_AS_MEMBER
#include "gpu_api.def"
  static std::span<const symbol> symbols() noexcept;
  void store(std::size_t index, void* pointer) noexcept;
};

// The run-time compiler's calls.
struct compiler_api {
#define BERTH_HIPRTC BERTH_AS_MEMBER
#include "gpu_api.def"
  static std::span<const symbol> symbols() noexcept;
  void store(std::size_t index, void* pointer) noexcept;
};

}  // namespace berth::runtime::hip
