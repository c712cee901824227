// SPDX-License-Identifier: Apache-2.0
#include "interpose/fix/pinned_pool.hpp"

#include <utility>

namespace berth::interpose::fix {

void* pinned_pool::take(const sort& wanted) {
  const auto found = kept_.find(wanted);
  if (found == kept_.end()) {
    return nullptr;
  }
  void* const memory = found->second.back();
  in_use_.insert_or_assign(memory, wanted);  // first: it may throw
  found->second.pop_back();
  if (found->second.empty()) {
    kept_.erase(found);
  }
  kept_bytes_ -= wanted.bytes;
  return memory;
}

void pinned_pool::note(void* memory, const sort& what) {
  in_use_.insert_or_assign(memory, what);
}

std::optional<pinned_pool::sort> pinned_pool::find(void* memory) const {
  const auto found = in_use_.find(memory);
  return found == in_use_.end() ? std::nullopt : std::optional(found->second);
}

bool pinned_pool::keep(void* memory) {
  const auto found = in_use_.find(memory);
  if (found == in_use_.end() || found->second.bytes > budget_ ||
      kept_bytes_ > budget_ - found->second.bytes) {
    return false;
  }
  kept_[found->second].push_back(memory);
  kept_bytes_ += found->second.bytes;
  in_use_.erase(found);
  return true;
}

void pinned_pool::forget(void* memory) {
  in_use_.erase(memory);
}

std::vector<void*> pinned_pool::release() {
  std::vector<void*> all;
  for (const auto& [what, blocks] : kept_) {
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  kept_.clear();
  kept_bytes_ = 0;
  return all;
}

}  // namespace berth::interpose::fix
