// SPDX-License-Identifier: Apache-2.0
// The calls of the driver that concern memory. Each answers 0 or an error number.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/preload/driver_calls.hpp"
#include "emulator/preload/kfd_abi.hpp"

namespace berth::emulator {

// The index of the device that has this id of the driver's. Nothing for another number.
[[nodiscard]] std::optional<std::uint32_t> gpu_index(driver& in, std::uint32_t kfd_id);

int alloc_memory(driver& in, kfd::alloc_memory_args& args);
int free_memory(driver& in, kfd::free_memory_args& args);
int map_memory(driver& in, kfd::map_memory_args& args);
int svm(driver& in, kfd::svm_args& args, address_attributes::values attributes);
// Memory of one process in another's: only where processes share the machine.
int ipc_export(driver& in, kfd::ipc_export_args& args);
int ipc_import(driver& in, kfd::ipc_import_args& args);

}  // namespace berth::emulator
