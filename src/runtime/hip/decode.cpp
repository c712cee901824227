// SPDX-License-Identifier: Apache-2.0
#include "runtime/hip/decode.hpp"

#include <array>

namespace berth::runtime::hip {
namespace {

memory_type of_5(int value) noexcept {
  constexpr std::array types{memory_type::host, memory_type::device, memory_type::array,
                             memory_type::unified, memory_type::managed};
  return value >= 0 && value < static_cast<int>(types.size())
             ? types[static_cast<std::size_t>(value)]
             : memory_type::unknown;
}

memory_type since_6(int value) noexcept {
  switch (value) {
    case 0:
      return memory_type::unregistered;
    case 1:
      return memory_type::host;
    case 2:
      return memory_type::device;
    case 3:
      return memory_type::managed;
    case 10:
      return memory_type::array;
    case 11:
      return memory_type::unified;
    default:
      return memory_type::unknown;
  }
}

memory_kind kind_of(memory_type type, bool is_managed) noexcept {
  if (is_managed) {
    return memory_kind::managed;  // 5.0 to 5.6 report it as host memory with this flag
  }
  switch (type) {
    case memory_type::unregistered:
      return memory_kind::pageable;
    case memory_type::host:
      return memory_kind::pinned;
    case memory_type::device:
      return memory_kind::device;
    case memory_type::managed:
      return memory_kind::managed;
    case memory_type::array:
    case memory_type::unified:
    case memory_type::unknown:
      return memory_kind::unknown;
  }
  return memory_kind::unknown;
}

// Only what the flags say outright: 0 and others depend on how and by which version they were set.
coherence grain_of(memory_kind kind, unsigned flags) noexcept {
  if (kind != memory_kind::pinned) {
    return coherence::unknown;
  }
  if ((flags & flag::host_non_coherent) != 0) {
    return coherence::coarse;
  }
  return (flags & flag::host_coherent) != 0 ? coherence::fine : coherence::unknown;
}

}  // namespace

runtime_version decode_version(int value) noexcept {
  return {value / 10'000'000, value / 100'000 % 100, value % 100'000};
}

memory_type decode_memory_type(int value, const runtime_version& version) noexcept {
  return version.major < 6 ? of_5(value) : since_6(value);
}

bool is_unregistered(status answer, const pointer_attributes& attributes,
                     const runtime_version& version) noexcept {
  if (answer == code::invalid_value) {
    return true;
  }
  return answer == code::success && attributes.is_managed == 0 &&
         decode_memory_type(attributes.type, version) == memory_type::unregistered;
}

pointer_info decode_pointer(const pointer_attributes& attributes,
                            const runtime_version& version) noexcept {
  pointer_info info;
  info.kind = kind_of(decode_memory_type(attributes.type, version), attributes.is_managed != 0);
  if (attributes.device >= 0) {
    info.device = attributes.device;
  }
  info.host_address = attributes.host_pointer;
  info.device_address = attributes.device_pointer;
  info.grain = grain_of(info.kind, attributes.allocation_flags);
  return info;
}

unsigned pinned_flags(const pinned_options& options) noexcept {
  unsigned flags = 0;
  if (options.grain == coherence::coarse) {
    flags |= flag::host_non_coherent;
  } else {
    flags |= flag::host_coherent;
    if (options.mapping == host_mapping::mapped) {
      flags |= flag::host_mapped;
    }
  }
  if (options.reach == host_reach::portable) {
    flags |= flag::host_portable;
  }
  if (options.caching == host_caching::write_combined) {
    flags |= flag::host_write_combined;
  }
  if (options.numa_node) {
    flags |= flag::host_numa_user;
  }
  return flags;
}

unsigned register_flags(const register_options& options) noexcept {
  // Read-only is left out: AMD ignores it, and its bit means something else in some versions.
  unsigned flags = 0;
  if (options.reach == host_reach::portable) {
    flags |= flag::register_portable;
  }
  if (options.mapping == host_mapping::mapped) {
    flags |= flag::register_mapped;
  }
  return flags;
}

unsigned event_flags(const event_options& options) noexcept {
  unsigned flags = 0;
  if (options.timing == event_timing::none) {
    flags |= flag::event_no_timing;
  }
  if (options.wait == event_wait::block) {
    flags |= flag::event_blocking;
  }
  if (options.release == event_release::system) {
    flags |= flag::event_release_to_system;
  }
  return flags;
}

int advice_value(advice what) noexcept {
  switch (what) {
    case advice::set_read_mostly:
      return 1;
    case advice::unset_read_mostly:
      return 2;
    case advice::set_preferred_location:
      return 3;
    case advice::unset_preferred_location:
      return 4;
    case advice::set_accessed_by:
      return 5;
    case advice::unset_accessed_by:
      return 6;
    case advice::set_coarse_grain:
      return 100;
    case advice::unset_coarse_grain:
      return 101;
  }
  return 0;
}

}  // namespace berth::runtime::hip
