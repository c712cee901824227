// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/host_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/sim/mapping.hpp"

namespace berth::runtime::sim {
namespace {

// Below this the heap's own reuse decides, and the cost is small.
constexpr bytes_t least_observed = 256 * kib;
constexpr unsigned samples = 16;

constexpr std::uint64_t present = std::uint64_t{1} << 63U;
constexpr std::uint64_t file_or_shared = std::uint64_t{1} << 61U;

bool is_resident(std::uintptr_t address) noexcept {
  unsigned char state = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
  return mincore(reinterpret_cast<void*>(address / page_bytes * page_bytes), page_bytes, &state) ==
             0 &&
         (state & 1U) != 0;
}

bool is_known(std::uintptr_t address) noexcept {
  unsigned char state = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
  return mincore(reinterpret_cast<void*>(address / page_bytes * page_bytes), page_bytes, &state) ==
             0 ||
         errno != ENOMEM;
}

}  // namespace

host_pages::host_pages(page_state how) {
  if (how == page_state::observed) {
    pagemap_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  }
}

host_pages::~host_pages() {
  if (pagemap_ >= 0) {
    close(pagemap_);
  }
}

void host_pages::declare(std::uintptr_t first, bytes_t bytes, page_facts facts) {
  for (auto at = declared_.begin(); at != declared_.end();) {
    const bool overlaps = at->first < first + bytes && first < at->first + at->second.bytes;
    at = overlaps ? declared_.erase(at) : std::next(at);
  }
  declared_.emplace(first, declared{bytes, facts});
}

void host_pages::touched(std::uintptr_t first, bytes_t bytes) {
  for (auto& [start, what] : declared_) {
    if (start < first + bytes && first < start + what.bytes) {
      what.facts.traits = what.facts.traits.without(machine::trait::fresh_pages);
    }
  }
}

page_facts host_pages::facts_of(const std::byte* first, bytes_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const auto after = declared_.upper_bound(address);
  if (after != declared_.begin()) {
    const auto& [start, what] = *std::prev(after);
    if (address < start + what.bytes) {
      return what.facts;
    }
  }
  return {.traits = observe(address, bytes), .numa_node = std::nullopt};
}

machine::trait_set host_pages::observe(std::uintptr_t first, bytes_t bytes) const noexcept {
  if (pagemap_ < 0 || bytes < least_observed) {
    return {};
  }
  unsigned fresh = 0;
  unsigned of_file = 0;
  for (unsigned sample = 0; sample < samples; ++sample) {
    const std::uintptr_t address = first + bytes / samples * sample + page_bytes;
    std::uint64_t entry = 0;
    const auto offset = static_cast<off_t>(address / page_bytes * sizeof entry);
    if (pread(pagemap_, &entry, sizeof entry, offset) != sizeof entry) {
      return {};
    }
    if ((entry & present) != 0) {
      of_file += (entry & file_or_shared) != 0 ? 1 : 0;
    } else if (is_resident(address)) {
      ++of_file;  // in the page cache, not mapped in yet
    } else {
      ++fresh;
    }
  }
  if (of_file > samples / 2) {
    return machine::trait::file_mapped;
  }
  return fresh > samples / 2 ? machine::trait_set(machine::trait::fresh_pages)
                             : machine::trait_set();
}

bool host_pages::is_mapped(const std::byte* first, bytes_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  return bytes == 0 ||
         (address + bytes >= address && is_known(address) && is_known(address + bytes - 1));
}

}  // namespace berth::runtime::sim
