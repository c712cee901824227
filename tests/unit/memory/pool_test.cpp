// SPDX-License-Identifier: Apache-2.0
// What a pool promises beyond being a resource: order, bounds, numbers.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/pool.hpp"
#include "runtime/driver.hpp"
#include "runtime/kernels.hpp"
#include "unit/memory/memory_fixture.hpp"

namespace berth {
namespace {

using runtime::sim::schedule;
using test::simulated;

TEST(Pool, TheSameStreamGetsItsMemoryAgainAtOnce) {
  const simulated machine;
  const pool from(machine.context.device());
  const auto stream = machine.context.create_stream();
  auto* const first = from.allocate(mib, stream);
  ASSERT_TRUE(machine.gpu->fill_async(first, std::byte{1}, mib, stream));
  from.deallocate(first, stream);
  const auto calls = machine.gpu->calls();
  EXPECT_EQ(from.allocate(mib, stream), first);
  EXPECT_EQ(machine.gpu->calls(), calls) << "a free on the same stream needs no event";
  EXPECT_EQ(from.statistics().cache_hits, 1U);
  from.deallocate(first, stream);
}

TEST(Pool, AnotherStreamWaitsForTheWorkBefore) {
  const simulated machine;
  const pool from(machine.context.device(), {.limit = 32 * mib});
  const auto one = machine.context.create_stream();
  const auto other = machine.context.create_stream();
  auto* const first = from.allocate(32 * mib, one);
  ASSERT_TRUE(machine.gpu->launch(runtime::kernel_fill{first, 32 * mib, 7}, one));
  from.deallocate(first, one);
  auto* const second = from.allocate(32 * mib, other);
  EXPECT_EQ(second, first) << "the limit leaves no other memory";
  EXPECT_EQ(from.statistics().stream_waits, 1U);
  EXPECT_EQ(*machine.gpu->query_stream(other), runtime::progress::pending)
      << "the other stream must stand behind the first one's work";
  from.deallocate(second, other);
}

TEST(Pool, TheHostGetsOnlyMemoryThatNothingUses) {
  const simulated machine({.order = schedule::late});
  const pool from(machine.context.pinned());
  const auto stream = machine.context.create_stream();
  const auto device = machine.context.device();
  auto* const target = device.allocate(mib);
  auto* const source = static_cast<std::byte*>(from.allocate(mib));
  std::memset(source, 1, mib);
  ASSERT_TRUE(machine.gpu->copy_async(target, source, mib, stream));
  from.deallocate(source, stream);
  auto* const other = static_cast<std::byte*>(from.allocate(mib));
  EXPECT_NE(other, source) << "the copy still reads it";
  std::memset(other, 2, mib);
  stream.synchronize();
  std::vector<std::byte> seen(mib);
  ASSERT_TRUE(machine.gpu->copy(seen.data(), target, mib));
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](std::byte b) { return b == std::byte{1}; }));
  from.deallocate(other);
  device.deallocate(target);
}

TEST(Pool, MemoryOfAnEndedStreamIsNotLost) {
  const simulated machine;
  const pool from(machine.context.device(), {.limit = 32 * mib});
  void* first = nullptr;
  {
    const auto stream = machine.context.create_stream();
    first = from.allocate(32 * mib, stream);
    from.deallocate(first, stream);
  }
  const auto other = machine.context.create_stream();
  EXPECT_EQ(from.allocate(32 * mib, other), first);
  from.deallocate(first, other);
}

TEST(Pool, AThreadsOwnDefaultStreamIsNotAnotherThreads) {
  const simulated machine;
  const pool from(machine.context.device(), {.limit = 32 * mib});
  void* first = nullptr;
  std::thread([&] {
    first = from.allocate(32 * mib, runtime::per_thread_stream);
    ASSERT_TRUE(
        machine.gpu->launch(runtime::kernel_fill{first, 32 * mib, 7}, runtime::per_thread_stream));
    from.deallocate(first, runtime::per_thread_stream);
  }).join();
  EXPECT_EQ(from.allocate(32 * mib, runtime::per_thread_stream), first);
  EXPECT_EQ(from.statistics().stream_waits, 1U);
  from.deallocate(first, runtime::per_thread_stream);
}

TEST(Pool, BlocksMayBeFreedOnAnotherThread) {
  const simulated machine;
  const pool from(machine.context.pinned());
  auto* const memory = from.allocate(1000);
  std::thread([&] { from.deallocate(memory); }).join();
  const auto numbers = from.statistics();
  EXPECT_EQ(numbers.live_blocks, 0U);
  EXPECT_EQ(numbers.live_bytes, 0U);
}

TEST(Pool, OfTwoFreesExactlyOneSucceeds) {
  const simulated machine;
  const pool from(machine.context.pinned());
  for (int round = 0; round < 50; ++round) {
    auto* const memory = from.allocate(4096);
    std::barrier start(2);
    std::atomic<int> succeeded{0};
    std::atomic<int> named{0};
    const auto free = [&] {
      start.arrive_and_wait();
      const auto freed = from.try_deallocate(memory);
      ++(freed ? succeeded : named);
    };
    {
      const std::jthread one(free);
      const std::jthread other(free);
    }
    ASSERT_EQ(succeeded, 1);
    ASSERT_EQ(named, 1);
  }
}

TEST(Pool, TrimGivesBackWhatNobodyNeeds) {
  const simulated machine;
  const pool from(machine.context.device());
  auto* const small = from.allocate(100);
  auto* const large = from.allocate(100 * mib);
  const auto held = from.statistics().held_bytes;
  from.deallocate(large);
  EXPECT_EQ(from.statistics().held_bytes, held);
  EXPECT_GT(from.trim(), 0U);
  EXPECT_GT(from.statistics().held_bytes, 0U) << "a small block is still out";
  from.deallocate(small);
  EXPECT_GT(from.trim(), 0U);
  EXPECT_EQ(from.statistics().held_bytes, 0U);
  EXPECT_EQ(machine.gpu->held().allocations, 0U);
  EXPECT_EQ(from.statistics().peak_held_bytes, held);
}

TEST(Pool, SaysWhichPoolIsOutOfMemoryAndWhy) {
  const simulated machine;
  const pool from(machine.context.device(), {.name = "weights", .limit = 64 * mib});
  auto* const memory = from.allocate(40 * mib);
  const auto refused = from.try_allocate(40 * mib);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::gpu_out_of_memory);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("weights"));
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("40 MiB"));
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("64 MiB"));
  ASSERT_TRUE(refused.error().shortage());
  EXPECT_EQ(refused.error().shortage()->requested, 40 * mib);
  EXPECT_EQ(refused.error().shortage()->total, 64 * mib);
  EXPECT_THROW(static_cast<void>(from.allocate(40 * mib)), out_of_memory_error);
  from.deallocate(memory);
  from.deallocate(from.allocate(40 * mib));
}

TEST(Pool, TrimsAndAsksAgainBeforeItGivesUp) {
  const simulated machine({.device_memory = 128 * mib});
  const pool from(machine.context.device(), {.smallest_growth = 2 * mib});
  std::vector<void*> pieces;
  for (int count = 0; count < 10; ++count) {
    pieces.push_back(from.allocate(8 * mib));
  }
  for (auto* const piece : pieces) {
    from.deallocate(piece);
  }
  // The pieces lie in separate regions: only when they go back to the device is there room.
  auto* const large = from.try_allocate(100 * mib).value();
  from.deallocate(large);
}

TEST(Pool, ReportsLeaksWithTheirCallSites) {
  const simulated machine;
  const pool from(machine.context.pinned(), {.leaks = leak_tracking::call_sites});
  auto* const memory = from.allocate(12345);
  from.deallocate(from.allocate(77));
  const auto leaks = from.leaks();
  ASSERT_EQ(leaks.size(), 1U);
  EXPECT_EQ(leaks[0].address, memory);
  EXPECT_EQ(leaks[0].bytes, 12345U);
  EXPECT_NE(leaks[0].allocated_at[0], nullptr);
  from.deallocate(memory);
  EXPECT_TRUE(from.leaks().empty());
}

TEST(Pool, WastesLittleAndHoldsLittleMoreThanItsPeak) {
  const simulated machine({.data = runtime::sim::data_effects::time_only});
  const pool from(machine.context.device());
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(0, std::log(64.0 * mib));
  struct live_block {
    void* memory = nullptr;
    bytes_t bytes = 0;
  };
  std::vector<live_block> live(128);
  bytes_t live_bytes = 0;
  bytes_t peak = 0;
  double requested = 0;
  double rounded = 0;
  for (int step = 0; step < 20000; ++step) {
    auto& slot = live[random() % live.size()];
    if (slot.memory != nullptr) {
      from.deallocate(slot.memory);
      live_bytes -= slot.bytes;
    }
    slot.bytes = static_cast<bytes_t>(std::exp(exponent(random)));
    slot.memory = from.allocate(slot.bytes);
    live_bytes += slot.bytes;
    peak = std::max(peak, live_bytes);
    if (step % 500 == 0) {
      const auto numbers = from.statistics();
      EXPECT_EQ(numbers.requested_bytes, live_bytes);
      requested += static_cast<double>(numbers.requested_bytes);
      rounded += static_cast<double>(numbers.live_bytes);
    }
  }
  EXPECT_LE(rounded, 1.125 * requested);
  EXPECT_LE(static_cast<double>(from.statistics().peak_held_bytes),
            1.5 * static_cast<double>(peak));
  for (const auto& slot : live) {
    from.deallocate(slot.memory);
  }
}

// Whatever legal order the machine takes: memory freed in one stream's order never meets unordered
// work. Each round fills a block, checks it, and frees it with both still queued.
class pool_order : public ::testing::TestWithParam<std::tuple<schedule, int>> {};

TEST_P(pool_order, WorkNeverMeetsWorkOfAnotherUser) {
  const auto [order, seed] = GetParam();
  const simulated machine({.seed = static_cast<std::uint64_t>(seed), .order = order});
  const pool from(machine.context.device(), {.limit = 8 * mib, .smallest_growth = 2 * mib});
  std::vector<stream> streams;
  for (int count = 0; count < 4; ++count) {
    streams.push_back(machine.context.create_stream());
  }
  const auto counters = machine.context.device();
  auto* const mismatches = static_cast<std::uint64_t*>(counters.allocate(8));
  ASSERT_TRUE(machine.gpu->fill(mismatches, std::byte{0}, 8));
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::uint64_t round = 0; round < 200; ++round) {
    const auto& stream = streams[random() % streams.size()];
    const bytes_t bytes = 8 * (1 + random() % (random() % 16 == 0 ? 128 * 1024 : 4096));
    auto* const memory = from.allocate(bytes, stream);
    ASSERT_TRUE(machine.gpu->launch(runtime::kernel_fill{memory, bytes, round}, stream));
    ASSERT_TRUE(
        machine.gpu->launch(runtime::kernel_verify{memory, bytes, round, 0, mismatches}, stream));
    from.deallocate(memory, stream);
  }
  ASSERT_TRUE(machine.gpu->synchronize_device(0));
  std::uint64_t seen = 1;
  ASSERT_TRUE(machine.gpu->copy(&seen, mismatches, 8));
  EXPECT_EQ(seen, 0U);
  counters.deallocate(mismatches);
}

INSTANTIATE_TEST_SUITE_P(Schedules, pool_order,
                         ::testing::Combine(::testing::Values(schedule::modelled, schedule::early,
                                                              schedule::late, schedule::random),
                                            ::testing::Values(1, 2, 3)));

// For thread sanitizer: real threads on real time.
TEST(PoolThreads, ManyThreadsShareAPool) {
  simulated machine({.clock = runtime::sim::clock_kind::wall, .wall_slowdown = 1});
  const pool from(machine.context.pinned(), {.limit = 256 * mib});
  std::vector<stream> streams;
  for (int count = 0; count < 4; ++count) {
    streams.push_back(machine.context.create_stream());
  }
  std::atomic<std::uint64_t> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        std::mt19937_64 random(number);
        std::vector<std::pair<std::uint64_t*, std::uint64_t>> live;
        for (std::uint64_t step = 0; step < 2000; ++step) {
          if (live.size() > 16 || (!live.empty() && random() % 2 == 0)) {
            const auto [memory, value] = live.back();
            live.pop_back();
            wrong += *memory == value ? 0U : 1U;
            if (random() % 2 == 0) {
              from.deallocate(memory);
            } else {
              from.deallocate(memory, streams[random() % streams.size()]);
            }
          } else {
            auto* const memory = static_cast<std::uint64_t*>(
                from.allocate(8 + random() % (random() % 2 == 0 ? 4096 : 2 * mib)));
            *memory = step * 8 + number;
            live.emplace_back(memory, step * 8 + number);
          }
        }
        for (const auto& [memory, value] : live) {
          wrong += *memory == value ? 0U : 1U;
          from.deallocate(memory);
        }
      });
    }
    for (int count = 0; count < 20; ++count) {
      EXPECT_TRUE(from.try_trim());
      static_cast<void>(from.statistics());
    }
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(from.statistics().live_blocks, 0U);
}

TEST(PoolThreads, AThreadsEndGivesItsCacheBack) {
  const simulated machine;
  const pool from(machine.context.pinned(), {.limit = 32 * mib});
  void* first = nullptr;
  std::thread([&] {
    first = from.allocate(32 * mib);
    from.deallocate(first);
  }).join();
  EXPECT_EQ(from.allocate(32 * mib), first);
  from.deallocate(first);
}

TEST(PoolThreads, APoolMayEndBeforeItsThreads) {
  const simulated machine;
  std::barrier step(2);
  auto from = std::make_unique<pool<pinned_resource>>(machine.context.pinned());
  std::jthread user([&] {
    from->deallocate(from->allocate(4096));
    step.arrive_and_wait();
    step.arrive_and_wait();
    const pool second(machine.context.pinned());
    second.deallocate(second.allocate(4096));
  });
  step.arrive_and_wait();
  from.reset();
  step.arrive_and_wait();
}

}  // namespace
}  // namespace berth
