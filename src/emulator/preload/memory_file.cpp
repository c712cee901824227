// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/memory_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "emulator/preload/system.hpp"

namespace berth::emulator {
namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

void* map_shared(int file, std::uint64_t offset, std::uint64_t bytes) noexcept {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
                        static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : at;
}

bool is_dead(std::int32_t pid) noexcept {
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

memory_file::memory_file(const machine_spec& spec) : slice_bytes_(spec.slice_bytes) {
  open(spec);
  if (descriptor_ < 0 || ledger_ == nullptr) {
    say("no memory file: allocations will fail");
    return;
  }
  claim_slot();
  slice_offset_ = first_slice_offset + slot_ * slice_bytes_;
  slice_ = static_cast<char*>(map_shared(descriptor_, slice_offset_, slice_bytes_));
  if (slice_ == nullptr) {
    say("no address space for the devices' memory (is it limited, ulimit -v?): allocations will "
        "fail");
    return;
  }
  madvise(slice_, slice_bytes_, MADV_DONTDUMP);
  free_.emplace(slice_offset_, slice_bytes_);
}

void memory_file::open(const machine_spec& spec) {
  if (!spec.memory_file.empty()) {
    descriptor_ = moved_up(static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, spec.memory_file.c_str(), O_RDWR | O_CLOEXEC)));
  }
  shared_ = descriptor_ >= 0;
  if (!shared_) {
    descriptor_ = moved_up(memfd_create("berth-emulator", MFD_CLOEXEC));
    if (descriptor_ < 0 ||
        ftruncate(descriptor_, static_cast<off_t>(shared_file_bytes(slice_bytes_))) != 0) {
      return;
    }
  }
  ledger_ = static_cast<machine_ledger*>(map_shared(descriptor_, 0, first_slice_offset));
  if (!shared_ && ledger_ != nullptr) {
    initialise(*ledger_);
  }
}

void memory_file::claim_slot() {
  const ledger_hold hold(*ledger_);
  clear_dead_slots();
  auto& slots = ledger_->slots;
  auto free_slot = std::find_if(slots.begin(), slots.end(),
                                [](const machine_slot& slot) { return slot.pid == 0; });
  if (free_slot == slots.end()) {
    say("more than 1024 processes use the emulated machine: this one shares another's memory");
    free_slot = slots.end() - 1;
  }
  free_slot->pid = getpid();
  slot_ = static_cast<std::size_t>(free_slot - slots.begin());
}

// Memory of processes that have ended goes back, except what another process may still have open.
void memory_file::clear_dead_slots() {
  for (std::size_t index = 0; index < most_processes; ++index) {
    auto& slot = ledger_->slots[index];
    if (slot.pid == 0 || !is_dead(slot.pid)) {
      continue;
    }
    slot.used.fill(0);
    if (slot.exported == 0) {
      fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(first_slice_offset + index * slice_bytes_),
                static_cast<off_t>(slice_bytes_));
      slot.pid = 0;
    }
  }
}

std::optional<std::uint64_t> memory_file::take(std::uint64_t bytes) {
  bytes = whole_pages(bytes);
  const std::lock_guard hold(lock_);
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& extent) { return extent.second >= bytes; });
  if (found == free_.end() || bytes == 0) {
    return std::nullopt;
  }
  const auto [offset, size] = *found;
  free_.erase(found);
  if (size > bytes) {
    free_.emplace(offset + bytes, size - bytes);
  }
  return offset;
}

void memory_file::give_back(std::uint64_t offset, std::uint64_t bytes) {
  bytes = whole_pages(bytes);
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
  const std::lock_guard hold(lock_);
  auto next = free_.upper_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

bool memory_file::charge(std::uint32_t gpu, std::uint64_t bytes, std::uint64_t limit) {
  const ledger_hold hold(*ledger_);
  std::uint64_t used = 0;
  for (const auto& slot : ledger_->slots) {
    used += slot.pid != 0 ? slot.used[gpu] : 0;
  }
  if (bytes > limit || used > limit - bytes) {
    clear_dead_slots();
    used = 0;
    for (const auto& slot : ledger_->slots) {
      used += slot.pid != 0 ? slot.used[gpu] : 0;
    }
  }
  if (bytes > limit || used > limit - bytes) {
    return false;
  }
  ledger_->slots[slot_].used[gpu] += bytes;
  return true;
}

void memory_file::uncharge(std::uint32_t gpu, std::uint64_t bytes) {
  const ledger_hold hold(*ledger_);
  auto& used = ledger_->slots[slot_].used[gpu];
  used -= std::min(used, bytes);
}

char* memory_file::map_foreign(std::uint64_t offset, std::uint64_t bytes) const {
  return static_cast<char*>(map_shared(descriptor_, offset, whole_pages(bytes)));
}

void memory_file::unmap_foreign(char* at, std::uint64_t bytes) const {
  munmap(at, whole_pages(bytes));
}

void memory_file::mark_exported() {
  const ledger_hold hold(*ledger_);
  ledger_->slots[slot_].exported = 1;
}

}  // namespace berth::emulator
