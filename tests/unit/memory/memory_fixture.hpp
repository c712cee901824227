// SPDX-License-Identifier: Apache-2.0
// What tests of memory share: a context on a simulated GPU, whose faults and holdings they reach.
#pragma once

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "berth/context.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::test {

struct simulated {
  std::shared_ptr<runtime::sim_driver> gpu;
  berth::context context;

  explicit simulated(runtime::sim::options how = {}, context_options options = {})
      : gpu(make(std::move(how))), context(berth::context::on(gpu, std::move(options))) {}

  static std::shared_ptr<runtime::sim_driver> make(runtime::sim::options how) {
    if (how.model.empty()) {
      how.model = "h200";
    }
    return runtime::make_sim_driver(how).value();
  }
};

}  // namespace berth::test
