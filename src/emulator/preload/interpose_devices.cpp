// SPDX-License-Identifier: Apache-2.0
// The calls that reach the devices themselves: ioctl, the few of libdrm that AMD's user space uses,
// and memory policies where the machine's NUMA nodes are invented.
#include <fcntl.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <string>
#include <string_view>

#include "emulator/preload/kfd_abi.hpp"
#include "emulator/preload/process.hpp"
#include "emulator/preload/system.hpp"

#define BERTH_EXPORT extern "C" [[gnu::visibility("default")]]

namespace berth::emulator {
namespace {

// libdrm's handles are opaque: ours point at the description of a device.
const gpu_spec* gpu_of_handle(const void* handle) noexcept {
  auto* const driver = opened_driver();
  if (driver == nullptr) {
    return nullptr;
  }
  for (const auto& gpu : driver->machine().spec.gpus) {
    if (&gpu == handle) {
      return &gpu;
    }
  }
  return nullptr;
}

// The device whose render node the program opened last in this thread: all of them are the same
// file, so a descriptor does not tell.
thread_local std::uint32_t last_render_minor = 0;

const gpu_spec* gpu_of_minor(std::uint32_t minor) noexcept {
  auto* const driver = open_driver();
  if (driver == nullptr) {
    return nullptr;
  }
  for (const auto& gpu : driver->machine().spec.gpus) {
    if (gpu.render_minor == minor) {
      return &gpu;
    }
  }
  return nullptr;
}

// Names that AMD's user space shares between processes. Those of an emulated machine must not meet
// those of a real one, and go with the machine: they get the overlay folder's name in front.
std::string private_name(const char* name) {
  constexpr std::array<std::string_view, 3> shared_by_rocm = {"hsakmt_", "rocm_smi_", "hip_"};
  const std::string_view given(name);
  const auto& root = overlay_root();
  const auto bare = given.substr(given.starts_with('/') ? 1 : 0);
  for (const auto prefix : shared_by_rocm) {
    if (!root.empty() && bare.starts_with(prefix)) {
      return "/" + root.substr(root.rfind('/') + 1) + "-" + std::string(bare);
    }
  }
  return name;
}

}  // namespace
}  // namespace berth::emulator

using namespace berth::emulator;  // NOLINT(google-build-using-namespace): nothing else stands here

BERTH_EXPORT int ioctl(int descriptor, unsigned long request, ...) {
  static auto* const real = next<int(int, unsigned long, ...)>("ioctl");
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) != kfd::ioctl_type ||
      kind_of_descriptor(descriptor) != descriptor_kind::kfd) {
    return real(descriptor, request, argument);
  }
  const int error = is_forked_child() ? EBADF : opened_driver()->call(request, argument);
  if (error != 0) {
    errno = error;
    return -1;
  }
  return 0;
}

// NOLINTBEGIN(readability-identifier-naming): the names are libdrm's
BERTH_EXPORT int drmOpenRender(int minor) {
  if (!overlay_root().empty() && gpu_of_minor(static_cast<std::uint32_t>(minor)) != nullptr) {
    last_render_minor = static_cast<std::uint32_t>(minor);
    return open(("/dev/dri/renderD" + std::to_string(minor)).c_str(), O_RDWR | O_CLOEXEC);
  }
  static auto* const real = next<int(int)>("drmOpenRender");
  return real != nullptr ? real(minor) : -ENODEV;
}

BERTH_EXPORT int drmClose(int descriptor) {
  return close(descriptor);
}

// NOLINTEND(readability-identifier-naming)

BERTH_EXPORT int amdgpu_device_initialize(int descriptor, std::uint32_t* major,
                                          std::uint32_t* minor, void** handle) {
  if (kind_of_descriptor(descriptor) == descriptor_kind::render) {
    *major = 3;
    *minor = 46;
    const auto* const gpu = gpu_of_minor(last_render_minor);
    *handle = host_pointer<void>(reinterpret_cast<std::uintptr_t>(gpu));
    return gpu != nullptr ? 0 : -ENODEV;
  }
  static auto* const real =
      next<int(int, std::uint32_t*, std::uint32_t*, void**)>("amdgpu_device_initialize");
  return real != nullptr ? real(descriptor, major, minor, handle) : -ENODEV;
}

BERTH_EXPORT int amdgpu_device_deinitialize(void* handle) {
  if (gpu_of_handle(handle) != nullptr) {
    return 0;
  }
  static auto* const real = next<int(void*)>("amdgpu_device_deinitialize");
  return real != nullptr ? real(handle) : -ENODEV;
}

BERTH_EXPORT const char* amdgpu_get_marketing_name(void* handle) {
  if (const auto* const gpu = gpu_of_handle(handle)) {
    return gpu->title.c_str();
  }
  static auto* const real = next<const char*(void*)>("amdgpu_get_marketing_name");
  return real != nullptr ? real(handle) : nullptr;
}

BERTH_EXPORT long mbind(void* at, unsigned long bytes, int mode, const unsigned long* nodes,
                        unsigned long most, unsigned flags) {
  const auto* const machine = described_machine();
  if (machine != nullptr && machine->numa == numa_nodes::invented) {
    return 0;
  }
  return syscall(SYS_mbind, at, bytes, mode, nodes, most, flags);
}

BERTH_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  static auto* const real = next<int(const char*, int, mode_t)>("shm_open");
  return real(private_name(name).c_str(), flags, mode);
}

BERTH_EXPORT int shm_unlink(const char* name) {
  static auto* const real = next<int(const char*)>("shm_unlink");
  return real(private_name(name).c_str());
}

BERTH_EXPORT sem_t* sem_open(const char* name, int flags, ...) {
  static auto* const real = next<sem_t*(const char*, int, ...)>("sem_open");
  const auto own_name = private_name(name);
  if ((flags & O_CREAT) == 0) {
    return real(own_name.c_str(), flags);
  }
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  const auto value = va_arg(arguments, unsigned);
  va_end(arguments);
  return real(own_name.c_str(), flags, mode, value);
}

BERTH_EXPORT int sem_unlink(const char* name) {
  static auto* const real = next<int(const char*)>("sem_unlink");
  return real(private_name(name).c_str());
}
