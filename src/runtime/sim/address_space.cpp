// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/address_space.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "runtime/sim/host_pages.hpp"

namespace berth::runtime::sim {
namespace {

constexpr std::size_t most_retired = 512;
constexpr bytes_t most_retired_bytes = 64 * mib;

std::uintptr_t number_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

std::byte* unreleased_writes::for_write(bytes_t offset, bytes_t bytes) {
  poison_bytes(host_ + offset, bytes);
  written_.emplace_back(offset, bytes);
  return device_.for_write(offset, bytes);
}

void unreleased_writes::read(bytes_t offset, bytes_t bytes, std::byte* into) {
  std::memcpy(into, host_ + offset, bytes);
  for (const auto& [first, count] : written_) {
    const bytes_t begin = std::max(first, offset);
    const bytes_t end = std::min(first + count, offset + bytes);
    if (begin < end) {
      std::memcpy(into + (begin - offset), device_.for_read(begin, end - begin), end - begin);
    }
  }
}

void unreleased_writes::release() {
  for (const auto& [first, count] : written_) {
    std::memcpy(host_ + first, device_.for_read(first, count), count);
  }
  written_.clear();
}

const std::byte* memory_range::read(bytes_t at, bytes_t count,
                                    std::vector<std::byte>& scratch) const {
  if (of == nullptr) {
    return first + at;
  }
  if (of->hidden) {
    return of->hidden->for_read(offset() + at, count);
  }
  if (of->unreleased && !of->unreleased->empty()) {
    scratch.resize(count);
    of->unreleased->read(offset() + at, count, scratch.data());
    return scratch.data();
  }
  return first + at;
}

std::byte* memory_range::write(bytes_t at, bytes_t count) const {
  if (of == nullptr) {
    return first + at;
  }
  if (of->hidden) {
    return of->hidden->for_write(offset() + at, count);
  }
  return of->unreleased ? of->unreleased->for_write(offset() + at, count) : first + at;
}

bool overlap(const memory_range& a, const memory_range& b) noexcept {
  return a.first < b.first + b.bytes && b.first < a.first + a.bytes;
}

std::string label_of(const memory_range& range) {
  if (range.of == nullptr) {
    return "pageable";
  }
  return fmt::format("{}#{}+{}", berth::to_string(range.of->kind), range.of->number,
                     range.offset());
}

bool address_space::place(allocation& made) const {
  const bool hidden = made.kind == memory_kind::device;
  auto visible = mapping::make(made.bytes, hidden ? protection::none : protection::read_write);
  if (!visible) {
    return false;
  }
  const bool coarse = made.kind == memory_kind::pinned && made.grain == coherence::coarse;
  if (hidden || coarse) {
    auto behind = mapping::make(made.bytes, protection::read_write);
    if (!behind) {
      return false;
    }
    if (hidden) {
      made.hidden.emplace(std::move(*behind));
    } else {
      made.unreleased.emplace(visible->data(), hidden_bytes(std::move(*behind)));
    }
  }
  if (!hidden && data_ == data_effects::carried) {
    poison_bytes(visible->data(), made.bytes);
  }
  made.first = visible->data();
  made.pages_of_system = std::move(*visible);
  return true;
}

void address_space::insert(std::shared_ptr<allocation> made) {
  if (made->unreleased) {
    coarse_.push_back(made);
  }
  if (made->kind == memory_kind::device) {
    used_[made->device] += granted(made->bytes);
  }
  pinned_ += is_page_locked(made->kind) ? made->bytes : 0;
  by_address_.emplace(number_of(made->first), std::move(made));
}

void address_space::remove(allocation& gone) {
  gone.live = false;
  if (gone.pages_of_system) {
    if (gone.kind != memory_kind::device && data_ == data_effects::carried) {
      poison_bytes(gone.first, gone.bytes);
    }
    retire(gone, std::move(*gone.pages_of_system));
    gone.pages_of_system.reset();
  }
  if (gone.kind == memory_kind::device) {
    used_[gone.device] -= granted(gone.bytes);
  }
  pinned_ -= is_page_locked(gone.kind) ? gone.bytes : 0;
  gone.hidden.reset();
  gone.unreleased.reset();
  coarse_.erase(std::remove_if(coarse_.begin(), coarse_.end(),
                               [&gone](const std::weak_ptr<allocation>& one) {
                                 const auto held = one.lock();
                                 return held == nullptr || held.get() == &gone;
                               }),
                coarse_.end());
  by_address_.erase(number_of(gone.first));
}

void address_space::retire(const allocation& gone, mapping pages) {
  // Addresses without pages cost nothing; very large blocks would only push out all others.
  const bytes_t real_bytes = gone.kind == memory_kind::device ? 0 : pages.size();
  if (real_bytes > most_retired_bytes) {
    return;
  }
  retired_bytes_ += real_bytes;
  retired_.push_back({.pages = std::move(pages), .real_bytes = real_bytes});
  while (retired_bytes_ > most_retired_bytes || retired_.size() > most_retired) {
    retired_bytes_ -= retired_.front().real_bytes;
    retired_.pop_front();
  }
}

bool address_space::is_retired(const std::byte* address) const noexcept {
  return std::any_of(retired_.begin(), retired_.end(), [address](const retired& one) {
    return address >= one.pages.data() && address < one.pages.data() + one.pages.size();
  });
}

std::shared_ptr<allocation> address_space::find(const void* address) const {
  const auto number = number_of(address);
  const auto after = by_address_.upper_bound(number);
  if (after == by_address_.begin()) {
    return nullptr;
  }
  const auto& candidate = std::prev(after)->second;
  return number < number_of(candidate->first) + candidate->bytes ? candidate : nullptr;
}

bool address_space::any_in(const void* first, bytes_t bytes) const {
  const auto from = number_of(first);
  const auto next = by_address_.lower_bound(from);
  return find(first) != nullptr || (next != by_address_.end() && next->first - from < bytes);
}

address_space::resolved address_space::resolve(const void* first, bytes_t bytes) const {
  if (first == nullptr) {
    return {.range = {}, .wrong = problem::null};
  }
  // The simulator is asked to write through addresses that the caller gave as sources, too (none
  // is), so that one type serves for both ends.
  auto* const start = static_cast<std::byte*>(const_cast<void*>(first));  // NOLINT
  resolved answer{.range = {.of = find(first), .first = start, .bytes = bytes}, .wrong = {}};
  if (answer.range.of != nullptr) {
    const bool inside = bytes <= answer.range.of->bytes - answer.range.offset();
    answer.wrong = inside ? problem::none : problem::leaves_allocation;
  } else if (any_in(first, bytes)) {
    answer.wrong = problem::leaves_allocation;
  } else if (is_retired(start)) {
    answer.wrong = problem::freed;
  } else if (!runtime::is_mapped(start, bytes)) {
    answer.wrong = problem::unmapped;
  }
  return answer;
}

void address_space::release_writes() {
  for (const auto& one : coarse_) {
    if (const auto held = one.lock(); held != nullptr && held->unreleased) {
      held->unreleased->release();
    }
  }
}

bytes_t address_space::used_on(int device) const noexcept {
  const auto found = used_.find(device);
  return found == used_.end() ? 0 : found->second;
}

bytes_t address_space::granted(bytes_t bytes) noexcept {
  return (bytes + 4 * kib - 1) / (4 * kib) * (4 * kib);
}

std::size_t address_space::count(memory_kind kind) const noexcept {
  return static_cast<std::size_t>(
      std::count_if(by_address_.begin(), by_address_.end(),
                    [kind](const auto& entry) { return entry.second->kind == kind; }));
}

}  // namespace berth::runtime::sim
