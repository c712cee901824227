// SPDX-License-Identifier: Apache-2.0
#include "memory/pinned_budget.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "memory/cgroup.hpp"

namespace berth::memory {
namespace {

// A number that stands alone in a file; nothing for "max" or no file.
std::optional<bytes_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  bytes_t value = 0;
  if (!(file >> word)) {
    return std::nullopt;
  }
  const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  return failure == std::errc{} && *rest == '\0' ? std::optional(value) : std::nullopt;
}

bytes_t cgroup_limit() {
  const auto own = number_in("/sys/fs/cgroup" + cgroup_folder() + "/memory.max");
  const auto root = number_in("/sys/fs/cgroup/memory.max");
  const auto old = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  constexpr auto none = std::numeric_limits<bytes_t>::max();
  return std::min({own.value_or(none), root.value_or(none), old.value_or(none)});
}

}  // namespace

bytes_t default_pinned_budget() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  const auto ram = pages > 0 && page > 0 ? static_cast<bytes_t>(pages) * static_cast<bytes_t>(page)
                                         : std::numeric_limits<bytes_t>::max();
  return std::min(ram, cgroup_limit()) / 2;
}

std::string memlock_limit_words() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return {};
  }
  return fmt::format("max locked memory (ulimit -l) is {}", format_bytes(limit.rlim_cur));
}

result<void> pinned_budget::admit(bytes_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (bytes > limit_ - std::min(limit_, used_)) {
    return error(errc::memory_over_budget,
                 fmt::format("{} of pinned memory cannot be had: {} of the budget of {} are in use",
                             format_bytes(bytes), format_bytes(used_), format_bytes(limit_)),
                 "pinned memory", "free pinned memory, or raise context_options::pinned_budget")
        .with({.requested = bytes, .free = limit_ - std::min(limit_, used_), .total = limit_});
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return {};
}

void pinned_budget::release(bytes_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  used_ -= std::min(used_, bytes);
}

bytes_t pinned_budget::used() const noexcept {
  const std::scoped_lock lock(mutex_);
  return used_;
}

bytes_t pinned_budget::peak() const noexcept {
  const std::scoped_lock lock(mutex_);
  return peak_;
}

}  // namespace berth::memory
