// SPDX-License-Identifier: Apache-2.0
// The memory of the machine as this process has it open: its slice of the shared file, mapped
// once. A buffer's mmap_offset is an offset in this file, so that the user space's own mmap of a
// render node finds the buffer without any help.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "emulator/machine_spec.hpp"
#include "emulator/shared_machine.hpp"

namespace berth::emulator {

class memory_file {
public:
  // Opens the spec's file, or makes one of this process's own where there is none.
  explicit memory_file(const machine_spec& spec);
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() = delete;  // lives as long as the process: the engines use it to the end

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  // False if the system gave no address space or no file; nothing can be allocated then.
  [[nodiscard]] bool usable() const noexcept { return slice_ != nullptr; }

  // Whether other processes of the machine have the same file.
  [[nodiscard]] bool shared() const noexcept { return shared_; }

  // An offset for so many bytes, which read as zero. Nothing when the slice is full.
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t bytes);
  void give_back(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] char* host(std::uint64_t offset) const noexcept {
    return slice_ + (offset - slice_offset_);
  }

  // Accounts for device memory. False if the device has not that much left.
  [[nodiscard]] bool charge(std::uint32_t gpu, std::uint64_t bytes, std::uint64_t limit);
  void uncharge(std::uint32_t gpu, std::uint64_t bytes);

  // Another process's extent. Null if it can't be mapped.
  [[nodiscard]] char* map_foreign(std::uint64_t offset, std::uint64_t bytes) const;
  void unmap_foreign(char* at, std::uint64_t bytes) const;
  // This process has handed out a handle of its memory: it must outlive the process.
  void mark_exported();

private:
  void open(const machine_spec& spec);
  void claim_slot();
  void clear_dead_slots();

  int descriptor_ = -1;
  bool shared_ = false;
  machine_ledger* ledger_ = nullptr;
  std::size_t slot_ = 0;
  std::uint64_t slice_bytes_;
  std::uint64_t slice_offset_ = 0;
  char* slice_ = nullptr;
  std::mutex lock_;
  std::map<std::uint64_t, std::uint64_t> free_;  // extents: offset to bytes
};

}  // namespace berth::emulator
