// SPDX-License-Identifier: Apache-2.0
// The four resources: each asks the runtime, notes what it got, and frees by the matching call.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/memory_resource.hpp"
#include "memory/context_state.hpp"
#include "memory/size_classes.hpp"

namespace berth {
namespace {

result<void> check_request(const memory::context_state& home, std::string_view call, bytes_t bytes,
                           bytes_t alignment, bytes_t largest_alignment) {
  if (auto open = home.require_open(call); !open) {
    return open;
  }
  if (bytes == 0 || bytes > memory::largest_block) {
    return error(errc::memory_invalid_size,
                 bytes == 0 ? std::string("0 bytes cannot be allocated")
                            : fmt::format("{} bytes are more than any machine has", bytes),
                 std::string(call));
  }
  if (!std::has_single_bit(alignment) || alignment > largest_alignment) {
    return error(errc::memory_invalid_alignment,
                 fmt::format("an alignment of {} cannot be had", alignment), std::string(call),
                 fmt::format("ask for a power of two up to {}", largest_alignment));
  }
  return {};
}

// Notes what the runtime gave; frees it again if there is no memory to note it in.
result<void*> noted(memory::context_state& home, result<void*> memory, memory_kind kind,
                    bytes_t bytes) {
  if (memory) {
    home.note(*memory, kind, bytes);
  }
  return memory;
}

}  // namespace

namespace detail {

resource_base::resource_base(std::shared_ptr<memory::context_state> home, int device) noexcept
    : home_(std::move(home)), device_(device) {}

bool resource_base::is_open() const noexcept {
  return home_->is_open();
}

result<void> resource_base::try_free(void* memory, memory_kind kind) const {
  if (memory == nullptr) {
    return {};
  }
  const auto bytes = home_->forget(memory, kind);
  if (!bytes) {
    return bytes.error();
  }
  switch (kind) {
    case memory_kind::pinned:
      home_->budget().release(*bytes);
      return home_->gpu().free_pinned(memory);
    case memory_kind::device:
      return home_->gpu().free_device(memory);
    case memory_kind::managed:
      return home_->gpu().free_managed(memory);
    default:
      std::free(memory);  // NOLINT: the counterpart of aligned_alloc
      return {};
  }
}

}  // namespace detail

pinned_resource::pinned_resource(std::shared_ptr<memory::context_state> home,
                                 runtime::pinned_options options)
    : resource_base(std::move(home), options.device), options_(options) {}

result<void*> pinned_resource::try_allocate(bytes_t bytes, bytes_t alignment) const {
  if (auto fine =
          check_request(*home_, "pinned_resource::allocate", bytes, alignment, resource_alignment);
      !fine) {
    return fine.error();
  }
  if (auto admitted = home_->budget().admit(bytes); !admitted) {
    return admitted.error();
  }
  auto memory = home_->gpu().allocate_pinned(bytes, options_);
  if (!memory) {
    home_->budget().release(bytes);
    const auto limit = memory::memlock_limit_words();
    if (memory.error().code() != errc::gpu_out_of_memory || limit.empty()) {
      return memory;
    }
    const auto& why = memory.error();
    return error(why.code(), fmt::format("{}; {}", why.message(), limit), why.where(), why.hint())
        .with(
            why.shortage().value_or(memory_shortage{.requested = bytes, .free = {}, .total = {}}));
  }
  return noted(*home_, std::move(memory), kind, bytes);
}

device_resource::device_resource(std::shared_ptr<memory::context_state> home, int device,
                                 runtime::coherence grain)
    : resource_base(std::move(home), device), grain_(grain) {}

result<void*> device_resource::try_allocate(bytes_t bytes, bytes_t alignment) const {
  if (auto fine =
          check_request(*home_, "device_resource::allocate", bytes, alignment, resource_alignment);
      !fine) {
    return fine.error();
  }
  return noted(*home_, home_->gpu().allocate_device(device_, bytes, grain_), kind, bytes);
}

managed_resource::managed_resource(std::shared_ptr<memory::context_state> home, int device)
    : resource_base(std::move(home), device) {}

result<void*> managed_resource::try_allocate(bytes_t bytes, bytes_t alignment) const {
  if (auto fine =
          check_request(*home_, "managed_resource::allocate", bytes, alignment, resource_alignment);
      !fine) {
    return fine.error();
  }
  return noted(*home_, home_->gpu().allocate_managed(device_, bytes), kind, bytes);
}

pageable_resource::pageable_resource(std::shared_ptr<memory::context_state> home)
    : resource_base(std::move(home), 0) {}

result<void*> pageable_resource::try_allocate(bytes_t bytes, bytes_t alignment) const {
  constexpr bytes_t largest_alignment = gib;
  if (auto fine =
          check_request(*home_, "pageable_resource::allocate", bytes, alignment, largest_alignment);
      !fine) {
    return fine.error();
  }
  const auto rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);  // NOLINT: owned by the resource
  if (memory == nullptr) {
    return error(errc::gpu_out_of_memory,
                 fmt::format("{} of host memory cannot be had", format_bytes(bytes)),
                 "pageable_resource::allocate")
        .with({.requested = bytes, .free = {}, .total = {}});
  }
  return noted(*home_, result<void*>(memory), kind, bytes);
}

result<page_placement> try_locate_pages(const void* memory, bytes_t bytes) {
  page_placement found;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(memory);  // NOLINT: page arithmetic
  if (bytes == 0) {
    return found;
  }
  std::vector<void*> pages;
  for (auto at = address / page * page; at < address + bytes; at += page) {
    pages.push_back(reinterpret_cast<void*>(at));  // NOLINT: page arithmetic
  }
  std::vector<int> nodes(pages.size(), -ENOENT);
  // move_pages without target nodes moves nothing and tells where the pages are.
  if (::syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) < 0) {
    return error(errc::gpu_not_supported,
                 fmt::format("the kernel does not tell where pages are: {}",
                             std::strerror(errno)),  // NOLINT(concurrency-mt-unsafe)
                 "try_locate_pages");
  }
  for (const int node : nodes) {
    if (node >= 0) {
      ++found.pages_by_node[node];
    } else {
      ++found.absent_pages;
    }
  }
  return found;
}

}  // namespace berth
