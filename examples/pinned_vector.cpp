// SPDX-License-Identifier: Apache-2.0
// Standard containers in pinned memory: DMA reads and writes them in place.
#include <cstdio>
#include <exception>
#include <memory_resource>
#include <numeric>
#include <vector>

#include "berth/context.hpp"
#include "berth/pmr.hpp"
#include "berth/pool.hpp"

int main() {
  try {
    const auto context = berth::context::open();
    const berth::pool pool(context.pinned(), {.name = "samples"});
    berth::pmr_resource pinned(pool);

    std::pmr::vector<float> samples(1'000'000, &pinned);
    std::iota(samples.begin(), samples.end(), 0.0F);

    const auto usage = context.pinned_memory();
    std::printf("%zu samples in pinned memory; %s of a budget of %s are in use\n", samples.size(),
                berth::format_bytes(usage.used).c_str(), berth::format_bytes(usage.budget).c_str());
    return samples.back() == 999'999.0F ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
