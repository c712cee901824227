// SPDX-License-Identifier: Apache-2.0
// What a context and everything that came from it share. It lives until the last of them is gone,
// so that memory can be given back after the context's end.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "berth/result.hpp"
#include "memory/pinned_budget.hpp"
#include "memory/registrations.hpp"
#include "runtime/driver.hpp"

namespace berth::memory {

class pool_core;

class context_state {
public:
  context_state(std::shared_ptr<runtime::driver> gpu, std::string reason, bytes_t budget);

  [[nodiscard]] runtime::driver& gpu() const noexcept { return *gpu_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] pinned_budget& budget() noexcept { return budget_; }
  [[nodiscard]] registrations& registered() noexcept { return registered_; }

  void close() noexcept { closed_.store(true, std::memory_order_release); }
  [[nodiscard]] bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }
  // @errors memory_context_closed, naming the call
  [[nodiscard]] result<void> require_open(std::string_view call) const;

  // Notes memory that a resource gave out, with the call that takes it back.
  void note(void* memory, memory_kind kind, bytes_t bytes);
  // Forgets it. @errors memory_foreign_pointer, naming what the address is if that is known
  [[nodiscard]] result<bytes_t> forget(void* memory, memory_kind kind);

  // Pools hear of the end of streams.
  void add_pool(const std::shared_ptr<pool_core>& pool);
  result<void> release_stream(runtime::stream_handle stream);

private:
  struct allocation {
    memory_kind kind;
    bytes_t bytes;
  };

  std::shared_ptr<runtime::driver> gpu_;
  std::string reason_;
  std::atomic<bool> closed_{false};
  pinned_budget budget_;
  registrations registered_;

  std::mutex mutex_;  // guards the two below; never held during a GPU call
  std::map<void*, allocation> allocations_;
  std::vector<std::weak_ptr<pool_core>> pools_;
};

}  // namespace berth::memory
