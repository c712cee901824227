// SPDX-License-Identifier: Apache-2.0
#include "memory/registrations.hpp"

#include <unistd.h>

#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace berth::memory {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::byte* page_start(std::byte* address) {
  const auto offset = reinterpret_cast<std::uintptr_t>(address) % page_size();  // NOLINT
  return address - offset;
}

}  // namespace

result<std::vector<std::byte*>> registrations::acquire(std::span<std::byte> memory,
                                                       const runtime::register_options& options) {
  if (memory.empty() || memory.data() == nullptr) {
    return error(errc::memory_invalid_size, "an empty range cannot be page-locked", "register");
  }
  const std::scoped_lock lock(mutex_);
  std::byte* at = page_start(memory.data());
  std::byte* const end = page_start(memory.data() + memory.size() - 1) + page_size();
  std::vector<std::byte*> taken;
  auto next = pieces_.upper_bound(at);
  if (next != pieces_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at) {
    --next;
  }
  result<void> locked;
  while (at < end && locked) {
    if (next != pieces_.end() && next->first <= at) {
      ++next->second.owners;
      taken.push_back(next->first);
      at = next->first + next->second.bytes;
      ++next;
    } else {
      std::byte* const gap_end = next != pieces_.end() && next->first < end ? next->first : end;
      locked = lock_pages(at, gap_end, options, taken);
      at = gap_end;
    }
  }
  if (!locked) {
    for (auto* const start : taken) {
      static_cast<void>(release_one(start));  // the error that led here is the one to tell
    }
    return locked.error();
  }
  return taken;
}

result<void> registrations::lock_pages(std::byte* begin, std::byte* end,
                                       const runtime::register_options& options,
                                       std::vector<std::byte*>& taken) {
  const auto bytes = static_cast<bytes_t>(end - begin);
  if (auto admitted = budget_.admit(bytes); !admitted) {
    return admitted;
  }
  auto locked = gpu_.register_host(begin, bytes, options);
  const bool by_program = !locked && locked.error().code() == errc::gpu_already_registered;
  if (!locked) {
    budget_.release(bytes);
  }
  if (!locked && !by_program) {
    const auto limit = memlock_limit_words();
    return error(locked.error().code(),
                 fmt::format("{}{}", locked.error().message(),
                             limit.empty() ? "" : fmt::format("; {}", limit)),
                 locked.error().where(), locked.error().hint());
  }
  pieces_.emplace(begin, piece{.bytes = bytes, .owners = 1, .ours = !by_program});
  taken.push_back(begin);
  return {};
}

result<void> registrations::release(const std::vector<std::byte*>& pieces) {
  const std::scoped_lock lock(mutex_);
  result<void> first;
  for (auto* const start : pieces) {
    auto released = release_one(start);
    if (!released && first) {
      first = std::move(released);
    }
  }
  return first;
}

result<void> registrations::release_one(std::byte* start) {
  const auto found = pieces_.find(start);
  if (found == pieces_.end() || --found->second.owners > 0) {
    return {};
  }
  const auto [bytes, owners, ours] = found->second;
  pieces_.erase(found);
  if (!ours) {
    return {};
  }
  budget_.release(bytes);
  return gpu_.unregister_host(start);
}

}  // namespace berth::memory
