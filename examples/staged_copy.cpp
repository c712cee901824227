// SPDX-License-Identifier: Apache-2.0
// Pageable memory to the device and back through a copy engine, and what it says about it.
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "berth/copy_engine.hpp"
#include "berth/unique_memory.hpp"

int main() {
  try {
    const auto context = berth::context::open();
    auto engine = berth::copy_engine::make(context);
    engine.prepare();  // else the first copy is left to the runtime
    const auto stream = context.create_stream();

    std::vector<std::uint32_t> numbers(16 * berth::mib);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::vector<std::uint32_t> results(numbers.size());
    const auto bytes = numbers.size() * sizeof numbers[0];
    const berth::unique_memory<std::uint32_t, berth::device_resource> device(context.device(),
                                                                             numbers.size());

    auto up = engine.copy(device.data(), numbers.data(), bytes, stream);
    // Kernels would be launched into the stream here.
    auto down = engine.copy(results.data(), device.data(), bytes, stream);
    for (auto* const ticket : {&up, &down}) {
      const auto stats = ticket->wait();
      std::printf("%s of %s by %s, %u threads, %u blocks: %.1f GB/s\n",
                  std::string(to_string(stats.plan.way)).c_str(),
                  berth::format_bytes(stats.plan.bytes).c_str(),
                  std::string(to_string(stats.plan.path)).c_str(), stats.plan.threads, stats.blocks,
                  static_cast<double>(bytes) / static_cast<double>(stats.total.count()));
    }
    return results == numbers ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
