// SPDX-License-Identifier: Apache-2.0
// How much memory may be page-locked. Page-locked RAM is lost to the rest of the system, so a
// context admits only so much: by default half of what the machine and the cgroup allow.
// RLIMIT_MEMLOCK is not part of it: GPU drivers pin by ways of their own, and the limit counts only
// where a pin has really failed.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "berth/result.hpp"
#include "berth/units.hpp"

namespace berth::memory {

// Half of the smaller of RAM and the cgroup's limit (v2 or v1).
[[nodiscard]] bytes_t default_pinned_budget();
// "max locked memory is 64 KiB", for messages about pins that failed; empty where there is no
// limit.
[[nodiscard]] std::string memlock_limit_words();

class pinned_budget {
public:
  explicit pinned_budget(bytes_t limit) noexcept : limit_(limit) {}

  // Admits the bytes or refuses them. @errors memory_over_budget
  [[nodiscard]] result<void> admit(bytes_t bytes);
  void release(bytes_t bytes) noexcept;

  [[nodiscard]] bytes_t limit() const noexcept { return limit_; }
  [[nodiscard]] bytes_t used() const noexcept;
  [[nodiscard]] bytes_t peak() const noexcept;

private:
  const bytes_t limit_;
  mutable std::mutex mutex_;
  bytes_t used_ = 0;
  bytes_t peak_ = 0;
};

}  // namespace berth::memory
