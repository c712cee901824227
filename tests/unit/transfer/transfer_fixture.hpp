// SPDX-License-Identifier: Apache-2.0
// What tests of the copy engine share: an engine on a simulated GPU, and buffers with a pattern.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "berth/context.hpp"
#include "berth/copy_engine.hpp"
#include "berth/unique_memory.hpp"
#include "runtime/kernels.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::test {

struct simulated_engine {
  std::shared_ptr<runtime::sim_driver> gpu;
  berth::context context;
  copy_engine engine;
  berth::stream stream;

  explicit simulated_engine(runtime::sim::options how = {}, copy_engine_options options = {})
      : gpu(make(std::move(how))),
        context(berth::context::on(gpu)),
        engine(copy_engine::make(context, with_defaults(std::move(options)))),
        stream(context.create_stream()) {
    engine.prepare();
  }

  [[nodiscard]] unique_memory<std::byte, device_resource> device_memory(bytes_t bytes) const {
    return {context.device(), bytes};
  }

  static std::shared_ptr<runtime::sim_driver> make(runtime::sim::options how) {
    if (how.model.empty()) {
      how.model = "h200";
    }
    how.pages = runtime::sim::page_state::resident;
    return runtime::make_sim_driver(how).value();
  }
  static copy_engine_options with_defaults(copy_engine_options options) {
    options.ring_bytes = options.ring_bytes == 0 ? 4 * mib : options.ring_bytes;
    return options;
  }
};

// Every order in which the simulator may do things, for suites with a test for each.
inline const auto each_order =
    testing::Values(runtime::sim::schedule::modelled, runtime::sim::schedule::early,
                    runtime::sim::schedule::late, runtime::sim::schedule::random);
inline std::string name_of_order(const testing::TestParamInfo<runtime::sim::schedule>& one) {
  constexpr std::array names{"Modelled", "Early", "Late", "Random"};
  return names[static_cast<std::size_t>(one.param)];
}

// Pageable memory with a pattern, or with something else that no pattern has.
class host_buffer {
public:
  explicit host_buffer(bytes_t bytes) : bytes_(bytes, std::byte{0xA5}) {}
  host_buffer(bytes_t bytes, std::uint64_t seed) : bytes_(bytes) {
    runtime::write_pattern(bytes_.data(), bytes, seed);
  }
  [[nodiscard]] std::byte* data() noexcept { return bytes_.data(); }
  [[nodiscard]] bytes_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::uint64_t mismatches(std::uint64_t seed) const {
    return runtime::count_mismatches(bytes_.data(), bytes_.size(), seed);
  }

private:
  std::vector<std::byte> bytes_;
};

}  // namespace berth::test
