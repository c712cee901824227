// SPDX-License-Identifier: Apache-2.0
// Streams, events, functions of the program, capture, peers: what the conformance suite cannot ask
// of every driver.
#include <atomic>
#include <thread>

#include "sim_support.hpp"

namespace berth::test {
namespace {

using runtime::capture_mode;
using runtime::capture_status;
using runtime::per_thread_stream;
using runtime::progress;

std::vector<std::string> names_of(const sim_driver& gpu) {
  std::vector<std::string> names;
  for (const auto& one : gpu.executed()) {
    names.push_back(one.what);
  }
  return names;
}

class two_streams : public ::testing::Test {
protected:
  std::shared_ptr<sim_driver> gpu = open_sim("mi250x");
  std::byte* device = static_cast<std::byte*>(gpu->allocate_device(0, mib).value());
  void spin(stream_handle stream, std::chrono::nanoseconds how_long) {
    gpu->launch(runtime::kernel_spin{.release = nullptr, .at_most = how_long}, stream).value();
  }
  void TearDown() override {
    gpu->synchronize_device(0).value();
    gpu->free_device(device).value();
  }
};

TEST_F(two_streams, the_legacy_stream_waits_for_blocking_streams_and_they_for_it) {
  const auto blocking =
      gpu->create_stream(0, {.ordering = runtime::stream_ordering::blocking}).value();
  spin(blocking, 1ms);
  gpu->fill_async(device, std::byte{1}, 64, default_stream).value();
  gpu->copy_async(device + 100, device, 64, blocking).value();
  gpu->synchronize_device(0).value();
  EXPECT_EQ(names_of(*gpu), (std::vector<std::string>{"kernel_spin", "fill", "copy", "barrier"}));
}

TEST_F(two_streams, a_non_blocking_stream_passes_the_legacy_stream) {
  const auto free = gpu->create_stream(0).value();
  spin(default_stream, 1ms);
  gpu->fill_async(device, std::byte{1}, 64, free).value();
  gpu->synchronize_stream(free).value();
  EXPECT_EQ(names_of(*gpu).front(), "fill");
}

TEST_F(two_streams, each_thread_has_its_own_default_stream) {
  spin(per_thread_stream, 1ms);
  std::thread other([&] {
    gpu->fill_async(device, std::byte{1}, 64, per_thread_stream).value();
    gpu->synchronize_stream(per_thread_stream).value();
  });
  other.join();
  EXPECT_EQ(names_of(*gpu).front(), "fill");
  gpu->synchronize_stream(per_thread_stream).value();
}

TEST_F(two_streams, the_higher_priority_goes_first_where_both_wait_for_an_engine) {
  auto* const host = static_cast<std::byte*>(gpu->allocate_pinned(4096).value());
  const auto busy = gpu->create_stream(0).value();
  const auto low = gpu->create_stream(0, {.priority = runtime::stream_priority::low}).value();
  const auto high = gpu->create_stream(0, {.priority = runtime::stream_priority::high}).value();
  gpu->copy_async(device, host, 4096, busy).value();
  gpu->copy_async(device + 5000, host, 11, low).value();
  gpu->copy_async(device + 6000, host, 22, high).value();
  gpu->synchronize_device(0).value();
  EXPECT_EQ(gpu->executed()[1].bytes, 22U);
  gpu->free_pinned(host).value();
}

TEST_F(two_streams, stale_handles_are_found_out) {
  const auto stream = gpu->create_stream(0).value();
  const auto event = gpu->create_event(0).value();
  gpu->destroy_stream(stream).value();
  gpu->destroy_event(event).value();
  expect_error(gpu->synchronize_stream(stream).error(), errc::gpu_invalid_handle);
  expect_error(gpu->destroy_stream(stream).error(), errc::gpu_invalid_handle);
  expect_error(gpu->query_event(event).error(), errc::gpu_invalid_handle);
  EXPECT_NE(gpu->create_stream(0).value(), stream);
}

// --- Functions of the program -----------------------------------------------------------------

TEST_F(two_streams, a_host_function_runs_on_another_thread_with_time_of_its_own) {
  struct seen {
    sim_driver* gpu;
    std::thread::id thread;
    std::chrono::nanoseconds spent{0};
  } what{gpu.get(), {}};
  const auto stream = gpu->create_stream(0).value();
  gpu->call_host(
         stream,
         [](void* data) {
           auto& into = *static_cast<seen*>(data);
           into.thread = std::this_thread::get_id();
           const auto before = into.gpu->now();
           into.gpu->charge({.kind = runtime::host_work_kind::compute, .duration = 3ms});
           into.spent = into.gpu->now() - before;
         },
         &what)
      .value();
  const auto waited = host_time(*gpu, [&] { gpu->synchronize_stream(stream).value(); });
  EXPECT_NE(what.thread, std::this_thread::get_id());
  EXPECT_GE(what.spent, 3ms);
  EXPECT_LT(what.spent, 3.1ms);
  EXPECT_GE(waited, 3ms);
}

TEST_F(two_streams, a_host_function_may_wait_for_the_program) {
  std::atomic<bool> go{false};
  const auto held = gpu->create_stream(0).value();
  const auto other = gpu->create_stream(0).value();
  gpu->call_host(
         held,
         [](void* data) {
           while (!static_cast<std::atomic<bool>*>(data)->load()) {
             std::this_thread::yield();
           }
         },
         &go)
      .value();
  gpu->fill_async(device, std::byte{1}, 64, other).value();
  gpu->synchronize_stream(other).value();
  EXPECT_EQ(gpu->query_stream(held).value(), progress::pending);
  go = true;
  gpu->synchronize_stream(held).value();
}

// --- Capture ----------------------------------------------------------------------------------

TEST_F(two_streams, a_capture_records_and_runs_nothing) {
  const auto stream = gpu->create_stream(0).value();
  gpu->fill(device, std::byte{1}, 64).value();
  gpu->begin_capture(stream, capture_mode::relaxed).value();
  EXPECT_EQ(gpu->stream_capture_status(stream).value(), capture_status::active);
  gpu->fill_async(device, std::byte{2}, 64, stream).value();
  gpu->copy_async(device + 64, device, 64, stream).value();
  EXPECT_EQ(gpu->end_capture(stream).value(), 2U);
  EXPECT_EQ(gpu->stream_capture_status(stream).value(), capture_status::none);
  bytes back(64);
  gpu->copy(back.data(), device, 64).value();
  EXPECT_TRUE(all_are(back.data(), 64, std::byte{1}));
}

TEST_F(two_streams, a_global_capture_refuses_other_threads_unless_they_are_relaxed) {
  const auto stream = gpu->create_stream(0).value();
  gpu->begin_capture(stream, capture_mode::global).value();
  std::thread([&] {
    must(gpu->exchange_capture_mode(capture_mode::relaxed));
    gpu->free_pinned(gpu->allocate_pinned(64).value()).value();
  }).join();
  EXPECT_EQ(gpu->stream_capture_status(stream).value(), capture_status::active);
  std::thread([&] { expect_error(gpu->allocate_pinned(64).error(), errc::gpu_capture); }).join();
  EXPECT_EQ(gpu->stream_capture_status(stream).value(), capture_status::invalidated);
  expect_error(gpu->end_capture(stream).error(), errc::gpu_capture);
  gpu->free_pinned(gpu->allocate_pinned(64).value()).value();
}

TEST_F(two_streams, a_threads_own_capture_leaves_others_alone) {
  const auto stream = gpu->create_stream(0).value();
  gpu->begin_capture(stream, capture_mode::this_thread).value();
  std::thread([&] { gpu->free_pinned(gpu->allocate_pinned(64).value()).value(); }).join();
  EXPECT_EQ(gpu->stream_capture_status(stream).value(), capture_status::active);
  expect_error(gpu->allocate_pinned(64).error(), errc::gpu_capture);
  expect_error(gpu->end_capture(stream).error(), errc::gpu_capture);
}

TEST_F(two_streams, asking_a_capturing_stream_spoils_the_capture) {
  const auto stream = gpu->create_stream(0).value();
  gpu->begin_capture(stream, capture_mode::relaxed).value();
  expect_error(gpu->synchronize_stream(stream).error(), errc::gpu_capture);
  EXPECT_EQ(gpu->stream_capture_status(stream).value(), capture_status::invalidated);
  expect_error(gpu->end_capture(stream).error(), errc::gpu_capture);
}

TEST_F(two_streams, an_event_brings_another_stream_into_the_capture) {
  const auto one = gpu->create_stream(0).value();
  const auto two = gpu->create_stream(0).value();
  const auto event = gpu->create_event(0).value();
  gpu->begin_capture(one, capture_mode::relaxed).value();
  gpu->record_event(event, one).value();
  gpu->wait_event(two, event).value();
  EXPECT_EQ(gpu->stream_capture_status(two).value(), capture_status::active);
  gpu->fill_async(device, std::byte{2}, 64, two).value();
  expect_error(gpu->query_event(event).error(), errc::gpu_capture);
  must(gpu->end_capture(one));
  EXPECT_EQ(gpu->stream_capture_status(two).value(), capture_status::none);
}

TEST_F(two_streams, the_legacy_stream_is_refused_while_a_blocking_stream_captures) {
  const auto blocking =
      gpu->create_stream(0, {.ordering = runtime::stream_ordering::blocking}).value();
  gpu->begin_capture(blocking, capture_mode::relaxed).value();
  expect_error(gpu->fill_async(device, std::byte{1}, 64, default_stream).error(),
               errc::gpu_capture);
  expect_error(gpu->end_capture(blocking).error(), errc::gpu_capture);
}

// --- Peers ------------------------------------------------------------------------------------

TEST(peers, a_kernel_needs_access_and_a_copy_does_not) {
  const auto gpu = open_sim("mi250x,devices=2");
  constexpr std::size_t size = 4096;
  auto* const here = gpu->allocate_device(0, size).value();
  auto* const there = gpu->allocate_device(1, size).value();
  gpu->set_current_device(1).value();
  gpu->fill(there, std::byte{7}, size).value();
  gpu->set_current_device(0).value();
  const runtime::kernel_copy request{.dst = here, .src = there, .bytes = size};
  expect_error(gpu->launch(request, default_stream).error(), errc::gpu_invalid_value);
  gpu->enable_peer_access(0, 1).value();
  gpu->launch(request, default_stream).value();
  gpu->disable_peer_access(0, 1).value();
  gpu->synchronize_device(0).value();
  bytes back(size);
  gpu->copy(back.data(), here, size).value();
  EXPECT_TRUE(all_are(back.data(), size, std::byte{7}));
  gpu->copy_peer_async(here, 0, there, 1, size, default_stream).value();
  expect_error(gpu->copy_peer_async(here, 1, there, 1, size, default_stream).error(),
               errc::gpu_invalid_value);
  gpu->synchronize_device(0).value();
  gpu->synchronize_device(1).value();
  gpu->free_device(here).value();
  gpu->free_device(there).value();
}

}  // namespace
}  // namespace berth::test
