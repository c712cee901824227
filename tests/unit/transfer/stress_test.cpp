// SPDX-License-Identifier: Apache-2.0
// Random copies on the simulator: on the virtual clock under every legal order, and on the wall
// clock with real threads (which is what the thread sanitizer looks at). BERTH_STRESS_COPIES asks
// for more than the few that each test run affords.
#include <cstdlib>
#include <string>

#include "support/copy_stress.hpp"
#include "transfer_fixture.hpp"

namespace berth {
namespace {

using runtime::sim::schedule;
using test::simulated_engine;

std::uint64_t copies_or(std::uint64_t usual) {
  const char* const asked = std::getenv("BERTH_STRESS_COPIES");
  return asked != nullptr ? std::stoull(asked) : usual;
}

void expect_clean(const test::stress_outcome& outcome) {
  EXPECT_EQ(outcome.wrong_bytes, 0U);
  EXPECT_TRUE(outcome.failures.empty())
      << outcome.failures.size() << " failures, the first: " << outcome.failures.front();
  EXPECT_GT(outcome.staged, 0U);
}

class EachOrder : public testing::TestWithParam<schedule> {};

TEST_P(EachOrder, KeepsEveryByte) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    simulated_engine on({.seed = seed, .order = GetParam()});
    expect_clean(test::run_copy_stress(
        on.context, on.engine,
        {.copies = copies_or(300) / 3, .threads = 1, .largest = 8 * mib, .seed = seed}));
  }
}

TEST_P(EachOrder, KeepsEveryByteOfSeveralThreads) {
  simulated_engine on({.seed = 7, .order = GetParam()}, {.most_rings = 2});
  expect_clean(test::run_copy_stress(
      on.context, on.engine,
      {.copies = copies_or(200), .threads = 3, .largest = 4 * mib, .seed = 7}));
}

INSTANTIATE_TEST_SUITE_P(Simulated, EachOrder, test::each_order, test::name_of_order);

TEST(WallClock, KeepsEveryByteOfSeveralThreads) {
  simulated_engine on({.clock = runtime::sim::clock_kind::wall, .wall_slowdown = 1},
                      {.most_threads = 4, .most_rings = 2});
  expect_clean(test::run_copy_stress(
      on.context, on.engine,
      {.copies = copies_or(200), .threads = 3, .largest = 4 * mib, .seed = 11}));
}

TEST(WallClock, OneThreadIsEnough) {
  simulated_engine on({.clock = runtime::sim::clock_kind::wall, .wall_slowdown = 1},
                      {.most_threads = 1});
  expect_clean(test::run_copy_stress(
      on.context, on.engine,
      {.copies = copies_or(40), .threads = 1, .largest = 32 * mib, .seed = 5}));
}

TEST(WallClock, EnginesEndWhileOthersCopy) {
  simulated_engine on({.clock = runtime::sim::clock_kind::wall, .wall_slowdown = 1},
                      {.most_threads = 3});
  std::atomic<bool> stop{false};
  std::jthread others([&] {
    while (!stop) {
      auto engine = copy_engine::make(
          on.context, {.most_threads = 3, .ring_bytes = 4 * mib, .profile = calibration::nominal});
      const auto device = on.device_memory(2 * mib);
      test::host_buffer host(2 * mib, 3);
      test::host_buffer back(2 * mib);
      const auto stream = on.context.create_stream();
      engine.prepare();
      engine.copy(device.data(), host.data(), 2 * mib, stream);
      auto down = engine.copy(back.data(), device.data(), 2 * mib, stream);
      { const auto ended = std::move(engine); }
      EXPECT_TRUE(down.try_wait()) << "what makes progress is not cancelled";
      EXPECT_EQ(back.mismatches(3), 0U);
    }
  });
  expect_clean(test::run_copy_stress(
      on.context, on.engine,
      {.copies = copies_or(60), .threads = 2, .largest = 4 * mib, .seed = 13}));
  stop = true;
}

}  // namespace
}  // namespace berth
