// SPDX-License-Identifier: Apache-2.0
// Copies that kernels carry, beside kernels of the program.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct beside {
  engine carrier = engine::kernel;
  nanoseconds at = 0ms;  // in a step of 20 ms whose first 10 ms are a kernel
  trace::gpu_api api = trace::gpu_api::hip;
  std::string sdma = {};
};

diagnosed copies(const beside& how) {
  trace_builder made;
  made.api(how.api);
  if (!how.sdma.empty()) {
    made.fact("environment.HSA_ENABLE_SDMA", how.sdma);
  }
  for (int step = 0; step < 5; ++step) {
    made.on(0, 1).kernel(step * 20ms, 10ms);
    made.on(0, 2).h2d(step * 20ms + how.at, 10ms, 500 * mb, memory_kind::pinned).by(how.carrier);
  }
  return diagnose_on_round_machine(made);
}

TEST(kernel_copies, cost_the_kernels_beside_them_their_units) {
  const auto shown = copies({});
  const auto* const found = shown.find("kernel-copies");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(saving_ms(*found), 50 * (1 - 1 / 1.44), 0.01);
  EXPECT_EQ(found->saving->bound, diagnose::bound::at_most);
  EXPECT_THAT(found->headline, HasSubstr("run beside the program's for 50.0 ms"));
}

TEST(kernel_copies, where_no_kernel_runs_nothing_is_taken) {
  EXPECT_EQ(copies({.at = 10ms}).find("kernel-copies"), nullptr);
}

TEST(kernel_copies, engines_of_their_own_and_unknown_ones_are_none) {
  EXPECT_EQ(copies({.carrier = engine::dma}).find("kernel-copies"), nullptr);
  EXPECT_EQ(copies({.carrier = engine::unknown}).find("kernel-copies"), nullptr);
}

TEST(kernel_copies, on_amd_the_environment_may_tell) {
  const auto shown = copies({.carrier = engine::unknown, .sdma = "0"});
  ASSERT_NE(shown.find("kernel-copies"), nullptr);
  EXPECT_THAT(shown.find("kernel-copies")->headline, HasSubstr("(HSA_ENABLE_SDMA=0)"));
  EXPECT_EQ(copies({.carrier = engine::unknown, .sdma = "1"}).find("kernel-copies"), nullptr);
  EXPECT_EQ(copies({.carrier = engine::dma, .sdma = "0"}).find("kernel-copies"), nullptr);
  EXPECT_EQ(copies({.carrier = engine::unknown, .api = trace::gpu_api::cuda, .sdma = "0"})
                .find("kernel-copies"),
            nullptr);
}

}  // namespace
}  // namespace berth::test
