// SPDX-License-Identifier: Apache-2.0
// The calls of the driver (ioctl on /dev/kfd) on an emulated machine.
#pragma once

#include <cstdint>
#include <mutex>

#include "emulator/preload/emulated_machine.hpp"
#include "emulator/preload/poller.hpp"

namespace berth::emulator {

// The doorbells of each device have a region of the kfd file of their own; user space masks the
// offset before it knows the page size, so the region's number must stand above bit 31.
inline constexpr unsigned doorbell_region_shift = 33;
inline constexpr std::uint64_t kfd_file_bytes = std::uint64_t{most_gpus + 2}
                                                << doorbell_region_shift;

class driver {
public:
  explicit driver(machine_spec spec);

  [[nodiscard]] emulated_machine& machine() noexcept { return machine_; }
  [[nodiscard]] poller& engines() noexcept { return engines_; }
  [[nodiscard]] int kfd_descriptor() const noexcept { return kfd_descriptor_; }
  [[nodiscard]] char* kfd_memory() const noexcept { return kfd_memory_; }
  [[nodiscard]] std::uint32_t next_queue_id() noexcept { return ++last_queue_id_; }

  // 0, or the error number that the kernel would answer. `argument` has as many bytes as the
  // request says; those that this version of the interface does not know stay as they are.
  int call(unsigned long request, void* argument);

private:
  emulated_machine machine_;
  poller& engines_;
  int kfd_descriptor_ = -1;
  char* kfd_memory_ = nullptr;
  std::atomic<std::uint32_t> last_queue_id_{0};
};

}  // namespace berth::emulator
