// SPDX-License-Identifier: Apache-2.0
// Memory of each kind, owned: the right free for each, at the end of the scope.
#include <cstdio>
#include <exception>

#include "berth/context.hpp"
#include "berth/unique_memory.hpp"

int main() {
  try {
    const auto context = berth::context::open();
    const auto weights = berth::make_unique_memory<float>(context.device(), 1 << 20);
    const auto batch = berth::make_unique_memory<float>(context.pinned(), 1 << 16);
    const auto scratch = berth::make_unique_memory<double>(context.pageable(), 1000);

    for (auto& value : batch.span()) {  // the host can reach pinned memory,
      value = 1.0F;
    }
    scratch[999] = 2.0;
    // weights.span() does not compile: the host cannot reach the GPU's own memory.

    std::printf(
        "%s on the device, %s pinned, %s pageable\n", berth::format_bytes(weights.bytes()).c_str(),
        berth::format_bytes(batch.bytes()).c_str(), berth::format_bytes(scratch.bytes()).c_str());
    return batch[100] == 1.0F ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
