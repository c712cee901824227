// SPDX-License-Identifier: Apache-2.0
// Workers on the virtual clock, and many threads on the wall clock.
#include <atomic>
#include <thread>

#include "sim_support.hpp"

namespace berth::test {
namespace {

using runtime::host_work_kind;
using runtime::progress;
using runtime::step_outcome;

// Workers that each do a number of equal pieces of host work.
std::chrono::nanoseconds time_of(sim_driver& gpu, unsigned workers, unsigned pieces_each,
                                 const runtime::host_work& piece) {
  std::vector<std::unique_ptr<runtime::executor::worker>> running;
  unsigned done = 0;
  const auto before = gpu.now();
  for (unsigned index = 0; index < workers; ++index) {
    running.push_back(gpu.workers()->start([&gpu, &done, piece, left = pieces_each]() mutable {
      gpu.charge(piece);
      ++done;
      return --left > 0 ? step_outcome::again : step_outcome::finished;
    }));
  }
  EXPECT_TRUE(gpu.workers()->wait_until([&] { return done == workers * pieces_each; }));
  return gpu.now() - before;
}

TEST(workers, run_beside_each_other) {
  const auto gpu = open_sim("h200,cpus=8");
  const runtime::host_work millisecond{.kind = host_work_kind::compute, .duration = 1ms};
  EXPECT_NEAR(static_cast<double>(time_of(*gpu, 4, 10, millisecond).count()), 9e6, 1.5e6);
}

TEST(workers, share_the_cpus_there_are) {
  const auto gpu = open_sim("h200,cpus=2");
  const runtime::host_work millisecond{.kind = host_work_kind::compute, .duration = 1ms};
  EXPECT_NEAR(static_cast<double>(time_of(*gpu, 4, 10, millisecond).count()), 20e6, 2e6);
}

TEST(workers, share_the_bandwidth_of_memory) {
  const runtime::host_work piece{.kind = host_work_kind::copy, .bytes = mib};
  const auto rate = [&](unsigned workers) {
    const auto gpu = open_sim("h200,cpus=16");
    return gb_per_s(mib * 50 * workers, time_of(*gpu, workers, 50, piece));
  };
  EXPECT_NEAR(rate(1), 10, 1);  // what one, four, eight threads of memcpy give there
  EXPECT_NEAR(rate(4), 34, 4);
  EXPECT_NEAR(rate(8), 44.5, 5);
}

TEST(workers, sleep_until_they_are_woken) {
  const auto gpu = open_sim("h200");
  unsigned steps = 0;
  const auto worker = gpu->workers()->start([&] {
    ++steps;
    return step_outcome::sleep;
  });
  EXPECT_TRUE(gpu->workers()->wait_until([&] { return steps == 1; }));
  gpu->charge({.kind = host_work_kind::wait, .duration = 10ms});
  EXPECT_EQ(steps, 1U);
  worker->wake();
  EXPECT_TRUE(gpu->workers()->wait_until([&] { return steps == 2; }));
  EXPECT_FALSE(gpu->workers()->wait_until([] { return false; })) << "nothing is left to happen";
}

// A staging copy as the copy engine does one: workers fill slots, submit, and poll.
std::string staged_copy(std::uint64_t seed, runtime::sim::schedule order) {
  runtime::sim::options options{.model = "h200"};
  options.seed = seed;
  options.order = order;
  options.pages = runtime::sim::page_state::resident;
  const auto gpu = open_sim(options);
  constexpr std::size_t slot = 64 * kib;
  constexpr unsigned slots = 24;
  auto source = bytes::pattern(slot * slots, 5);
  auto* const device = static_cast<std::byte*>(gpu->allocate_device(0, slot * slots).value());
  unsigned next = 0;
  unsigned done = 0;
  std::vector<std::unique_ptr<runtime::executor::worker>> workers;
  std::vector<void*> rings;
  for (unsigned index = 0; index < 3; ++index) {
    auto* const ring = static_cast<std::byte*>(gpu->allocate_pinned(slot).value());
    rings.push_back(ring);
    const auto stream = gpu->create_stream(0).value();
    const auto event = gpu->create_event(0).value();
    workers.push_back(gpu->workers()->start([&, ring, stream, event, busy = false]() mutable {
      if (busy && gpu->query_event(event).value() == progress::pending) {
        return step_outcome::poll;
      }
      done += busy ? 1 : 0;
      busy = false;
      if (next == slots) {
        return step_outcome::finished;
      }
      const auto mine = next++;
      std::memcpy(ring, source.data() + mine * slot, slot);
      gpu->charge({.kind = host_work_kind::copy, .bytes = slot, .src = source.data(), .dst = ring});
      gpu->copy_async(device + mine * slot, ring, slot, stream).value();
      gpu->record_event(event, stream).value();
      busy = true;
      return step_outcome::again;
    }));
  }
  EXPECT_TRUE(gpu->workers()->wait_until([&] { return done == slots; }));
  workers.clear();
  bytes back(slot * slots);
  gpu->copy(back.data(), device, back.size()).value();
  EXPECT_EQ(back.mismatches(5), 0U) << "seed " << seed;
  for (auto* const ring : rings) {
    gpu->free_pinned(ring).value();
  }
  gpu->free_device(device).value();
  return gpu->executed_text();
}

TEST(workers, give_the_same_trace_for_a_seed_and_right_bytes_for_all) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto first = staged_copy(seed, runtime::sim::schedule::random);
    EXPECT_EQ(first, staged_copy(seed, runtime::sim::schedule::random));
  }
  staged_copy(0, runtime::sim::schedule::late);
  staged_copy(0, runtime::sim::schedule::early);
}

// --- Wall clock -------------------------------------------------------------------------------

// Each thread has its own streams and memory; some copies cross over.
void round_trips(sim_driver& gpu, unsigned thread, unsigned rounds) {
  constexpr std::size_t size = 32 * kib;
  const auto stream = gpu.create_stream(0).value();
  const auto second = gpu.create_stream(0).value();
  const auto event = gpu.create_event(0).value();
  auto* const device = gpu.allocate_device(0, size).value();
  auto* const source = gpu.allocate_pinned(size).value();
  auto* const result = gpu.allocate_pinned(size).value();
  bytes back(size);
  for (unsigned round = 0; round < rounds; ++round) {
    const std::uint64_t seed = thread * 1000 + round;
    runtime::write_pattern(source, size, seed);
    gpu.copy_async(device, source, size, stream).value();
    gpu.record_event(event, stream).value();
    gpu.wait_event(second, event).value();
    gpu.copy_async(result, device, size, second).value();
    if (round % 2 == 0) {
      gpu.synchronize_stream(second).value();
    } else {
      while (gpu.query_stream(second).value() == progress::pending) {
        std::this_thread::yield();
      }
    }
    ASSERT_EQ(runtime::count_mismatches(result, size, seed), 0U);
    gpu.copy(back.data(), device, size).value();
    ASSERT_EQ(back.mismatches(seed), 0U);
  }
  gpu.free_device(device).value();
  gpu.free_pinned(source).value();
  gpu.free_pinned(result).value();
  gpu.destroy_event(event).value();
  gpu.destroy_stream(stream).value();
  gpu.destroy_stream(second).value();
}

void from_many_threads(std::string_view how) {
  const auto gpu = open_sim(how);
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < 4; ++index) {
    threads.emplace_back([&gpu, index] { round_trips(*gpu, index, 30); });
  }
  for (auto& one : threads) {
    one.join();
  }
  const auto held = gpu->held();
  EXPECT_EQ(held.allocations, 0U);
  EXPECT_EQ(held.pending, 0U);
}

TEST(wall_clock, many_threads_get_their_data) {
  from_many_threads("h200,clock=wall,slowdown=2");
}
TEST(wall_clock, many_threads_get_their_data_in_random_order) {
  from_many_threads("mi250x,clock=wall,slowdown=2,schedule=random,seed=4");
}
TEST(virtual_clock, many_threads_get_their_data) {
  from_many_threads("h200");
}

TEST(wall_clock, runs_in_real_time_slowed_by_the_factor) {
  const auto gpu = open_sim("h200,clock=wall,slowdown=100");
  auto* const device = gpu->allocate_device(0, mib).value();
  auto* const host = gpu->allocate_pinned(mib).value();
  const auto before = std::chrono::steady_clock::now();
  gpu->copy(device, host, mib).value();
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_GE(took, 1900us);  // 19.9 us x 100
  gpu->free_device(device).value();
  gpu->free_pinned(host).value();
}

TEST(wall_clock, a_spinning_kernel_is_released_by_the_host) {
  const auto gpu = open_sim("h200,clock=wall");
  auto* const word = static_cast<std::uint32_t*>(gpu->allocate_pinned(64).value());
  std::atomic_ref<std::uint32_t> release(*word);
  release.store(0);
  const auto stream = gpu->create_stream(0).value();
  gpu->launch(runtime::kernel_spin{.release = word, .at_most = 5s}, stream).value();
  EXPECT_EQ(gpu->query_stream(stream).value(), progress::pending);
  release.store(1, std::memory_order_release);
  gpu->synchronize_stream(stream).value();
  gpu->free_pinned(word).value();
}

TEST(wall_clock, host_functions_run_in_order) {
  const auto gpu = open_sim("h200,clock=wall");
  const auto stream = gpu->create_stream(0).value();
  std::vector<int> order;
  struct item {
    std::vector<int>* order;
    int number;
  };
  std::vector<item> items;
  for (int index = 0; index < 10; ++index) {
    items.push_back({&order, index});
  }
  for (auto& one : items) {
    gpu->call_host(
           stream,
           [](void* data) {
             const auto& what = *static_cast<item*>(data);
             what.order->push_back(what.number);
           },
           &one)
        .value();
  }
  gpu->synchronize_stream(stream).value();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace berth::test
