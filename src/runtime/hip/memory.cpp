// SPDX-License-Identifier: Apache-2.0
// The HIP driver: allocations, registrations, what a pointer is.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "runtime/hip/decode.hpp"
#include "runtime/hip/hip_driver.hpp"
#include "runtime/numa_policy.hpp"

namespace berth::runtime::hip {

result<memory_amounts> hip_driver::memory_info(int device) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (auto told =
          on_device(device, "hipMemGetInfo", [&] { return calls_.hipMemGetInfo(&free, &total); });
      !told) {
    return told.error();
  }
  return memory_amounts{.free = free, .total = total};
}

result<void*> hip_driver::allocate_device(int device, bytes_t bytes, coherence grain) {
  if (grain == coherence::fine) {
    if (!is_device(device)) {
      return device_out_of_range(device, devices_.size());
    }
    // HIP would silently give coarse-grained memory where the device has no other.
    if (!info_.capabilities.has(capability::fine_grained_device) ||
        devices_[static_cast<std::size_t>(device)].fine_grained_memory != true) {
      return not_supported("allocate_device", "the device has no fine-grained memory of its own");
    }
    return allocate(device, bytes, "hipExtMallocWithFlags", [&](void** memory) {
      return calls_.hipExtMallocWithFlags(memory, bytes, flag::device_fine_grained);
    });
  }
  return allocate(device, bytes, "hipMalloc",
                  [&](void** memory) { return calls_.hipMalloc(memory, bytes); });
}

result<void> hip_driver::free_device(void* memory) {
  return done("hipFree", calls_.hipFree(memory));
}

result<void*> hip_driver::allocate_pinned(bytes_t bytes, const pinned_options& options) {
  std::optional<scoped_numa_policy> policy;
  if (options.numa_node) {
    auto preferred = scoped_numa_policy::prefer(*options.numa_node);
    if (!preferred) {
      return preferred.error();
    }
    policy.emplace(std::move(*preferred));
  }
  return allocate(
      options.device, bytes, "hipHostMalloc",
      [&](void** memory) { return calls_.hipHostMalloc(memory, bytes, pinned_flags(options)); },
      side::host);
}

result<void> hip_driver::free_pinned(void* memory) {
  return done("hipHostFree", calls_.hipHostFree(memory));
}

result<void*> hip_driver::allocate_managed(int device, bytes_t bytes) {
  if (!info_.capabilities.has(capability::managed)) {
    return lacking("allocate_managed");
  }
  return allocate(device, bytes, "hipMallocManaged", [&](void** memory) {
    return calls_.hipMallocManaged(memory, bytes, flag::managed_global);
  });
}

result<void> hip_driver::free_managed(void* memory) {
  return free_device(memory);
}

result<void> hip_driver::register_host(void* memory, bytes_t bytes,
                                       const register_options& options) {
  if (bytes == 0 || memory == nullptr) {
    return nothing_requested("register_host");
  }
  if (!is_device(options.device)) {
    return device_out_of_range(options.device, devices_.size());
  }
  if (auto entered = enter_registration(memory, bytes); !entered) {
    return entered;
  }
  const device_guard guard(calls_, options.device);
  status answer = guard.failed();
  if (answer == code::success) {
    answer = calls_.hipHostRegister(memory, bytes, register_flags(options));
  }
  if (answer == code::success) {
    registered_.hold(memory);
    return {};
  }
  registered_.remove(memory);
  if (answer == code::out_of_memory) {
    forget_last_error(calls_, answer);
    return failed_allocation("hipHostRegister", calls_.hipGetErrorName(answer), answer,
                             host_shortage(bytes));
  }
  return failure("hipHostRegister", answer);
}

// Refuses what HIP would register all the same: see registrations.hpp. Of memory that others have
// page-locked it sees what the first or the last byte lies in.
result<void> hip_driver::enter_registration(void* memory, bytes_t bytes) {
  for (const auto offset : {bytes_t{0}, bytes - 1}) {
    const auto known = classify(static_cast<std::byte*>(memory) + offset);
    if (!known) {
      return known.error();
    }
    if (known->kind == memory_kind::pageable || known->kind == memory_kind::unknown) {
      continue;
    }
    return error(
        known->kind == memory_kind::device ? errc::gpu_invalid_value : errc::gpu_already_registered,
        fmt::format("byte {} of {} lies in {} memory", offset, bytes, to_string(known->kind)),
        "register_host");
  }
  while (const auto other = registered_.enter(memory, bytes)) {
    void* const start = reinterpret_cast<void*>(other->start);  // NOLINT(performance-no-int-to-ptr)
    const auto known = classify(start);
    if (other->phase != registration_phase::held || !known ||
        known->kind != memory_kind::pageable) {
      return error(errc::gpu_already_registered,
                   fmt::format("{} bytes at {} are registered already", other->bytes, start),
                   "register_host");
    }
    registered_.remove(start);  // the program has unregistered it behind our back
  }
  return {};
}

result<void> hip_driver::unregister_host(void* memory) {
  if (!registered_.take(memory)) {
    return error(errc::gpu_not_registered, "no range that this driver has registered starts here",
                 "unregister_host");
  }
  if (const auto known = classify(memory); known && known->kind == memory_kind::pageable) {
    registered_.remove(memory);
    return error(errc::gpu_not_registered, "the program has unregistered it itself",
                 "unregister_host");
  }
  const status answer = calls_.hipHostUnregister(memory);
  if (answer != code::success) {
    registered_.hold(memory);
    return failure("hipHostUnregister", answer);
  }
  registered_.remove(memory);
  return {};
}

// HIP would also give the address of device memory, as if it were the host's.
result<void*> hip_driver::device_address(void* host_memory) {
  const auto known = classify(host_memory);
  if (!known) {
    return known.error();
  }
  if (known->kind == memory_kind::managed) {
    return host_memory;
  }
  if (known->kind == memory_kind::device) {
    return error(errc::gpu_invalid_value, "device memory has no host address", "device_address");
  }
  void* address = nullptr;
  const status answer = calls_.hipHostGetDevicePointer(&address, host_memory, 0);
  return answer == code::success ? result<void*>(address)
                                 : failure("hipHostGetDevicePointer", answer);
}

result<pointer_info> hip_driver::classify(const void* memory) {
  if (memory == nullptr) {
    return pointer_info{};
  }
  pointer_attributes attributes{};
  const status answer = calls_.hipPointerGetAttributes(&attributes, memory);
  if (is_unregistered(answer, attributes, info_.version)) {
    if (answer != code::success) {
      forget_last_error(calls_, answer);
    }
    pointer_info unknown;
    unknown.kind = memory_kind::pageable;
    unknown.host_address = const_cast<void*>(memory);  // NOLINT: an address, not written through
    return unknown;
  }
  if (answer != code::success) {
    return failure("hipPointerGetAttributes", answer);
  }
  pointer_info info = decode_pointer(attributes, info_.version);
  read_range(memory, info);
  return info;
}

result<void> hip_driver::advise(const void* memory, bytes_t bytes, advice what,
                                memory_location where) {
  if (!info_.capabilities.has(capability::advise)) {
    return lacking("advise");
  }
  const auto device = device_of(where);
  if (!device) {
    return device.error();
  }
  return done("hipMemAdvise", calls_.hipMemAdvise(memory, bytes, advice_value(what), *device));
}

result<void> hip_driver::prefetch_async(const void* memory, bytes_t bytes, memory_location where,
                                        stream_handle stream) {
  if (!info_.capabilities.has(capability::prefetch)) {
    return lacking("prefetch_async");
  }
  const auto device = device_of(where);
  if (!device) {
    return device.error();
  }
  return done("hipMemPrefetchAsync",
              calls_.hipMemPrefetchAsync(memory, bytes, *device, raw(stream)));
}

memory_shortage hip_driver::device_shortage(int device, bytes_t requested) {
  memory_shortage amounts{.requested = requested, .free = std::nullopt, .total = std::nullopt};
  if (const auto known = memory_info(device)) {
    amounts.free = known->free;
    amounts.total = known->total;
  }
  return amounts;
}

void hip_driver::read_range(const void* memory, pointer_info& info) const {
  if (calls_.hipMemGetAddressRange == nullptr) {
    return;
  }
  void* base = nullptr;
  std::size_t bytes = 0;
  const status answer = calls_.hipMemGetAddressRange(
      &base, &bytes, const_cast<void*>(memory));  // NOLINT: an address, not written through
  if (answer != code::success) {
    forget_last_error(calls_, answer);
    return;
  }
  // HIP 5.2 tells the size of registered memory but not its start.
  if (base != nullptr) {
    info.base = base;
    info.bytes = bytes;
  } else if (const auto own = registered_.find(memory)) {
    info.base = reinterpret_cast<void*>(own->start);  // NOLINT(performance-no-int-to-ptr)
    info.bytes = own->bytes;
  }
}

result<int> hip_driver::device_of(memory_location where) const {
  if (where.where == side::host) {
    return cpu_device;
  }
  if (!is_device(where.device)) {
    return device_out_of_range(where.device, devices_.size());
  }
  return where.device;
}

}  // namespace berth::runtime::hip
