// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/host_buffer.hpp"

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace berth::bandwidth {
namespace {

using machine::trait;
using runtime::driver;

// Pages of its own, so that fresh ones are fresh.
result<owned_memory> map_pages(bytes_t bytes) {
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return error(errc::gpu_out_of_memory, fmt::format("the host has no {} bytes", bytes),
                 "berth bandwidth", "measure smaller sizes: --sizes");
  }
  return owned_memory(static_cast<std::byte*>(mapped), [=] { ::munmap(mapped, bytes); });
}

result<owned_memory> make_pinned(driver& gpu, int device, const machine::path& of, bytes_t bytes) {
  const auto caching = of.traits.has(trait::write_combined) ? runtime::host_caching::write_combined
                                                            : runtime::host_caching::cached;
  const auto made = gpu.allocate_pinned(bytes, {.device = device, .caching = caching});
  if (!made) {
    return made.error();
  }
  void* const memory = *made;
  return owned_memory(static_cast<std::byte*>(memory),
                      [&gpu, memory] { static_cast<void>(gpu.free_pinned(memory)); });
}

result<owned_memory> make_registered(driver& gpu, int device, bytes_t bytes) {
  auto pages = map_pages(bytes);
  if (!pages) {
    return pages;
  }
  std::byte* const memory = pages->data();
  std::memset(memory, 0, bytes);
  if (auto locked = gpu.register_host(memory, bytes, {.device = device}); !locked) {
    return locked.error();
  }
  // The pages go after the registration.
  auto kept = std::make_shared<owned_memory>(std::move(*pages));
  return owned_memory(memory, [&gpu, memory, kept]() mutable {
    static_cast<void>(gpu.unregister_host(memory));
    kept.reset();
  });
}

}  // namespace

result<owned_memory> make_host_memory(driver& gpu, int device, const machine::path& of,
                                      bytes_t bytes) {
  switch (of.host) {
    case memory_kind::pinned:
      return make_pinned(gpu, device, of, bytes);
    case memory_kind::registered:
      return make_registered(gpu, device, bytes);
    default: {
      auto pages = map_pages(bytes);
      if (pages && !of.traits.has(trait::fresh_pages)) {
        std::memset(pages->data(), 0, bytes);
      }
      return pages;
    }
  }
}

result<owned_memory> make_device_memory(driver& gpu, int device, bytes_t bytes) {
  const auto made = gpu.allocate_device(device, bytes);
  if (!made) {
    return made.error();
  }
  void* const memory = *made;
  return owned_memory(static_cast<std::byte*>(memory),
                      [&gpu, memory] { static_cast<void>(gpu.free_device(memory)); });
}

}  // namespace berth::bandwidth
