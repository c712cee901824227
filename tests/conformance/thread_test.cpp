// SPDX-License-Identifier: Apache-2.0
// Any thread may call anything at any time, also with the same handle.
#include <array>
#include <atomic>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

constexpr int thread_count = 4;

class thread_suite : public suite {
protected:
  static constexpr bytes_t size = 256 * kib;

  // Runs it in several threads at once, with the thread's number.
  template <typename Work>
  static void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) {
      threads.emplace_back([&work, i] {
        try {
          work(i);
        } catch (const std::exception& why) {
          ADD_FAILURE() << "thread " << i << ": " << why.what();
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
};
BERTH_CONFORMANCE_SUITE(thread_suite);

TEST_P(thread_suite, each_with_its_own_stream_and_memory) {
  in_threads([&](int number) {
    const auto seed = static_cast<std::uint64_t>(number);
    const auto work = must(gpu().create_stream(0));
    auto* device = must(gpu().allocate_device(0, size));
    auto* host = must(gpu().allocate_pinned(size));
    for (int round = 0; round < 10; ++round) {
      runtime::write_pattern(host, size, seed);
      must(gpu().copy_async(device, host, size, work));
      must(gpu().fill_async(host, std::byte{0}, size, work));
      must(gpu().copy_async(host, device, size, work));
      must(gpu().synchronize_stream(work));
      EXPECT_EQ(runtime::count_mismatches(host, size, seed), 0U);
    }
    must(gpu().free_pinned(host));
    must(gpu().free_device(device));
    must(gpu().destroy_stream(work));
  });
}

TEST_P(thread_suite, all_with_one_stream) {
  const auto work = stream();
  auto* device = device_memory(thread_count * size);
  auto* host = pinned_memory(thread_count * size);
  in_threads([&](int number) {
    const auto seed = static_cast<std::uint64_t>(number);
    const auto at = seed * size;
    for (int round = 0; round < 10; ++round) {
      runtime::write_pattern(host + at, size, seed);
      must(gpu().copy_async(device + at, host + at, size, work));
      must(gpu().fill_async(host + at, std::byte{0}, size, work));
      must(gpu().copy_async(host + at, device + at, size, work));
      must(gpu().synchronize_stream(work));
      EXPECT_EQ(runtime::count_mismatches(host + at, size, seed), 0U);
    }
  });
}

TEST_P(thread_suite, all_with_the_default_stream_and_blocking_copies) {
  auto* device = device_memory(thread_count * size);
  in_threads([&](int number) {
    const auto seed = static_cast<std::uint64_t>(number);
    auto* mine = device + seed * size;
    const auto data = pattern(size, seed);
    bytes back(size);
    for (int round = 0; round < 10; ++round) {
      must(gpu().copy(mine, data.data(), size));
      must(gpu().copy(back.data(), mine, size));
      EXPECT_EQ(back, data);
    }
  });
}

TEST_P(thread_suite, memory_is_freed_by_another_thread) {
  std::array<void*, thread_count> device{};
  std::array<void*, thread_count> pinned{};
  in_threads([&](int number) {
    const auto slot = static_cast<std::size_t>(number);
    device[slot] = must(gpu().allocate_device(0, size));
    pinned[slot] = must(gpu().allocate_pinned(size));
  });
  in_threads([&](int number) {
    const auto slot = static_cast<std::size_t>((number + 1) % thread_count);
    must(gpu().free_device(device[slot]));
    must(gpu().free_pinned(pinned[slot]));
  });
}

TEST_P(thread_suite, streams_and_events_are_passed_on) {
  const auto work = stream();
  const auto done = event();
  auto* back = pinned_memory(size);
  std::thread([&] {
    must(gpu().fill_async(back, std::byte{4}, size, work));
    must(gpu().record_event(done, work));
  }).join();
  EXPECT_THAT(gpu().synchronize_event(done), succeeds());
  EXPECT_EQ(bytes(back, back + size), repeated(size, 4));
}

TEST_P(thread_suite, all_wait_for_the_same_event) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto work = stream();
  const auto done = event();
  auto* back = pinned_memory(size);
  delay(work, 5ms);
  must(gpu().fill_async(back, std::byte{5}, size, work));
  must(gpu().record_event(done, work));
  in_threads([&](int number) {
    if (number % 2 == 0) {
      EXPECT_THAT(gpu().synchronize_event(done), succeeds());
    } else {
      while (must(gpu().query_event(done)) == progress::pending) {
      }
    }
    EXPECT_EQ(bytes(back, back + size), repeated(size, 5));
  });
}

TEST_P(thread_suite, one_releases_what_another_waits_for) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto held = new_gate();
  const auto work = stream();
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  held.close(work);
  must(gpu().launch(runtime::kernel_fill{device, size, 6}, work));
  must(gpu().copy_async(back, device, size, work));
  std::thread opener([&] { held.open(); });
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 6), 0U);
  opener.join();
}

TEST_P(thread_suite, a_chain_of_events_goes_through_all_threads) {
  // Thread i adds its step behind the event of thread i-1; only the host's hand-over is a lock.
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  std::vector<stream_handle> streams;
  std::vector<event_handle> events;
  for (int i = 0; i < thread_count; ++i) {
    streams.push_back(stream());
    events.push_back(event());
  }
  auto* wrong = counter();
  std::atomic<int> turn{0};
  in_threads([&](int number) {
    const auto me = static_cast<std::size_t>(number);
    while (turn.load() != number) {
      std::this_thread::yield();
    }
    if (number > 0) {
      must(gpu().wait_event(streams[me], events[me - 1]));
      must(gpu().launch(runtime::kernel_verify{device, size, me - 1, 0, wrong}, streams[me]));
    }
    must(gpu().launch(runtime::kernel_fill{device, size, me}, streams[me]));
    must(gpu().record_event(events[me], streams[me]));
    ++turn;
  });
  EXPECT_THAT(gpu().synchronize_event(events.back()), succeeds());
  EXPECT_EQ(count_in(wrong), 0U);
  EXPECT_EQ(mismatches_in(device, size, thread_count - 1), 0U);
}

TEST_P(thread_suite, everything_at_once) {
  auto* device = device_memory(thread_count * size);
  in_threads([&](int number) {
    const auto seed = static_cast<std::uint64_t>(number);
    auto* mine = device + seed * size;
    bytes back(size);
    for (int round = 0; round < 20; ++round) {
      const auto work = must(gpu().create_stream(0));
      const auto marker = must(gpu().create_event(0));
      auto* host = as_bytes(must(gpu().allocate_pinned(size)));
      runtime::write_pattern(host, size, seed);
      must(gpu().copy_async(mine, host, size, work));
      must(gpu().record_event(marker, work));
      EXPECT_EQ(must(gpu().classify(host + 1)).kind, memory_kind::pinned);
      EXPECT_THAT(gpu().memory_info(0), succeeds());
      EXPECT_THAT(gpu().query_stream(work), succeeds());
      must(gpu().synchronize_event(marker));
      must(gpu().copy(back.data(), mine, size));
      EXPECT_EQ(runtime::count_mismatches(back.data(), size, seed), 0U);
      must(gpu().free_pinned(host));
      must(gpu().destroy_event(marker));
      must(gpu().destroy_stream(work));
    }
  });
}

}  // namespace
}  // namespace berth::conformance
