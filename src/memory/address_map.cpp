// SPDX-License-Identifier: Apache-2.0
#include "memory/address_map.hpp"

namespace berth::memory {
namespace {

constexpr unsigned granule_bits = 8;
constexpr unsigned address_bits = 48;

std::uintptr_t bits_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);  // NOLINT: an address is the key
}

}  // namespace

address_map::address_map() = default;
address_map::~address_map() = default;

block* address_map::find(const void* address) const noexcept {
  const auto bits = bits_of(address);
  if (bits >> address_bits != 0 || bits % granule != 0) {
    return nullptr;
  }
  const node* at = &root_;
  for (unsigned shift = granule_bits + 3 * level_bits; shift > granule_bits; shift -= level_bits) {
    at = static_cast<const node*>(
        at->slots[(bits >> shift) % fan_out].load(std::memory_order_acquire));
    if (at == nullptr) {
      return nullptr;
    }
  }
  return static_cast<block*>(
      at->slots[(bits >> granule_bits) % fan_out].load(std::memory_order_acquire));
}

void address_map::set(const void* address, block* value) {
  const auto bits = bits_of(address);
  if (bits >> address_bits != 0) {
    return;
  }
  node* at = &root_;
  for (unsigned shift = granule_bits + 3 * level_bits; shift > granule_bits; shift -= level_bits) {
    at = child_of(*at, (bits >> shift) % fan_out);
  }
  // Release: whoever finds the block sees it built.
  at->slots[(bits >> granule_bits) % fan_out].store(value, std::memory_order_release);
}

address_map::node* address_map::child_of(node& parent, std::size_t slot) {
  if (auto* const known = parent.slots[slot].load(std::memory_order_acquire)) {
    return static_cast<node*>(known);
  }
  const std::scoped_lock lock(growing_);
  if (auto* const known = parent.slots[slot].load(std::memory_order_acquire)) {
    return static_cast<node*>(known);
  }
  nodes_.push_back(std::make_unique<node>());
  parent.slots[slot].store(nodes_.back().get(), std::memory_order_release);
  return nodes_.back().get();
}

}  // namespace berth::memory
