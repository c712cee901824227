// SPDX-License-Identifier: Apache-2.0
// The memory of an emulated machine: one sparse file that all its processes open. A page of
// administration at its start, then one slice of offsets for each process, so that processes
// allocate without asking each other. Only the account of device memory is common.
//
// Words
//   slot    a process's entry in the administration, and the slice that belongs to it
//   extent  a range of offsets in the file
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace berth::emulator {

inline constexpr std::size_t most_gpus = 64;
inline constexpr std::size_t most_processes = 1024;

struct machine_slot {
  std::int32_t pid;       // 0: never used
  std::int32_t exported;  // memory of the slice that another process may still have open
  std::array<std::uint64_t, most_gpus> used;  // bytes of device memory
};

struct machine_ledger {
  pthread_mutex_t lock;  // shared by processes, survives the death of its owner
  std::array<machine_slot, most_processes> slots;
};

// Where the slices begin: behind the ledger, at a size that huge pages divide.
inline constexpr std::uint64_t first_slice_offset = std::uint64_t{4} << 20U;
static_assert(sizeof(machine_ledger) <= first_slice_offset);

// Size of the file: sparse, so that only what is written takes memory.
[[nodiscard]] constexpr std::uint64_t shared_file_bytes(std::uint64_t slice_bytes) noexcept {
  return first_slice_offset + slice_bytes * most_processes;
}

// Prepares the ledger of a new file; all of it is zero before.
inline void initialise(machine_ledger& ledger) noexcept {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&ledger.lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

// Holds the ledger. A process that died while it held the ledger leaves at worst its own slot half
// written, and that is cleared with the process.
class ledger_hold {
public:
  explicit ledger_hold(machine_ledger& ledger) noexcept : ledger_(ledger) {
    constexpr int owner_died = 130;  // EOWNERDEAD
    if (pthread_mutex_lock(&ledger_.lock) == owner_died) {
      pthread_mutex_consistent(&ledger_.lock);
    }
  }
  ledger_hold(const ledger_hold&) = delete;
  ledger_hold& operator=(const ledger_hold&) = delete;
  ~ledger_hold() { pthread_mutex_unlock(&ledger_.lock); }

private:
  machine_ledger& ledger_;
};

}  // namespace berth::emulator
