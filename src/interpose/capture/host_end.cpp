// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/host_end.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace berth::interpose {
namespace {

// A look costs about half a microsecond, a copy of a megabyte a hundred.
constexpr unsigned looks = 8;
constexpr unsigned looks_at_little = 3;
constexpr std::uint64_t little = 16U << 20;

// Bits of an entry of /proc/self/pagemap.
constexpr std::uint64_t present = std::uint64_t{1} << 63U;
constexpr std::uint64_t swapped = std::uint64_t{1} << 62U;
constexpr std::uint64_t of_file_or_shared = std::uint64_t{1} << 61U;

// Flags of get_mempolicy (linux/mempolicy.h): the node of an address.
constexpr unsigned long node_of_address = 1U | 2U;

// For pages that are not there.
std::uint64_t page_bytes() noexcept {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool is_in_page_cache(std::uintptr_t address) noexcept {
  unsigned char state = 0;
  const auto page = page_bytes();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
  return ::mincore(reinterpret_cast<void*>(address / page * page), page, &state) == 0 &&
         (state & 1U) != 0;
}

host_pages pages_of(const host_range& end) noexcept {
  // Opened each time: the program may close all descriptors, or be another after a fork.
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (map < 0) {
    return host_pages::unknown;
  }
  const auto page = page_bytes();
  unsigned fresh = 0;
  unsigned of_file = 0;
  unsigned seen = 0;
  const auto wanted = end.bytes < little ? looks_at_little : looks;
  for (unsigned sample = 0; sample < wanted; ++sample) {
    const auto address = end.first + end.bytes / wanted * (sample + 1) - 1;
    std::uint64_t entry = 0;
    if (::pread(map, &entry, sizeof entry, static_cast<off_t>(address / page * sizeof entry)) !=
        static_cast<ssize_t>(sizeof entry)) {
      break;
    }
    ++seen;
    if ((entry & swapped) != 0) {
      continue;  // touched once: not fresh
    }
    if ((entry & present) != 0) {
      of_file += (entry & of_file_or_shared) != 0 ? 1 : 0;
    } else if (is_in_page_cache(address)) {
      ++of_file;
    } else {
      ++fresh;
    }
  }
  ::close(map);
  if (seen == 0) {
    return host_pages::unknown;
  }
  return of_file > seen / 2 ? host_pages::of_file
         : fresh > seen / 2 ? host_pages::fresh
                            : host_pages::resident;
}

int node_of(std::uintptr_t address) noexcept {
  int node = -1;
  return ::syscall(SYS_get_mempolicy, &node, nullptr, 0UL, address, node_of_address) == 0 ? node
                                                                                          : -1;
}

}  // namespace

void look_at(const host_range& end, raw_event& event) noexcept {
  if (end.first == 0 || end.bytes < least_looked_at) {
    return;
  }
  event.pages = pages_of(end);
  if (event.pages == host_pages::resident || event.pages == host_pages::of_file) {
    event.host_node = node_of(end.first + end.bytes / 2);
  }
}

std::optional<std::uint64_t> sample_hash(const void* memory, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t most = 64;
  constexpr std::uint64_t width = 64;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec has no const
  auto* const first = static_cast<unsigned char*>(const_cast<void*>(memory));
  std::array<iovec, most> from{};
  std::size_t parts = 1;
  if (bytes <= most * width) {
    from[0] = {first, static_cast<std::size_t>(bytes)};
  } else {
    for (parts = 0; parts < most; ++parts) {
      from[parts] = {first + (bytes - width) / (most - 1) * parts, width};
    }
    from[most - 1].iov_base = first + (bytes - width);  // what was rounded off is at the end
  }
  // The kernel's way to the memory fails where a load would end the program.
  std::array<unsigned char, most * width> samples{};
  const auto length = static_cast<std::size_t>(std::min(bytes, most * width));
  const iovec to{samples.data(), length};
  if (::process_vm_readv(::getpid(), &to, 1, from.data(), parts, 0) !=
      static_cast<ssize_t>(length)) {
    return std::nullopt;
  }
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U ^ bytes;
  for (std::size_t at = 0; at < length; at += sizeof(std::uint64_t)) {
    std::uint64_t part = 0;
    std::memcpy(&part, samples.data() + at, sizeof part);  // behind the last byte are zeros
    hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace berth::interpose
