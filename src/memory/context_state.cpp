// SPDX-License-Identifier: Apache-2.0
#include "memory/context_state.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "memory/pool_core.hpp"

namespace berth::memory {

context_state::context_state(std::shared_ptr<runtime::driver> gpu, std::string reason,
                             bytes_t budget)
    : gpu_(std::move(gpu)),
      reason_(std::move(reason)),
      budget_(budget),
      registered_(*gpu_, budget_) {}

result<void> context_state::require_open(std::string_view call) const {
  if (is_open()) {
    return {};
  }
  return error(
      errc::memory_context_closed, "the context has been closed", std::string(call),
      "keep the context alive for as long as its resources and pools are asked for memory");
}

void context_state::note(void* memory, memory_kind kind, bytes_t bytes) {
  const std::scoped_lock lock(mutex_);
  allocations_.insert_or_assign(memory, allocation{kind, bytes});
}

result<bytes_t> context_state::forget(void* memory, memory_kind kind) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(memory);
  if (found != allocations_.end() && found->second.kind == kind) {
    const auto bytes = found->second.bytes;
    allocations_.erase(found);
    return bytes;
  }
  const auto what = found == allocations_.end()
                        ? std::string("was not given out by this context, or is free already")
                        : fmt::format("is {} memory", to_string(found->second.kind));
  return error(errc::memory_foreign_pointer, fmt::format("the address {}", what),
               fmt::format("{} resource, address {}", to_string(kind), memory),
               "free memory with the resource that gave it");
}

void context_state::add_pool(const std::shared_ptr<pool_core>& pool) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(pools_, [](const auto& one) { return one.expired(); });
  pools_.push_back(pool);
}

result<void> context_state::release_stream(runtime::stream_handle stream) {
  std::vector<std::shared_ptr<pool_core>> pools;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& one : pools_) {
      if (auto pool = one.lock()) {
        pools.push_back(std::move(pool));
      }
    }
  }
  result<void> first;
  for (const auto& pool : pools) {
    auto released = pool->release_stream(stream);
    if (!released && first) {
      first = std::move(released);
    }
  }
  return first;
}

}  // namespace berth::memory
