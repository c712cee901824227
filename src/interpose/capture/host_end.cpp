// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/host_end.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace berth::interpose {
namespace {

constexpr std::uint64_t page = 4096;
constexpr unsigned samples = 8;

// Bits of an entry of /proc/self/pagemap.
constexpr std::uint64_t present = std::uint64_t{1} << 63U;
constexpr std::uint64_t of_file_or_shared = std::uint64_t{1} << 61U;

// Flags of get_mempolicy (linux/mempolicy.h): the node of an address.
constexpr unsigned long node_of_address = 1U | 2U;

// For pages that are not there.
bool is_in_page_cache(std::uintptr_t address) noexcept {
  unsigned char state = 0;
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
  unsigned fresh = 0;
  unsigned of_file = 0;
  unsigned seen = 0;
  for (unsigned sample = 0; sample < samples; ++sample) {
    const auto address = end.first + end.bytes / samples * (sample + 1) - 1;
    std::uint64_t entry = 0;
    if (::pread(map, &entry, sizeof entry, static_cast<off_t>(address / page * sizeof entry)) !=
        static_cast<ssize_t>(sizeof entry)) {
      break;
    }
    ++seen;
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

std::uint64_t sample_hash(const void* memory, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t most = 64;
  constexpr std::uint64_t width = 64;
  const auto* const first = static_cast<const unsigned char*>(memory);
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U ^ bytes;
  const auto add = [&](std::uint64_t at, std::uint64_t length) {
    for (std::uint64_t index = 0; index < length; index += sizeof(std::uint64_t)) {
      std::uint64_t part = 0;
      std::memcpy(&part, first + at + index, std::min<std::uint64_t>(sizeof part, length - index));
      hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15U;
      hash ^= hash >> 29;
    }
  };
  if (bytes <= most * width) {
    add(0, bytes);
    return hash;
  }
  for (std::uint64_t sample = 0; sample < most; ++sample) {
    add((bytes - width) / (most - 1) * sample, width);
  }
  return hash;
}

}  // namespace berth::interpose
