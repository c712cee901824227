// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/memory_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace berth::emulator {
namespace {

constexpr unsigned page_shift = 12;

void record_allocation(driver& in, const buffer& made) {
  auto& trace = in.machine().trace;
  if (trace.wanted()) {
    trace.write(trace_line("alloc")
                    .field("handle", made.handle)
                    .field("kind", to_string(made.kind))
                    .field("gpu", made.gpu)
                    .field("bytes", made.bytes)
                    .address("address", made.address)
                    .address("flags", made.flags));
  }
}

// Doorbells and the remapped registers lie in the kfd file.
int place_in_kfd_file(driver& in, buffer& made) {
  const auto& gpu = in.machine().spec.gpus[made.gpu];
  constexpr std::uint64_t registers = 0x2000000;
  constexpr std::uint64_t page = 0x1000;
  made.offset = made.kind == buffer_kind::doorbell
                    ? std::uint64_t{gpu.kfd_node} << doorbell_region_shift
                    : registers + gpu.kfd_node * page;
  made.host = in.kfd_memory() + made.offset;
  return 0;
}

int place_in_memory(driver& in, buffer& made) {
  auto& machine = in.machine();
  const bool on_device = made.kind == buffer_kind::device;
  if (!machine.memory.usable() ||
      machine.faults.occurs(fault_kind::allocation_fails, made.bytes, to_string(made.kind))) {
    return ENOMEM;
  }
  if (on_device &&
      !machine.memory.charge(made.gpu, made.bytes, machine.spec.gpus[made.gpu].memory)) {
    return ENOMEM;
  }
  const auto offset = machine.memory.take(made.bytes);
  if (!offset) {
    if (on_device) {
      machine.memory.uncharge(made.gpu, made.bytes);
    }
    return ENOMEM;
  }
  made.offset = *offset;
  made.host = machine.memory.host(*offset);
  return 0;
}

int place(driver& in, buffer& made, std::uint64_t user_address) {
  switch (made.kind) {
    case buffer_kind::user:
      made.host = host_pointer<char>(user_address);
      return in.machine().faults.occurs(fault_kind::allocation_fails, made.bytes,
                                        to_string(made.kind))
                 ? ENOMEM
                 : 0;
    case buffer_kind::doorbell:
    case buffer_kind::remap:
      return place_in_kfd_file(in, made);
    case buffer_kind::device:
    case buffer_kind::gtt:
      break;
  }
  return place_in_memory(in, made);
}

buffer_kind kind_of(std::uint32_t flags) noexcept {
  struct row {
    std::uint32_t flag;
    buffer_kind kind;
  };
  constexpr std::array<row, 4> rows = {{{kfd::flag_userptr, buffer_kind::user},
                                        {kfd::flag_doorbell, buffer_kind::doorbell},
                                        {kfd::flag_mmio_remap, buffer_kind::remap},
                                        {kfd::flag_vram, buffer_kind::device}}};
  const auto* const found = std::find_if(rows.begin(), rows.end(),
                                         [&](const row& one) { return (flags & one.flag) != 0; });
  return found == rows.end() ? buffer_kind::gtt : found->kind;
}

}  // namespace

std::optional<std::uint32_t> gpu_index(driver& in, std::uint32_t kfd_id) {
  const auto& gpus = in.machine().spec.gpus;
  const auto found =
      std::find_if(gpus.begin(), gpus.end(), [&](const auto& gpu) { return gpu.kfd_id == kfd_id; });
  return found == gpus.end() ? std::nullopt
                             : std::optional(static_cast<std::uint32_t>(found - gpus.begin()));
}

int alloc_memory(driver& in, kfd::alloc_memory_args& args) {
  const auto gpu = gpu_index(in, args.gpu_id);
  if (!gpu || args.size == 0) {
    return EINVAL;
  }
  buffer made{.address = args.va_addr,
              .bytes = args.size,
              .gpu = *gpu,
              .flags = args.flags,
              .kind = kind_of(args.flags)};
  if (const int error = place(in, made, args.mmap_offset); error != 0) {
    in.machine().trace.write(trace_line("alloc_failed")
                                 .field("kind", to_string(made.kind))
                                 .field("gpu", *gpu)
                                 .field("bytes", made.bytes));
    return error;
  }
  if (made.kind != buffer_kind::user) {
    args.mmap_offset = made.offset;
  }
  args.handle = made.handle = in.machine().buffers.add(made);
  record_allocation(in, made);
  return 0;
}

int free_memory(driver& in, kfd::free_memory_args& args) {
  auto& machine = in.machine();
  const auto gone = machine.buffers.remove(args.handle);
  if (!gone) {
    return EINVAL;
  }
  const bool in_memory = gone->kind == buffer_kind::device || gone->kind == buffer_kind::gtt;
  if (gone->origin == buffer_origin::imported) {
    machine.memory.unmap_foreign(gone->host, gone->bytes);
  } else if (in_memory) {
    machine.memory.give_back(gone->offset, gone->bytes);
    if (gone->kind == buffer_kind::device) {
      machine.memory.uncharge(gone->gpu, gone->bytes);
    }
  }
  if (machine.trace.wanted()) {
    machine.trace.write(trace_line("free")
                            .field("handle", gone->handle)
                            .field("kind", to_string(gone->kind))
                            .field("bytes", gone->bytes)
                            .address("address", gone->address));
  }
  return 0;
}

int map_memory(driver& in, kfd::map_memory_args& args) {
  args.n_success = args.n_devices;
  return in.machine().buffers.find(args.handle) ? 0 : EINVAL;
}

int svm(driver& in, kfd::svm_args& args, address_attributes::values attributes) {
  auto& machine = in.machine();
  if (static_cast<kfd::svm_operation>(args.op) == kfd::svm_operation::set) {
    machine.attributes.set(args.start_addr, args.size, attributes);
  } else {
    machine.attributes.get(args.start_addr, args.size, attributes, machine.xnack.load());
  }
  return 0;
}

int ipc_export(driver& in, kfd::ipc_export_args& args) {
  auto& machine = in.machine();
  const auto shared = machine.buffers.find(args.handle);
  if (!machine.memory.shared()) {
    return ENOTTY;
  }
  if (!shared || (shared->kind != buffer_kind::device && shared->kind != buffer_kind::gtt)) {
    return EINVAL;
  }
  machine.memory.mark_exported();
  const auto pages = (shared->bytes + (1U << page_shift) - 1) >> page_shift;
  const auto first = shared->offset >> page_shift;
  // The first page of a slice far behind has more than 32 bits.
  args.share_handle[0] = static_cast<std::uint32_t>(first);
  args.share_handle[1] = static_cast<std::uint32_t>(pages);
  args.share_handle[2] = static_cast<std::uint32_t>(shared->kind);
  args.share_handle[3] = static_cast<std::uint32_t>(first >> 32U) << 16U | shared->gpu;
  return 0;
}

int ipc_import(driver& in, kfd::ipc_import_args& args) {
  auto& machine = in.machine();
  if (!machine.memory.shared()) {
    return ENOTTY;
  }
  const auto& handle = args.share_handle;
  const auto first = handle[0] | std::uint64_t{handle[3] >> 16U} << 32U;
  buffer made{.address = args.va_addr,
              .bytes = std::uint64_t{handle[1]} << page_shift,
              .offset = first << page_shift,
              .gpu = handle[3] & 0xffffU,
              .kind = static_cast<buffer_kind>(handle[2]),
              .origin = buffer_origin::imported};
  const bool plausible = made.bytes != 0 && made.gpu < machine.spec.gpus.size() &&
                         (made.kind == buffer_kind::device || made.kind == buffer_kind::gtt) &&
                         made.offset + made.bytes <= shared_file_bytes(machine.spec.slice_bytes);
  made.host = plausible ? machine.memory.map_foreign(made.offset, made.bytes) : nullptr;
  if (made.host == nullptr) {
    return EINVAL;
  }
  args.mmap_offset = made.offset;
  args.handle = made.handle = machine.buffers.add(made);
  record_allocation(in, made);
  return 0;
}

}  // namespace berth::emulator
