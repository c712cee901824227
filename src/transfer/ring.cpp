// SPDX-License-Identifier: Apache-2.0
#include "transfer/ring.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/numa_policy.hpp"
#include "runtime/page_probe.hpp"

namespace berth::transfer {
namespace {

using runtime::huge_page;

constexpr bytes_t part_alignment = 4096;

// Anonymous memory on a huge page's boundary; null where there is none.
std::byte* map_memory(bytes_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  auto* const first = static_cast<std::byte*>(mapped);
  const bytes_t misplaced = reinterpret_cast<std::uintptr_t>(first) % huge_page;
  const bytes_t before = misplaced == 0 ? 0 : huge_page - misplaced;
  if (before > 0) {
    munmap(first, before);
  }
  munmap(first + before + bytes, huge_page - before);
  static_cast<void>(madvise(first + before, bytes, MADV_HUGEPAGE));
  static_cast<void>(madvise(first + before, bytes, MADV_DONTFORK));
  return first + before;
}

}  // namespace

result<std::unique_ptr<ring>> ring::make(memory::context_state& home, int device, bytes_t bytes) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<ring> made(new ring(home, (bytes + huge_page - 1) / huge_page * huge_page));
  if (auto locked = made->lock_memory(device); !locked) {
    return locked.error();
  }
  if (auto stream = made->make_stream(device); !stream) {
    return stream.error();
  }
  return made;
}

result<void> ring::lock_memory(int device) {
  if (auto admitted = home_.budget().admit(bytes_); !admitted) {
    return admitted;
  }
  memory_ = map_memory(bytes_);
  if (memory_ == nullptr) {
    home_.budget().release(bytes_);
    return error(errc::gpu_out_of_memory,
                 fmt::format("the system has no {} bytes of memory for a ring", bytes_),
                 "copy engine");
  }
  {
    const auto node = home_.gpu().devices()[static_cast<std::size_t>(device)].numa_node;
    // Without the policy the pages come from where this thread runs: slower at most.
    const auto near = runtime::scoped_numa_policy::prefer(node.value_or(-1));
    std::memset(memory_, 0, bytes_);
  }
  auto& gpu = home_.gpu();
  auto locked = gpu.register_host(memory_, bytes_, {.device = device});
  if (!locked) {
    munmap(memory_, bytes_);
    memory_ = nullptr;
    home_.budget().release(bytes_);
    return locked;
  }
  // A device that cannot address host memory still copies from and to it.
  const auto address = gpu.device_address(memory_);
  device_memory_ = address ? static_cast<std::byte*>(*address) : memory_;
  return {};
}

result<void> ring::make_stream(int device) {
  auto& gpu = home_.gpu();
  auto stream = gpu.create_stream(device, {});
  if (!stream) {
    return stream.error();
  }
  stream_ = *stream;
  for (std::uint32_t index = 0; index < most_blocks; ++index) {
    auto event = gpu.create_event(device, {});
    if (!event) {
      return event.error();
    }
    events_.push_back(*event);
  }
  return {};
}

ring::~ring() {
  if (abandoned_) {
    return;
  }
  // Failures here mean that the runtime has shut down: nothing is left to release.
  for (const auto event : events_) {
    static_cast<void>(home_.gpu().destroy_event(event));
  }
  if (stream_) {
    static_cast<void>(home_.gpu().destroy_stream(*stream_));
  }
  if (device_memory_ != nullptr) {
    static_cast<void>(home_.gpu().unregister_host(memory_));
    home_.budget().release(bytes_);
  }
  if (memory_ != nullptr) {
    munmap(memory_, bytes_);
  }
}

std::optional<ring::part> ring::take(bytes_t bytes) noexcept {
  const bytes_t needed = (bytes + part_alignment - 1) / part_alignment * part_alignment;
  const bytes_t skipped = head_ + needed > usable_ ? usable_ - head_ : 0;
  if (used_ + skipped + needed > usable_) {
    return std::nullopt;
  }
  const part taken{.at = skipped > 0 ? 0 : head_, .span = skipped + needed};
  used_ += taken.span;
  head_ = (taken.at + needed) % usable_;
  return taken;
}

void ring::give_back(const part& oldest) noexcept {
  used_ -= oldest.span;
  if (used_ == 0) {
    head_ = 0;  // from the start again: that memory is in the cache
  }
}

void ring::clear(bytes_t used) noexcept {
  usable_ = std::min(bytes_, (used + part_alignment - 1) / part_alignment * part_alignment);
  used_ = 0;
  head_ = 0;
}

}  // namespace berth::transfer
