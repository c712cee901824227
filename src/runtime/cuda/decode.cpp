// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/decode.hpp"

namespace berth::runtime::cuda {
namespace {

void* address_of(std::uint64_t value) noexcept {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr): from an integer API
}

memory_kind kind_of(const pointer_answers& answers) noexcept {
  // First, since managed memory also has the type of wherever it is.
  if ((answers.is_managed & 0xFFU) != 0) {
    return memory_kind::managed;
  }
  switch (static_cast<int>(answers.memory_type)) {
    case 0:
      return memory_kind::pageable;
    case memory_type::host:
      return memory_kind::pinned;
    case memory_type::device:
      return memory_kind::device;
    default:
      return memory_kind::unknown;
  }
}

}  // namespace

runtime_version decode_version(int value) noexcept {
  return {value / 1000, value % 1000 / 10, value % 10};
}

pointer_info decode_pointer(const void* memory, const pointer_answers& answers) noexcept {
  pointer_info info;
  info.kind = kind_of(answers);
  if (info.kind == memory_kind::pageable) {
    info.host_address = const_cast<void*>(memory);  // NOLINT: an address, not written through
    return info;
  }
  if (const auto device = static_cast<std::int32_t>(answers.device); device >= 0) {
    info.device = device;
  }
  info.host_address = address_of(answers.host_address);
  info.device_address = address_of(answers.device_address);
  if (answers.range_start != 0 && answers.range_bytes != 0) {
    info.base = address_of(answers.range_start);
    info.bytes = answers.range_bytes;
  }
  if (info.kind == memory_kind::pinned) {
    info.grain = coherence::fine;  // page-locked memory is always coherent on CUDA
  }
  return info;
}

unsigned pinned_flags(const pinned_options& options) noexcept {
  unsigned flags = 0;
  if (options.reach == host_reach::portable) {
    flags |= flag::host_portable;
  }
  if (options.mapping == host_mapping::mapped) {
    flags |= flag::host_mapped;
  }
  if (options.caching == host_caching::write_combined) {
    flags |= flag::host_write_combined;
  }
  return flags;
}

unsigned register_flags(const register_options& options) noexcept {
  unsigned flags = 0;
  if (options.reach == host_reach::portable) {
    flags |= flag::register_portable;
  }
  if (options.mapping == host_mapping::mapped) {
    flags |= flag::register_mapped;
  }
  if (options.access == host_access::read_only) {
    flags |= flag::register_read_only;
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
  return flags;
}

}  // namespace berth::runtime::cuda
