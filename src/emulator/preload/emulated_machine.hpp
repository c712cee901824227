// SPDX-License-Identifier: Apache-2.0
// The state of the emulated machine in this process: what the calls of the driver and the engines
// of the devices share.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "emulator/machine_spec.hpp"
#include "emulator/preload/address_attributes.hpp"
#include "emulator/preload/buffers.hpp"
#include "emulator/preload/code_objects.hpp"
#include "emulator/preload/device_clock.hpp"
#include "emulator/preload/events.hpp"
#include "emulator/preload/faults.hpp"
#include "emulator/preload/ground_truth.hpp"
#include "emulator/preload/kernel_hooks.hpp"
#include "emulator/preload/memory_file.hpp"
#include "emulator/preload/system.hpp"

namespace berth::emulator {

struct emulated_machine {
  explicit emulated_machine(machine_spec of)
      : spec(std::move(of)),
        memory(*new memory_file(spec)),
        faults(spec.faults),
        trace(spec.trace_file),
        hooks(spec.kernel_library),
        xnack(spec.xnack) {}

  // What a GPU address means to a device: a buffer, or ordinary memory that it may access.
  [[nodiscard]] std::optional<located> locate(std::uint64_t address) const {
    if (auto found = buffers.locate(address)) {
      return found;
    }
    auto reach = attributes.accessible(address);
    if (reach == 0 && xnack.load() == xnack_mode::on) {
      reach = UINT64_MAX - address;
    }
    if (reach == 0) {
      return std::nullopt;
    }
    return located{.host = host_pointer<char>(address),
                   .available = reach,
                   .kind = "managed",
                   .trust = backing::of_program};
  }

  // The host address of a word that the engines share with the program: a pointer, a signal.
  template <typename Word>
  [[nodiscard]] Word* word(std::uint64_t address) const {
    const auto found = locate(address);
    return found && found->available >= sizeof(Word) ? reinterpret_cast<Word*>(found->host)
                                                     : nullptr;
  }

  void count_without_effect(const std::string& kernel) {
    const std::lock_guard hold(without_effect_lock);
    ++without_effect[kernel];
  }

  const machine_spec spec;
  memory_file& memory;
  buffer_table buffers;
  address_attributes attributes;
  event_table events;
  device_clock clock;
  fault_plan faults;
  ground_truth trace;
  code_objects code;
  kernel_hooks hooks;
  std::atomic<xnack_mode> xnack;
  std::mutex without_effect_lock;
  std::map<std::string, std::uint64_t> without_effect;  // kernels and how often
};

}  // namespace berth::emulator
