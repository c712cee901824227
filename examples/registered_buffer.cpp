// SPDX-License-Identifier: Apache-2.0
// A buffer that the program already has, page-locked for as long as DMA needs it.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "berth/context.hpp"

int main() {
  try {
    const auto context = berth::context::open();
    std::vector<std::byte> frame(8 * berth::mib);
    {
      const auto locked = context.register_memory(frame);
      const auto header = context.register_memory(std::span(frame).first(100));  // shares a page
      std::printf("%s page-locked\n", berth::format_bytes(context.pinned_memory().used).c_str());
    }
    return context.pinned_memory().used == 0 ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
