// SPDX-License-Identifier: Apache-2.0
// Staged copies stand in the order of their stream: after earlier kernels, before later ones,
// across events and default streams, beside streams that stand still, and out of the way of graph
// capture. Under every order that the simulator may choose.
#include <array>
#include <cstring>
#include <thread>

#include "transfer_fixture.hpp"

namespace berth {
namespace {

using runtime::kernel_copy;
using runtime::kernel_fill;
using runtime::kernel_spin;
using runtime::kernel_verify;
using runtime::sim::schedule;
using test::host_buffer;
using test::simulated_engine;

constexpr bytes_t ordered_bytes = 6 * mib;

class Order : public testing::TestWithParam<schedule> {
protected:
  Order() : on({.seed = 5, .order = GetParam()}) {}

  // Differing bytes, counted by a kernel in that stream.
  std::uint64_t mismatches(const std::byte* device, std::uint64_t seed,
                           runtime::stream_handle stream) {
    const unique_memory<std::uint64_t, device_resource> counter(on.context.device(), 1);
    on.gpu->fill_async(counter.data(), std::byte{0}, 8, stream).value();
    on.gpu->launch(kernel_verify{device, ordered_bytes, seed, 0, counter.data()}, stream).value();
    std::uint64_t wrong = 0;
    on.gpu->synchronize_stream(stream).value();
    on.gpu->copy(&wrong, counter.data(), 8).value();
    return wrong;
  }

  simulated_engine on;
};

TEST_P(Order, AfterEarlierAndBeforeLaterKernels) {
  const auto device = on.device_memory(ordered_bytes);
  const auto aside = on.device_memory(ordered_bytes);
  host_buffer host(ordered_bytes, 2);
  host_buffer result(ordered_bytes);
  // The copy to the device overwrites what an earlier kernel fills; a later one sees the copy.
  on.gpu->launch(kernel_fill{device.data(), ordered_bytes, 1}, on.stream).value();
  on.engine.copy(device.data(), host.data(), ordered_bytes, on.stream);
  EXPECT_EQ(mismatches(device.data(), 2, on.stream), 0U);
  // The copy to the host sees the earlier kernel, and not the later one.
  on.gpu->launch(kernel_fill{aside.data(), ordered_bytes, 3}, on.stream).value();
  auto down = on.engine.copy(result.data(), aside.data(), ordered_bytes, on.stream);
  on.gpu->launch(kernel_fill{aside.data(), ordered_bytes, 4}, on.stream).value();
  down.wait();
  EXPECT_EQ(result.mismatches(3), 0U);
}

TEST_P(Order, TheSourceMayChangeOnceTheCallHasReturned) {
  const auto device = on.device_memory(ordered_bytes);
  host_buffer host(ordered_bytes, 6);
  on.engine.copy(device.data(), host.data(), ordered_bytes, on.stream);
  std::memset(host.data(), 0, ordered_bytes);
  EXPECT_EQ(mismatches(device.data(), 6, on.stream), 0U);
}

TEST_P(Order, AcrossStreamsByEvents) {
  const auto device = on.device_memory(ordered_bytes);
  const auto other = on.context.create_stream();
  host_buffer host(ordered_bytes, 7);
  const auto event = on.gpu->create_event(0).value();
  on.gpu->launch(kernel_fill{device.data(), ordered_bytes, 1}, other).value();
  on.gpu->record_event(event, other).value();
  on.gpu->wait_event(on.stream, event).value();
  on.engine.copy(device.data(), host.data(), ordered_bytes, on.stream);
  on.gpu->record_event(event, on.stream).value();
  on.gpu->wait_event(other, event).value();
  EXPECT_EQ(mismatches(device.data(), 7, other), 0U);
  on.gpu->destroy_event(event).value();
}

TEST_P(Order, OfDefaultStreams) {
  const auto device = on.device_memory(ordered_bytes);
  for (const auto stream : {runtime::default_stream, runtime::per_thread_stream}) {
    host_buffer host(ordered_bytes, 8);
    host_buffer result(ordered_bytes);
    const auto blocking =
        on.context.create_stream(0, {.ordering = runtime::stream_ordering::blocking});
    // A blocking stream's work comes before what the default stream gets later, and after what it
    // got earlier.
    on.gpu->launch(kernel_fill{device.data(), ordered_bytes, 1}, blocking).value();
    if (stream == runtime::per_thread_stream) {
      blocking.synchronize();
    }
    on.engine.copy(device.data(), host.data(), ordered_bytes, stream);
    if (stream == runtime::default_stream) {
      EXPECT_EQ(mismatches(device.data(), 8, blocking), 0U);
    } else {
      EXPECT_EQ(mismatches(device.data(), 8, stream), 0U);
    }
    on.engine.copy(result.data(), device.data(), ordered_bytes, stream).wait();
    EXPECT_EQ(result.mismatches(8), 0U);
  }
}

TEST_P(Order, InABlockingStreamAfterTheDefaultStream) {
  const auto device = on.device_memory(ordered_bytes);
  host_buffer result(ordered_bytes);
  const auto blocking =
      on.context.create_stream(0, {.ordering = runtime::stream_ordering::blocking});
  on.gpu->launch(kernel_fill{device.data(), ordered_bytes, 9}, runtime::default_stream).value();
  on.engine.copy(result.data(), device.data(), ordered_bytes, blocking).wait();
  EXPECT_EQ(result.mismatches(9), 0U) << "the stream itself was empty, the default stream not";
}

TEST_P(Order, GraphCaptureElsewhereIsNotDisturbed) {
  using runtime::capture_mode;
  const auto device = on.device_memory(ordered_bytes);
  const auto captured = on.context.create_stream();
  for (const auto mode : {capture_mode::global, capture_mode::this_thread, capture_mode::relaxed}) {
    std::thread([&] {
      on.gpu->begin_capture(captured, mode).value();
      on.gpu->launch(kernel_fill{device.data(), 4096, 1}, captured).value();
    }).join();
    host_buffer host(ordered_bytes, 12);
    host_buffer result(ordered_bytes);
    const auto up = on.engine.copy(device.data(), host.data(), ordered_bytes, on.stream).wait();
    EXPECT_EQ(up.plan.path, copy_path::staged_threaded);
    on.engine.copy(result.data(), device.data(), ordered_bytes, on.stream).wait();
    EXPECT_EQ(result.mismatches(12), 0U);
    EXPECT_EQ(on.gpu->exchange_capture_mode(capture_mode::global).value(), capture_mode::global)
        << "the caller's own mode is left as it was";
    std::thread([&] { EXPECT_EQ(on.gpu->end_capture(captured).value(), 1U); }).join();
  }
}

TEST_P(Order, ACapturingStreamRecordsTheRuntimesOwnCopy) {
  const auto device = on.device_memory(ordered_bytes);
  const unique_memory<std::byte, pinned_resource> pinned(on.context.pinned(), ordered_bytes);
  const auto captured = on.context.create_stream();
  on.gpu->begin_capture(captured, runtime::capture_mode::relaxed).value();
  auto recorded = on.engine.try_copy(device.data(), pinned.data(), ordered_bytes, captured);
  EXPECT_TRUE(recorded);
  EXPECT_EQ(on.gpu->end_capture(captured).value(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Simulated, Order, test::each_order, test::name_of_order);

// A stream that stands still holds none of the rings that others need, however many copies wait in
// it.
TEST(StandingStill, OthersCopyOn) {
  simulated_engine on({.clock = runtime::sim::clock_kind::wall, .wall_slowdown = 1},
                      {.most_threads = 3, .most_rings = 2});
  const auto device = on.device_memory(ordered_bytes);
  const auto other_device = on.device_memory(ordered_bytes);
  const unique_memory<std::uint32_t, pinned_resource> flag(on.context.pinned(), 1);
  std::atomic_ref<std::uint32_t> release(*flag.data());
  release = 0;
  const auto still = on.context.create_stream();
  on.gpu->launch(kernel_spin{flag.data(), std::chrono::seconds(9)}, still).value();
  std::vector<std::jthread> waiting;
  std::vector<host_buffer> hosts(4, host_buffer(ordered_bytes, 14));
  for (auto& host : hosts) {
    waiting.emplace_back([&] {
      const auto done = on.engine.try_copy(device.data(), host.data(), ordered_bytes, still);
      EXPECT_TRUE(done);
    });
  }
  host_buffer host(ordered_bytes, 15);
  host_buffer result(ordered_bytes);
  for (int round = 0; round < 5; ++round) {
    on.engine.copy_and_wait(other_device.data(), host.data(), ordered_bytes, on.stream);
    const auto down =
        on.engine.copy_and_wait(result.data(), other_device.data(), ordered_bytes, on.stream);
    EXPECT_EQ(down.plan.path, copy_path::staged_threaded);
    EXPECT_EQ(result.mismatches(15), 0U);
  }
  EXPECT_EQ(on.gpu->query_stream(still).value(), runtime::progress::pending);
  release = 1;
  waiting.clear();
  still.synchronize();
}

}  // namespace
}  // namespace berth
