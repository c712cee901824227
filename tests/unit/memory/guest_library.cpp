// SPDX-License-Identifier: Apache-2.0
// A shared library with a berth of its own inside, as a plugin would have it.
#include <optional>

#include "berth/context.hpp"
#include "berth/pool.hpp"

namespace {

std::optional<berth::context> context;
std::optional<berth::pool<berth::pinned_resource>> from;

}  // namespace

extern "C" {

void* guest_allocate(unsigned long bytes) {
  if (!context) {
    context.emplace(berth::context::open({.runtime = "sim:h200"}));
    from.emplace(context->pinned());
  }
  return from->allocate(bytes);
}

// 1: freed; 0: not this library's.
int guest_free(void* memory) {
  return from && from->try_deallocate(memory) ? 1 : 0;
}

unsigned long guest_used() {
  return context ? context->pinned_memory().used : 0;
}

void guest_end() {
  from.reset();
  context.reset();
}
}
