// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_heap.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace berth::memory {

extent_heap::extent_heap(address_map& addresses) : addresses_(addresses) {}
extent_heap::~extent_heap() = default;

std::optional<size_class> extent_heap::first_at_least(const lists& in, size_class which) {
  std::size_t word = which / 64;
  std::uint64_t bits = in.occupied[word] & (~std::uint64_t{0} << (which % 64));
  while (bits == 0) {
    if (++word == in.occupied.size()) {
      return std::nullopt;
    }
    bits = in.occupied[word];
  }
  return static_cast<size_class>(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
}

extent_heap::lists* extent_heap::known_lists_of(const stream_state* gate) {
  const auto found = by_gate_.find(gate);
  return found != by_gate_.end() ? found->second.get() : nullptr;
}

extent_heap::lists& extent_heap::lists_of(const stream_state* gate) {
  auto& known = by_gate_[gate];
  if (!known) {
    known = std::make_unique<lists>();
  }
  return *known;
}

block* extent_heap::take(size_class which, const stream_state* user) {
  const std::scoped_lock lock(mutex_);
  block* best = nullptr;
  size_class best_list = class_count;
  for (const auto* const gate : {user, static_cast<const stream_state*>(nullptr)}) {
    auto* const candidates = known_lists_of(gate);
    const auto found = candidates != nullptr ? first_at_least(*candidates, which) : std::nullopt;
    if (found && *found < best_list) {
      best = candidates->heads[*found];
      best_list = *found;
    }
  }
  if (best == nullptr) {
    return nullptr;
  }
  auto* const given = hand_out(best, which);
  given->gate = nullptr;
  return given;
}

block* extent_heap::take_gated(size_class which) {
  const std::scoped_lock lock(mutex_);
  block* best = nullptr;
  size_class best_list = class_count;
  for (const auto& [gate, candidates] : by_gate_) {
    const auto found = first_at_least(*candidates, which);
    if (found && *found < best_list) {
      best = candidates->heads[*found];
      best_list = *found;
    }
  }
  return best != nullptr ? hand_out(best, which) : nullptr;
}

void extent_heap::give(block* which) {
  const std::scoped_lock lock(mutex_);
  amounts_.given_out_bytes -= which->bytes;
  which->state.store(block_state::free, std::memory_order_release);
  if (which->gate != nullptr && which->gate->is_past(which->gate_number)) {
    which->gate = nullptr;
  }
  link(merge(which));
}

void extent_heap::settle() {
  const std::scoped_lock lock(mutex_);
  std::vector<block*> passed;
  for (const auto& [gate, candidates] : by_gate_) {
    if (gate == nullptr) {
      continue;
    }
    for (auto* head : candidates->heads) {
      for (; head != nullptr; head = head->next) {
        if (gate->is_past(head->gate_number)) {
          passed.push_back(head);
        }
      }
    }
  }
  for (auto* const which : passed) {
    // Merging an earlier one may have swallowed this one: then it is in no list any more.
    if (which->state.load(std::memory_order_relaxed) != block_state::free ||
        which->gate == nullptr) {
      continue;
    }
    unlink(which);
    which->gate = nullptr;
    link(merge(which));
  }
}

std::vector<std::pair<stream_state*, std::uint64_t>> extent_heap::gates() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::pair<stream_state*, std::uint64_t>> found;
  for (const auto& [gate, candidates] : by_gate_) {
    std::uint64_t latest = 0;
    stream_state* stream = nullptr;
    for (const auto* head : candidates->heads) {
      for (; gate != nullptr && head != nullptr; head = head->next) {
        latest = std::max(latest, head->gate_number);
        stream = head->gate;
      }
    }
    if (stream != nullptr) {
      found.emplace_back(stream, latest);
    }
  }
  return found;
}

void extent_heap::add_region(region added, stream_state* gate, std::uint64_t gate_number) {
  const std::scoped_lock lock(mutex_);
  regions_.push_back(std::make_unique<region>(added));
  auto* const home = regions_.back().get();
  auto* const whole = new_block();
  whole->address = home->address;
  whole->bytes = home->bytes;
  whole->home = home;
  whole->gate = gate;
  whole->gate_number = gate_number;
  home->first = whole;
  amounts_.region_bytes += home->bytes;
  ++amounts_.regions;
  link(whole);
}

std::vector<region> extent_heap::take_empty_regions(std::size_t keep) {
  const std::scoped_lock lock(mutex_);
  std::vector<region> taken;
  std::size_t kept = 0;
  std::erase_if(regions_, [&](const std::unique_ptr<region>& one) {
    auto* const first = one->first;
    const bool empty = first->state.load(std::memory_order_acquire) == block_state::free &&
                       first->bytes == one->bytes && first->gate == nullptr;
    if (!empty || kept++ < keep) {
      return false;
    }
    unlink(first);
    drop_block(first);
    taken.push_back(*one);
    amounts_.region_bytes -= one->bytes;
    --amounts_.regions;
    return true;
  });
  return taken;
}

std::vector<region> extent_heap::take_all_regions() {
  const std::scoped_lock lock(mutex_);
  std::vector<region> taken;
  for (const auto& one : regions_) {
    taken.push_back(*one);
  }
  return taken;
}

extent_heap::amounts extent_heap::now() {
  const std::scoped_lock lock(mutex_);
  amounts_.largest_free = 0;
  for (const auto& [gate, candidates] : by_gate_) {
    for (size_class which = class_count; which-- > 0;) {
      for (const auto* head = candidates->heads[which]; head != nullptr; head = head->next) {
        amounts_.largest_free = std::max(amounts_.largest_free, head->bytes);
      }
      if (candidates->heads[which] != nullptr) {
        break;
      }
    }
  }
  return amounts_;
}

void extent_heap::for_each_given_out(const std::function<void(const block&)>& visit) {
  const std::scoped_lock lock(mutex_);
  for (const auto& home : regions_) {
    for (const auto* at = home->first; at != nullptr; at = at->right) {
      if (at->state.load(std::memory_order_acquire) != block_state::free) {
        visit(*at);
      }
    }
  }
}

void extent_heap::link(block* which) {
  auto& into = lists_of(which->gate);
  const auto list = list_of(which->bytes);
  which->previous = nullptr;
  which->next = into.heads[list];
  if (which->next != nullptr) {
    which->next->previous = which;
  }
  into.heads[list] = which;
  into.occupied[list / 64] |= std::uint64_t{1} << (list % 64);
}

void extent_heap::unlink(block* which) {
  auto& from = lists_of(which->gate);
  const auto list = list_of(which->bytes);
  if (which->previous != nullptr) {
    which->previous->next = which->next;
  } else {
    from.heads[list] = which->next;
  }
  if (which->next != nullptr) {
    which->next->previous = which->previous;
  }
  if (from.heads[list] == nullptr) {
    from.occupied[list / 64] &= ~(std::uint64_t{1} << (list % 64));
  }
  which->previous = which->next = nullptr;
}

block* extent_heap::hand_out(block* which, size_class wanted) {
  unlink(which);
  split(which, size_of(wanted));
  which->state.store(block_state::cached, std::memory_order_release);
  addresses_.set(which->address, which);
  amounts_.given_out_bytes += which->bytes;
  amounts_.peak_given_out_bytes = std::max(amounts_.peak_given_out_bytes, amounts_.given_out_bytes);
  return which;
}

// Cuts what `bytes` leave over off as a free block with the same gate.
void extent_heap::split(block* which, bytes_t bytes) {
  if (which->bytes == bytes) {
    return;
  }
  auto* const rest = new_block();
  rest->address = which->address + bytes;
  rest->bytes = which->bytes - bytes;
  rest->home = which->home;
  rest->gate = which->gate;
  rest->gate_number = which->gate_number;
  rest->left = which;
  rest->right = which->right;
  if (rest->right != nullptr) {
    rest->right->left = rest;
  }
  which->right = rest;
  which->bytes = bytes;
  link(rest);
}

// Unites a free block that is in no list with its free neighbours of the same gate.
block* extent_heap::merge(block* which) {
  addresses_.set(which->address, nullptr);
  // The state first: the gate of a block that is given out belongs to whoever has it.
  const auto mergeable = [&](const block* other) {
    return other != nullptr && other->state.load(std::memory_order_acquire) == block_state::free &&
           other->gate == which->gate;
  };
  if (mergeable(which->right)) {
    unlink(which->right);
    absorb_right(which);
  }
  if (mergeable(which->left)) {
    which = which->left;
    unlink(which);
    absorb_right(which);
  }
  return which;
}

void extent_heap::absorb_right(block* which) {
  auto* const right = which->right;
  which->bytes += right->bytes;
  which->gate_number = std::max(which->gate_number, right->gate_number);
  which->right = right->right;
  if (which->right != nullptr) {
    which->right->left = which;
  }
  drop_block(right);
}

block* extent_heap::new_block() {
  if (unused_.empty()) {
    descriptors_.push_back(std::make_unique<block>());
    return descriptors_.back().get();
  }
  auto* const again = unused_.back();
  unused_.pop_back();
  return again;
}

void extent_heap::drop_block(block* which) {
  which->address = nullptr;
  which->bytes = 0;
  which->requested = 0;
  which->home = nullptr;
  which->left = which->right = which->previous = which->next = nullptr;
  which->gate = nullptr;
  which->gate_number = 0;
  which->allocated_at.reset();
  unused_.push_back(which);
}

}  // namespace berth::memory
