// SPDX-License-Identifier: Apache-2.0
// The interface of AMD's compute driver (/dev/kfd) as user space sees it: call numbers and the
// layout of their arguments, from Linux's include/uapi/linux/kfd_ioctl.h; the two IPC calls are of
// AMD's own kernel only. Own declarations, because that header needs libdrm's.
#pragma once

#include <array>
#include <cstdint>

namespace berth::emulator::kfd {

enum class call : std::uint8_t {
  get_version = 0x01,
  create_queue = 0x02,
  destroy_queue = 0x03,
  set_memory_policy = 0x04,
  get_clock_counters = 0x05,
  update_queue = 0x07,
  create_event = 0x08,
  destroy_event = 0x09,
  set_event = 0x0a,
  reset_event = 0x0b,
  wait_events = 0x0c,
  set_scratch_backing = 0x11,
  get_tile_config = 0x12,
  set_trap_handler = 0x13,
  get_apertures = 0x14,
  acquire_vm = 0x15,
  alloc_memory = 0x16,
  free_memory = 0x17,
  map_memory = 0x18,
  unmap_memory = 0x19,
  set_cu_mask = 0x1a,
  alloc_queue_gws = 0x1e,
  svm = 0x20,
  set_xnack_mode = 0x21,
  ipc_import = 0x80,
  ipc_export = 0x81,
  debug_trap = 0x82,
};

inline constexpr unsigned ioctl_type = 'K';

struct get_version_args {
  std::uint32_t major_version;
  std::uint32_t minor_version;
};

enum class queue_type : std::uint32_t { compute = 0, sdma = 1, aql = 2, sdma_xgmi = 3 };

struct create_queue_args {
  std::uint64_t ring_base_address;
  std::uint64_t write_pointer_address;
  std::uint64_t read_pointer_address;
  std::uint64_t doorbell_offset;  // out
  std::uint32_t ring_size;
  std::uint32_t gpu_id;
  std::uint32_t queue_type;
  std::uint32_t queue_percentage;
  std::uint32_t queue_priority;
  std::uint32_t queue_id;  // out
  std::uint64_t eop_buffer_address;
  std::uint64_t eop_buffer_size;
  std::uint64_t ctx_save_restore_address;
  std::uint32_t ctx_save_restore_size;
  std::uint32_t ctl_stack_size;
};

struct destroy_queue_args {
  std::uint32_t queue_id;
  std::uint32_t pad;
};

struct update_queue_args {
  std::uint64_t ring_base_address;
  std::uint32_t queue_id;
  std::uint32_t ring_size;
  std::uint32_t queue_percentage;
  std::uint32_t queue_priority;
};

struct set_cu_mask_args {
  std::uint32_t queue_id;
  std::uint32_t mask_bits;
  std::uint64_t mask_pointer;
};

// Arguments whose content the emulator does not need: accepted for a device that exists.
struct set_memory_policy_args {
  std::uint64_t aperture_base;
  std::uint64_t aperture_size;
  std::uint32_t gpu_id;
  std::uint32_t default_policy;
  std::uint32_t alternate_policy;
  std::uint32_t pad;
};

struct set_scratch_backing_args {
  std::uint64_t va_addr;
  std::uint32_t gpu_id;
  std::uint32_t pad;
};

struct set_trap_handler_args {
  std::uint64_t tba_addr;
  std::uint64_t tma_addr;
  std::uint32_t gpu_id;
  std::uint32_t pad;
};

struct acquire_vm_args {
  std::uint32_t drm_fd;
  std::uint32_t gpu_id;
};

struct get_clock_counters_args {
  std::uint64_t gpu_clock_counter;
  std::uint64_t cpu_clock_counter;
  std::uint64_t system_clock_counter;
  std::uint64_t system_clock_freq;
  std::uint32_t gpu_id;
  std::uint32_t pad;
};

enum class event_type : std::uint32_t {
  signal = 0,
  node_change = 1,
  device_state = 2,
  hw_exception = 3,
  system = 4,
  debug = 5,
  profile = 6,
  queue = 7,
  memory = 8,
};

struct create_event_args {
  std::uint64_t event_page_offset;  // out
  std::uint32_t event_trigger_data;
  std::uint32_t event_type;
  std::uint32_t auto_reset;
  std::uint32_t node_id;
  std::uint32_t event_id;          // out
  std::uint32_t event_slot_index;  // out
};

struct event_args {  // destroy, set, reset
  std::uint32_t event_id;
  std::uint32_t pad;
};

struct memory_exception_data {
  std::uint32_t not_present;
  std::uint32_t read_only;
  std::uint32_t no_execute;
  std::uint32_t imprecise;
  std::uint64_t va;
  std::uint32_t gpu_id;
  std::uint32_t error_type;
};

struct hw_exception_data {
  std::uint32_t reset_type;
  std::uint32_t reset_cause;
  std::uint32_t memory_lost;
  std::uint32_t gpu_id;
};

struct event_data {
  union {
    memory_exception_data memory;
    hw_exception_data hardware;
  };
  std::uint64_t extension;
  std::uint32_t event_id;
  std::uint32_t pad;
};

enum class wait_result : std::uint32_t { complete = 0, timeout = 1, fail = 2 };

struct wait_events_args {
  std::uint64_t events_pointer;
  std::uint32_t num_events;
  std::uint32_t wait_for_all;
  std::uint32_t timeout;      // ms; all ones: for ever
  std::uint32_t wait_result;  // out
};

struct get_tile_config_args {
  std::uint64_t tile_config_pointer;
  std::uint64_t macro_tile_config_pointer;
  std::uint32_t num_tile_configs;
  std::uint32_t num_macro_tile_configs;
  std::uint32_t gpu_id;
  std::uint32_t gb_addr_config;
  std::uint32_t num_banks;
  std::uint32_t num_ranks;
};

struct device_apertures {
  std::uint64_t lds_base;
  std::uint64_t lds_limit;
  std::uint64_t scratch_base;
  std::uint64_t scratch_limit;
  std::uint64_t gpuvm_base;
  std::uint64_t gpuvm_limit;
  std::uint32_t gpu_id;
  std::uint32_t pad;
};

struct get_apertures_args {
  std::uint64_t apertures_pointer;
  std::uint32_t num_of_nodes;
  std::uint32_t pad;
};

inline constexpr std::uint32_t flag_vram = 1U << 0U;
inline constexpr std::uint32_t flag_gtt = 1U << 1U;
inline constexpr std::uint32_t flag_userptr = 1U << 2U;
inline constexpr std::uint32_t flag_doorbell = 1U << 3U;
inline constexpr std::uint32_t flag_mmio_remap = 1U << 4U;

struct alloc_memory_args {
  std::uint64_t va_addr;
  std::uint64_t size;
  std::uint64_t handle;       // out
  std::uint64_t mmap_offset;  // in for user memory, out for all else
  std::uint32_t gpu_id;
  std::uint32_t flags;
};

struct free_memory_args {
  std::uint64_t handle;
};

struct map_memory_args {  // map and unmap
  std::uint64_t handle;
  std::uint64_t device_ids_pointer;
  std::uint32_t n_devices;
  std::uint32_t n_success;  // out
};

struct alloc_queue_gws_args {
  std::uint32_t queue_id;
  std::uint32_t num_gws;
  std::uint32_t first_gws;  // out
  std::uint32_t pad;
};

enum class svm_operation : std::uint32_t { set = 0, get = 1 };

enum class svm_attribute : std::uint32_t {
  preferred_location = 0,
  prefetch_location = 1,
  access = 2,
  access_in_place = 3,
  no_access = 4,
  set_flags = 5,
  clear_flags = 6,
  granularity = 7,
};

inline constexpr std::uint32_t svm_location_undefined = 0xffffffff;
inline constexpr std::uint32_t svm_default_flags = 3;  // host access, coherent
inline constexpr std::uint32_t svm_default_granularity = 9;

struct svm_attribute_value {
  std::uint32_t type;
  std::uint32_t value;
};

struct svm_args {  // followed by nattr attributes
  std::uint64_t start_addr;
  std::uint64_t size;
  std::uint32_t op;
  std::uint32_t nattr;
};

struct set_xnack_mode_args {
  std::int32_t xnack_enabled;  // -1 asks
};

struct ipc_export_args {
  std::uint64_t handle;
  std::array<std::uint32_t, 4> share_handle;  // out
  std::uint32_t gpu_id;
  std::uint32_t pad;
};

struct ipc_import_args {
  std::uint64_t handle;  // out
  std::uint64_t va_addr;
  std::uint64_t mmap_offset;  // out
  std::array<std::uint32_t, 4> share_handle;
  std::uint32_t gpu_id;
  std::uint32_t flags;  // out
};

}  // namespace berth::emulator::kfd
