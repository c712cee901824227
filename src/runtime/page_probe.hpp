// SPDX-License-Identifier: Apache-2.0
// What can be known of host pages of this process without touching them: whether they are mapped,
// there yet, or of a file. A few system calls for any size: a sample of pages stands for all.
#pragma once

#include <cstdint>

#include "berth/units.hpp"

namespace berth::runtime {

inline constexpr bytes_t host_page = 4096;
inline constexpr bytes_t huge_page = 2 * mib;  // what MADV_HUGEPAGE asks for

// Advice to madvise since Linux 5.14: makes pages present, for reading or for writing. Older
// headers lack the names; older kernels answer EINVAL, and pages are faulted in one by one as ever.
inline constexpr int advice_populate_read = 22;
inline constexpr int advice_populate_write = 23;

enum class pages : std::uint8_t {
  resident,  // most are there; also the answer where nothing can be found out
  fresh,     // most were never touched, or are swapped out
  of_file,   // most belong to a mapped file or to shared memory
};

class page_probe {
public:
  page_probe() noexcept;
  page_probe(const page_probe&) = delete;
  page_probe& operator=(const page_probe&) = delete;
  page_probe(page_probe&&) = delete;
  page_probe& operator=(page_probe&&) = delete;
  ~page_probe();

  // By `samples` pages, evenly spread; about half a microsecond for each. Never touches them.
  [[nodiscard]] pages look(const void* first, bytes_t bytes, unsigned samples = 16) const noexcept;

private:
  int pagemap_;  // of this process; -1: not to be had
};

// Whether the address's page is in memory, mapped in or not. One system call.
[[nodiscard]] bool is_cached(const void* address) noexcept;

// False where a part of [first, first + bytes) is surely not mapped. One system call, whose time
// goes with the number of mappings, not with the bytes.
[[nodiscard]] bool is_mapped(const void* first, bytes_t bytes) noexcept;

// False where the first or the last page surely cannot be read, or written: not mapped, protected,
// or beyond the end of the file. Faults those two pages in. True on kernels before 5.14.
[[nodiscard]] bool is_readable(const void* first, bytes_t bytes) noexcept;
[[nodiscard]] bool is_writable(void* first, bytes_t bytes) noexcept;

}  // namespace berth::runtime
