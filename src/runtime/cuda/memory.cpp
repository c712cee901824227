// SPDX-License-Identifier: Apache-2.0
// The CUDA driver: allocations, registrations, what a pointer is.
#include <array>
#include <optional>

#include "runtime/cuda/cuda_driver.hpp"
#include "runtime/cuda/decode.hpp"
#include "runtime/numa_policy.hpp"

namespace berth::runtime::cuda {
namespace {

// CUmem_advise has the values of the contract's order, from 1.
int advice_value(advice what) noexcept {
  return static_cast<int>(what) + 1;
}

bool is_coarse_grain(advice what) noexcept {
  return what == advice::set_coarse_grain || what == advice::unset_coarse_grain;
}

}  // namespace

result<memory_amounts> cuda_driver::memory_info(int device) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (auto told =
          on_device(device, "cuMemGetInfo", [&] { return calls_.cuMemGetInfo_v2(&free, &total); });
      !told) {
    return told.error();
  }
  return memory_amounts{.free = free, .total = total};
}

result<void*> cuda_driver::allocate_device(int device, bytes_t bytes, coherence grain) {
  if (grain == coherence::fine) {
    return is_device(device) ? result<void*>(not_supported(
                                   "allocate_device", "CUDA has no fine-grained device memory"))
                             : result<void*>(device_out_of_range(device, devices_.size()));
  }
  return allocate(device, bytes, "cuMemAlloc", side::device,
                  [&](address_t* address) { return calls_.cuMemAlloc_v2(address, bytes); });
}

result<void> cuda_driver::free_device(void* memory) {
  if (memory == nullptr) {
    return {};
  }
  return run("cuMemFree", [&] { return calls_.cuMemFree_v2(raw(memory)); });
}

result<void*> cuda_driver::allocate_pinned(bytes_t bytes, const pinned_options& options) {
  std::optional<scoped_numa_policy> policy;
  if (options.numa_node) {
    auto preferred = scoped_numa_policy::prefer(*options.numa_node);
    if (!preferred) {
      return preferred.error();
    }
    policy.emplace(std::move(*preferred));
  }
  return allocate(options.device, bytes, "cuMemHostAlloc", side::host, [&](address_t* address) {
    void* memory = nullptr;
    const status answer = calls_.cuMemHostAlloc(&memory, bytes, pinned_flags(options));
    *address = raw(memory);
    return answer;
  });
}

result<void> cuda_driver::free_pinned(void* memory) {
  if (memory == nullptr) {
    return {};
  }
  return run("cuMemFreeHost", [&] { return calls_.cuMemFreeHost(memory); });
}

result<void*> cuda_driver::allocate_managed(int device, bytes_t bytes) {
  if (!info_.capabilities.has(capability::managed)) {
    return lacking("allocate_managed");
  }
  return allocate(device, bytes, "cuMemAllocManaged", side::device, [&](address_t* address) {
    return calls_.cuMemAllocManaged(address, bytes, flag::managed_global);
  });
}

result<void> cuda_driver::free_managed(void* memory) {
  return free_device(memory);
}

result<void> cuda_driver::register_host(void* memory, bytes_t bytes,
                                        const register_options& options) {
  if (memory == nullptr || bytes == 0) {
    return nothing_requested("cuMemHostRegister");
  }
  status answer = code::success;
  auto made = on_device(options.device, "cuMemHostRegister", [&] {
    return answer = calls_.cuMemHostRegister_v2(memory, bytes, register_flags(options));
  });
  if (answer == code::out_of_memory) {
    return failed_allocation("cuMemHostRegister", name_of(calls_, answer), answer,
                             host_shortage(bytes));
  }
  return made;
}

result<void> cuda_driver::unregister_host(void* memory) {
  const status answer = in_context([&] { return calls_.cuMemHostUnregister(memory); });
  if (answer == code::success) {
    return {};
  }
  auto failed = failure("cuMemHostUnregister", answer);
  // How the driver answers for an address that is no registration's start (seen on driver 580).
  if (answer == code::invalid_value) {
    return error(errc::gpu_not_registered, failed.message(), failed.where(), failed.hint());
  }
  return failed;
}

result<void*> cuda_driver::device_address(void* host_memory) {
  address_t address = 0;
  const status answer =
      in_context([&] { return calls_.cuMemHostGetDevicePointer_v2(&address, host_memory, 0); });
  if (answer == code::success) {
    return pointer_of(address);
  }
  const auto known = classify(host_memory);
  if (known && known->kind == memory_kind::managed) {
    return host_memory;  // one address on both sides
  }
  return failure("cuMemHostGetDevicePointer", answer);
}

result<pointer_info> cuda_driver::classify(const void* memory) {
  if (memory == nullptr) {
    return pointer_info{};
  }
  pointer_answers answers;
  std::array<int, 7> asked{pointer_attribute::memory_type,  pointer_attribute::device_address,
                           pointer_attribute::host_address, pointer_attribute::is_managed,
                           pointer_attribute::device,       pointer_attribute::range_start,
                           pointer_attribute::range_bytes};
  std::array<void*, 7> places{&answers.memory_type, &answers.device_address, &answers.host_address,
                              &answers.is_managed,  &answers.device,         &answers.range_start,
                              &answers.range_bytes};
  const status answer = in_context([&] {
    return calls_.cuPointerGetAttributes(static_cast<unsigned>(asked.size()), asked.data(),
                                         places.data(), raw(memory));
  });
  // Either answer is how some versions say that an address is not theirs.
  if (answer == code::invalid_value || answer == code::invalid_context) {
    return decode_pointer(memory, pointer_answers{});
  }
  if (answer != code::success) {
    return failure("cuPointerGetAttributes", answer);
  }
  // CUDA does not tell registered memory from its own pinned memory: cuMemHostGetFlags, documented
  // for the latter only, answers for both (seen on driver 580).
  return decode_pointer(memory, answers);
}

result<void> cuda_driver::advise(const void* memory, bytes_t bytes, advice what,
                                 memory_location where) {
  if (!info_.capabilities.has(capability::advise)) {
    return lacking("advise");
  }
  if (is_coarse_grain(what)) {
    return not_supported("advise", "CUDA memory has no coarse grain");
  }
  const auto location = location_of(where);
  if (!location) {
    return location.error();
  }
  if (calls_.cuMemAdvise != nullptr) {
    const device_t device = location->type == location_host ? cpu_device : location->id;
    return run("cuMemAdvise",
               [&] { return calls_.cuMemAdvise(raw(memory), bytes, advice_value(what), device); });
  }
  return run("cuMemAdvise_v2", [&] {
    return calls_.cuMemAdvise_v2(raw(memory), bytes, advice_value(what), *location);
  });
}

result<void> cuda_driver::prefetch_async(const void* memory, bytes_t bytes, memory_location where,
                                         stream_handle stream) {
  if (!info_.capabilities.has(capability::prefetch)) {
    return lacking("prefetch_async");
  }
  const auto location = location_of(where);
  if (!location) {
    return location.error();
  }
  if (calls_.cuMemPrefetchAsync != nullptr) {
    const device_t device = location->type == location_host ? cpu_device : location->id;
    return run("cuMemPrefetchAsync",
               [&] { return calls_.cuMemPrefetchAsync(raw(memory), bytes, device, raw(stream)); });
  }
  return run("cuMemPrefetchAsync_v2", [&] {
    return calls_.cuMemPrefetchAsync_v2(raw(memory), bytes, *location, 0, raw(stream));
  });
}

memory_shortage cuda_driver::device_shortage(int device, bytes_t requested) {
  memory_shortage amounts{.requested = requested, .free = std::nullopt, .total = std::nullopt};
  if (const auto known = memory_info(device)) {
    amounts.free = known->free;
    amounts.total = known->total;
  }
  return amounts;
}

result<location_t> cuda_driver::location_of(memory_location where) const {
  if (where.where == side::host) {
    return location_t{.type = location_host, .id = 0};
  }
  if (!is_device(where.device)) {
    return device_out_of_range(where.device, devices_.size());
  }
  return location_t{.type = location_device,
                    .id = handles_[static_cast<std::size_t>(where.device)]};
}

}  // namespace berth::runtime::cuda
