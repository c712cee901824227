// SPDX-License-Identifier: Apache-2.0
#include "runtime/page_probe.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace berth::runtime {
namespace {

// Bits of an entry of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t present = std::uint64_t{1} << 63U;
constexpr std::uint64_t file_or_shared = std::uint64_t{1} << 61U;

void* page_of(std::uintptr_t address) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
  return reinterpret_cast<void*>(address / host_page * host_page);
}

bool is_in_memory(std::uintptr_t address) noexcept {
  unsigned char state = 0;
  return mincore(page_of(address), host_page, &state) == 0 && (state & 1U) != 0;
}

// Whether /proc/self/maps gives the page that permission: 0 read, 1 write. True where it cannot be
// read. Takes some hundred microseconds.
bool has_permission(std::uintptr_t address, std::size_t which) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    // "7f00-7f10 r--p ..."
    std::istringstream fields(line);
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string permissions;
    fields >> std::hex >> first >> dash >> end >> permissions;
    if (fields && first <= address && address < end) {
      return permissions.size() > which && permissions[which] != '-';
    }
  }
  return !maps.is_open();
}

bool can_populate_page(std::uintptr_t address, int how) noexcept {
  if (madvise(page_of(address), host_page, how) == 0) {
    return true;
  }
  if (errno == EFAULT || errno == ENOMEM || errno == EHWPOISON) {
    return false;
  }
  // EINVAL: no permission, memory of a device, or a kernel that does not know the advice.
  try {
    return has_permission(address, how == advice_populate_read ? 0 : 1);
  } catch (...) {
    return true;  // out of host memory: not known
  }
}

// Whether the two outer pages can be used so.
bool can_populate(std::uintptr_t first, bytes_t bytes, int how) noexcept {
  return can_populate_page(first, how) && can_populate_page(first + bytes - 1, how);
}

}  // namespace

page_probe::page_probe() noexcept : pagemap_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

page_probe::~page_probe() {
  if (pagemap_ >= 0) {
    ::close(pagemap_);
  }
}

pages page_probe::look(const void* memory, bytes_t bytes, unsigned samples) const noexcept {
  if (pagemap_ < 0 || bytes < samples * host_page || samples == 0) {
    return pages::resident;
  }
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  unsigned fresh = 0;
  unsigned of_file = 0;
  for (unsigned sample = 0; sample < samples; ++sample) {
    // Each at the end of its share, not at the start: allocators write a header into the first
    // page.
    const std::uintptr_t address = first + bytes / samples * (sample + 1) - 1;
    std::uint64_t entry = 0;
    const auto offset = static_cast<off_t>(address / host_page * sizeof entry);
    if (pread(pagemap_, &entry, sizeof entry, offset) != sizeof entry) {
      return pages::resident;
    }
    if ((entry & present) != 0) {
      of_file += (entry & file_or_shared) != 0 ? 1 : 0;
    } else if (is_in_memory(address)) {
      ++of_file;  // in the page cache, not mapped in yet
    } else {
      ++fresh;
    }
  }
  if (of_file > samples / 2) {
    return pages::of_file;
  }
  return fresh > samples / 2 ? pages::fresh : pages::resident;
}

bool is_cached(const void* address) noexcept {
  return is_in_memory(reinterpret_cast<std::uintptr_t>(address));
}

bool is_mapped(const void* memory, bytes_t bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes == 0) {
    return true;
  }
  if (first + bytes < first) {
    return false;
  }
  const auto* const from = page_of(first);
  const bytes_t length = first + bytes - reinterpret_cast<std::uintptr_t>(from);
  // MS_ASYNC does nothing on Linux but look whether all of it is mapped.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): msync takes no const
  return msync(const_cast<void*>(from), length, MS_ASYNC) == 0 || errno != ENOMEM;
}

bool is_readable(const void* first, bytes_t bytes) noexcept {
  return bytes == 0 ||
         can_populate(reinterpret_cast<std::uintptr_t>(first), bytes, advice_populate_read);
}

bool is_writable(void* first, bytes_t bytes) noexcept {
  return bytes == 0 ||
         can_populate(reinterpret_cast<std::uintptr_t>(first), bytes, advice_populate_write);
}

}  // namespace berth::runtime
