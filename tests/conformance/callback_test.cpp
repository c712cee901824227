// SPDX-License-Identifier: Apache-2.0
// call_host: functions of the program in a stream.
#include <array>
#include <atomic>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class callback_suite : public suite {
protected:
  static constexpr bytes_t size = 256 * kib;

  void SetUp() override {
    suite::SetUp();
    BERTH_NEEDS(lacks(capability::host_callback));
  }
  // Any callable, kept until the end of the case.
  void call(stream_handle stream, std::function<void()> what) {
    calls_.push_back(std::make_unique<std::function<void()>>(std::move(what)));
    EXPECT_THAT(
        gpu().call_host(
            stream, [](void* data) { (*static_cast<const std::function<void()>*>(data))(); },
            calls_.back().get()),
        succeeds());
  }

private:
  std::vector<std::unique_ptr<std::function<void()>>> calls_;
};
BERTH_CONFORMANCE_SUITE(callback_suite);

TEST_P(callback_suite, gets_its_data) {
  std::atomic<int> value{0};
  EXPECT_THAT(gpu().call_host(
                  default_stream,
                  [](void* data) { static_cast<std::atomic<int>*>(data)->store(7); }, &value),
              succeeds());
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(value, 7);
}

TEST_P(callback_suite, is_called_exactly_once) {
  std::atomic<int> calls{0};
  for (const auto work : {stream(), blocking_stream(), default_stream}) {
    call(work, [&] { ++calls; });
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  }
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  EXPECT_EQ(calls, 3);
}

TEST_P(callback_suite, comes_after_earlier_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  std::atomic<std::uint64_t> wrong{~std::uint64_t{0}};
  const auto work = stream();
  delay(work, 5ms);
  must(gpu().launch(runtime::kernel_fill{device, size, 1}, work));
  must(gpu().copy_async(back, device, size, work));
  call(work, [&] { wrong = runtime::count_mismatches(back, size, 1); });
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(wrong, 0U);
}

TEST_P(callback_suite, comes_before_later_work) {
  auto* device = device_memory(size);
  auto* from = pinned_memory(size);
  runtime::write_pattern(from, size, 1);
  const auto work = stream();
  call(work, [from] { runtime::write_pattern(from, size, 2); });
  must(gpu().copy_async(device, from, size, work));
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(mismatches_in(device, size, 2), 0U) << "what the function wrote";
}

TEST_P(callback_suite, does_not_run_before_its_turn) {
  BERTH_NEEDS(lacks(capability::kernels));
  std::atomic<int> calls{0};
  const auto held = new_gate();
  const auto work = stream();
  held.close(work);
  call(work, [&] { ++calls; });
  EXPECT_THAT(gpu().query_stream(work), gives(progress::pending));
  EXPECT_EQ(calls, 0);
  held.open();
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(calls, 1);
}

TEST_P(callback_suite, several_run_in_order) {
  std::vector<int> order;  // only the stream's turn touches it
  const auto work = stream();
  for (int i = 0; i < 100; ++i) {
    call(work, [&order, i] { order.push_back(i); });
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(callback_suite, may_read_the_clock_and_charge) {
  const auto before = gpu().now();
  std::atomic<std::chrono::nanoseconds::rep> inside{0};
  call(default_stream, [&] {
    gpu().charge({.kind = runtime::host_work_kind::compute, .duration = 1us});
    inside = gpu().now().count();
  });
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_GE(inside, before.count());
  EXPECT_LE(inside, gpu().now().count());
}

TEST_P(callback_suite, an_event_after_it_waits_for_its_return) {
  std::atomic<int> calls{0};
  const auto work = stream();
  const auto marker = event();
  call(work, [&] { ++calls; });
  must(gpu().record_event(marker, work));
  EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
  EXPECT_EQ(calls, 1);
}

TEST_P(callback_suite, runs_although_its_stream_is_destroyed) {
  BERTH_NEEDS(lacks(capability::kernels));
  std::atomic<int> calls{0};
  const auto work = must(gpu().create_stream(0));
  delay(work, 2ms);
  call(work, [&] { ++calls; });
  EXPECT_THAT(gpu().destroy_stream(work), succeeds());
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  EXPECT_EQ(calls, 1);
}

TEST_P(callback_suite, copies_and_functions_alternate) {
  constexpr int rounds = 20;
  auto* device = device_memory(size);
  auto* host = pinned_memory(size);
  std::uint64_t wrong = 0;  // only the stream's turn touches it
  const auto work = stream();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    call(work, [=] { runtime::write_pattern(host, size, round); });
    must(gpu().copy_async(device, host, size, work));
    must(gpu().fill_async(host, std::byte{0}, size, work));
    must(gpu().copy_async(host, device, size, work));
    call(work, [=, &wrong] { wrong += runtime::count_mismatches(host, size, round); });
  }
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(wrong, 0U);
}

class no_callback_suite : public suite {};
BERTH_CONFORMANCE_SUITE(no_callback_suite);

TEST_P(no_callback_suite, functions_are_refused_where_there_are_none) {
  BERTH_NEEDS(has_after_all(capability::host_callback));
  EXPECT_THAT(gpu().call_host(
                  default_stream, [](void*) {}, nullptr),
              fails_with(errc::gpu_not_supported));
}

}  // namespace
}  // namespace berth::conformance
