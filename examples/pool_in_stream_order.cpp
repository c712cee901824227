// SPDX-License-Identifier: Apache-2.0
// Device memory from a pool, in the order of a stream: no call below waits for the GPU.
//
//   BERTH_RUNTIME=sim:h200 pool_in_stream_order        # without a GPU
#include <cstdio>
#include <exception>

#include "berth/context.hpp"
#include "berth/pool.hpp"

int main() {
  try {
    const auto context = berth::context::open();
    const berth::pool scratch(context.device(), {.name = "scratch"});
    const auto stream = context.create_stream();

    for (int step = 0; step < 1000; ++step) {
      void* const memory = scratch.allocate(4 * berth::mib, stream);
      // Queue kernels and copies that use `memory` into stream.handle() here.
      scratch.deallocate(memory, stream);  // they may still be running
    }
    stream.synchronize();

    const auto numbers = scratch.statistics();
    std::printf("%s: %llu allocations, %llu from the thread's cache, %s held\n",
                context.reason().c_str(), static_cast<unsigned long long>(numbers.allocations),
                static_cast<unsigned long long>(numbers.cache_hits),
                berth::format_bytes(numbers.held_bytes).c_str());
    return numbers.live_blocks == 0 ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
