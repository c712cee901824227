// SPDX-License-Identifier: Apache-2.0
// The public face of pools.
#include "berth/pool.hpp"

#include <bit>
#include <utility>

#include <fmt/format.h>

#include "memory/context_state.hpp"
#include "memory/pool_core.hpp"

namespace berth::detail {

struct pool_base::state {
  std::shared_ptr<memory::context_state> home;
  // Known to the context by a weak reference, which hears of the end of streams.
  std::shared_ptr<memory::pool_core> core;

  [[nodiscard]] result<void*> allocate(bytes_t bytes, memory::usage user) const {
    if (!home->is_open()) {
      return home->require_open(fmt::format("pool '{}', allocate", core->options().name)).error();
    }
    return core->allocate(bytes, user);
  }
};

pool_base::pool_base(const resource_base& resource, const source& from, pool_options options)
    : state_(std::make_shared<state>()) {
  state_->home = resource.home_;
  memory::upstream upstream{
      .allocate = [from](bytes_t bytes) { return from.allocate(from.resource.get(), bytes); },
      .deallocate = [from](void* memory) { return from.deallocate(from.resource.get(), memory); }};
  state_->core = std::make_shared<memory::pool_core>(resource.home_->gpu(), resource.device(),
                                                     std::move(upstream), std::move(options));
  state_->home->add_pool(state_->core);
}

result<void*> pool_base::try_allocate(bytes_t bytes, runtime::stream_handle stream) const {
  return state_->allocate(bytes, memory::usage::by(stream));
}

result<void*> pool_base::try_allocate(bytes_t bytes, bytes_t alignment) const {
  if (!std::has_single_bit(alignment) || alignment > resource_alignment) {
    return error(errc::memory_invalid_alignment,
                 fmt::format("an alignment of {} cannot be had", alignment),
                 fmt::format("pool '{}'", options().name),
                 fmt::format("ask for a power of two up to {}", resource_alignment));
  }
  return state_->allocate(bytes, {});
}

result<void> pool_base::try_deallocate(void* memory, runtime::stream_handle stream) const {
  return state_->core->deallocate(memory, memory::usage::by(stream));
}

result<void> pool_base::try_deallocate(void* memory) const {
  return state_->core->deallocate(memory, {});
}

result<bytes_t> pool_base::try_trim() const {
  return state_->core->trim();
}
pool_statistics pool_base::statistics() const {
  return state_->core->statistics();
}
std::vector<leak> pool_base::leaks() const {
  return state_->core->leaks();
}
const pool_options& pool_base::options() const noexcept {
  return state_->core->options();
}

}  // namespace berth::detail
