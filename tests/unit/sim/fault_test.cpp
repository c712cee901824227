// SPDX-License-Identifier: Apache-2.0
// Things that go wrong on purpose: each call made to fail once in a session that uses them all,
// slow and corrupt copies, a lost device.
#include <functional>
#include <set>

#include "sim_support.hpp"

namespace berth::test {
namespace {

using runtime::capture_mode;
using runtime::sim::call;
using runtime::sim::fault;
using runtime::sim::fault_kind;

// A program that uses every operation of the contract, and gives back what it has when one fails.
class session {
public:
  explicit session(sim_driver& on) : gpu_(on) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  session(session&&) = delete;
  session& operator=(session&&) = delete;
  ~session() { give_back(); }

  // The first error, or nothing.
  std::optional<berth::error> run() {
    try {
      devices();
      memory();
      copies();
      streams();
      kernels();
      free_all();
    } catch (const berth::exception& failed) {
      return failed.details();
    }
    return std::nullopt;
  }

private:
  static constexpr std::size_t size = 64 * kib;

  void devices() {
    must(gpu_.memory_info(0));
    gpu_.set_current_device(gpu_.current_device().value()).value();
    if (gpu_.can_access_peer(0, 1).value()) {
      gpu_.enable_peer_access(0, 1).value();
      gpu_.disable_peer_access(0, 1).value();
    }
    gpu_.prepare_kernels(0).value();
  }
  void memory() {
    device_ = hold(gpu_.allocate_device(0, size).value(), &sim_driver::free_device);
    other_ = hold(gpu_.allocate_device(1, size).value(), &sim_driver::free_device);
    pinned_ = hold(gpu_.allocate_pinned(size).value(), &sim_driver::free_pinned);
    managed_ = hold(gpu_.allocate_managed(0, size).value(), &sim_driver::free_managed);
    gpu_.register_host(host_.data(), size).value();
    registered_ = true;
    must(gpu_.device_address(host_.data()));
    must(gpu_.classify(device_));
    std::memset(managed_, 0, size);
    gpu_.advise(managed_, size, runtime::advice::set_read_mostly, {}).value();
  }
  void copies() {
    stream_ = gpu_.create_stream(0).value();
    gpu_.prefetch_async(managed_, size, {}, *stream_).value();
    gpu_.copy(device_, host_.data(), size).value();
    gpu_.copy_async(pinned_, device_, size, *stream_).value();
    const runtime::copy_2d rows{
        .dst = device_, .dst_pitch = 100, .src = pinned_, .src_pitch = 120, .width = 90, .rows = 9};
    gpu_.synchronize_stream(*stream_).value();
    gpu_.copy_2d_sync(rows).value();
    gpu_.copy_2d_async(rows, *stream_).value();
    gpu_.copy_peer_async(other_, 1, device_, 0, size, *stream_).value();
    gpu_.fill(device_, std::byte{1}, size).value();
    gpu_.fill_async(device_, std::byte{1}, size, *stream_).value();
  }
  void streams() {
    event_ = gpu_.create_event(0, {.timing = runtime::event_timing::enabled}).value();
    gpu_.record_event(*event_, *stream_).value();
    gpu_.wait_event(default_stream, *event_).value();
    gpu_.call_host(
            *stream_, [](void* data) { ++*static_cast<int*>(data); }, &called_)
        .value();
    while (gpu_.query_stream(*stream_).value() == runtime::progress::pending) {
    }
    must(gpu_.query_event(*event_));
    gpu_.synchronize_event(*event_).value();
    must(gpu_.elapsed(*event_, *event_));
    must(gpu_.stream_capture_status(*stream_));
    must(gpu_.exchange_capture_mode(gpu_.exchange_capture_mode(capture_mode::relaxed).value()));
    gpu_.synchronize_device(0).value();
  }
  void kernels() {
    gpu_.launch(runtime::kernel_fill{.dst = device_, .bytes = size, .seed = 1, .offset = 0},
                *stream_)
        .value();
    gpu_.synchronize_stream(*stream_).value();
  }
  void free_all() {
    while (!held_.empty()) {
      const auto [memory, free] = held_.back();
      (gpu_.*free)(memory).value();
      held_.pop_back();
    }
    gpu_.unregister_host(host_.data()).value();
    registered_ = false;
    gpu_.destroy_event(*event_).value();
    event_.reset();
    gpu_.destroy_stream(*stream_).value();
    stream_.reset();
  }

  using free_function = result<void> (sim_driver::*)(void*);
  std::byte* hold(void* memory, free_function free) {
    held_.emplace_back(memory, free);
    return static_cast<std::byte*>(memory);
  }
  // What a careful program does after a failure; nothing is made to fail any more.
  void give_back() {
    gpu_.clear_faults();
    static_cast<void>(gpu_.synchronize_device(0));
    for (const auto& [memory, free] : held_) {
      EXPECT_TRUE((gpu_.*free)(memory));
    }
    if (registered_) {
      EXPECT_TRUE(gpu_.unregister_host(host_.data()));
    }
    if (event_) {
      EXPECT_TRUE(gpu_.destroy_event(*event_));
    }
    if (stream_) {
      EXPECT_TRUE(gpu_.destroy_stream(*stream_));
    }
  }

  sim_driver& gpu_;
  bytes host_{size};
  std::byte* device_ = nullptr;
  std::byte* other_ = nullptr;
  std::byte* pinned_ = nullptr;
  std::byte* managed_ = nullptr;
  std::vector<std::pair<void*, free_function>> held_;
  bool registered_ = false;
  std::optional<stream_handle> stream_;
  std::optional<runtime::event_handle> event_;
  int called_ = 0;
};

void expect_nothing_held(const sim_driver& gpu) {
  const auto held = gpu.held();
  EXPECT_EQ(held.allocations, 0U);
  EXPECT_EQ(held.registrations, 0U);
  EXPECT_EQ(held.streams, 0U);
  EXPECT_EQ(held.events, 0U);
  EXPECT_EQ(held.pending, 0U);
}

class every_call : public ::testing::TestWithParam<std::string_view> {};

TEST_P(every_call, can_fail_and_nothing_is_lost) {
  const auto whole = open_sim(GetParam());
  ASSERT_EQ(session(*whole).run(), std::nullopt);
  const auto calls = whole->calls();
  ASSERT_GT(calls, 40U);
  std::set<std::string> failed;
  for (std::uint64_t k = 1; k <= calls; ++k) {
    const auto gpu = open_sim(GetParam());
    gpu->inject({.kind = fault_kind::fail_call, .only = {}, .nth = k});
    std::optional<berth::error> error;
    {
      session one(*gpu);
      error = one.run();
    }
    if (error) {
      const auto which = runtime::sim::parse_call(error->where());
      ASSERT_TRUE(which) << error->to_string();
      EXPECT_EQ(error->code(), runtime::sim::info_of(*which).failure) << error->to_string();
      EXPECT_NE(error->message().find("injected"), std::string::npos);
      failed.insert(error->where());
    }
    expect_nothing_held(*gpu);
  }
  EXPECT_EQ(failed.size(), runtime::sim::call_count) << "a call that the session leaves out";
}

INSTANTIATE_TEST_SUITE_P(models, every_call,
                         ::testing::Values("h200,devices=2", "mi250x,devices=2",
                                           "mi300x,devices=2,schedule=random,seed=3"),
                         [](const auto& one) { return std::to_string(one.index); });

TEST(faults, a_call_can_be_named_and_told_its_error) {
  const auto gpu = open_sim("h200");
  gpu->inject({.only = call::classify, .nth = 2, .code = errc::gpu_not_permitted});
  int local = 0;
  EXPECT_TRUE(gpu->classify(&local));
  EXPECT_TRUE(gpu->current_device());
  expect_error(gpu->classify(&local).error(), errc::gpu_not_permitted);
  EXPECT_TRUE(gpu->classify(&local));
}

TEST(faults, every_call_from_now_on) {
  const auto gpu = open_sim("h200");
  gpu->inject({.only = call::allocate_pinned, .nth = 0});
  const auto first = gpu->allocate_pinned(100).error();
  expect_error(first, errc::gpu_out_of_memory);
  EXPECT_EQ(first.shortage()->requested, 100U);
  expect_error(gpu->allocate_pinned(100).error(), errc::gpu_out_of_memory);
  gpu->clear_faults();
  gpu->free_pinned(gpu->allocate_pinned(100).value()).value();
}

TEST(faults, a_corrupt_copy_is_wrong_in_one_byte) {
  const auto gpu = open_sim("h200");
  auto source = bytes::pattern(10'000, 3);
  bytes back(10'000);
  auto* const device = gpu->allocate_device(0, 10'000).value();
  gpu->inject({.kind = fault_kind::corrupt_copy, .only = {}, .nth = 2});
  gpu->copy(device, source.data(), 10'000).value();
  gpu->copy(back.data(), device, 10'000).value();
  EXPECT_EQ(back.mismatches(3), 1U);
  gpu->copy(back.data(), device, 10'000).value();
  EXPECT_EQ(back.mismatches(3), 0U);
  gpu->free_device(device).value();
}

TEST(faults, a_slow_copy_takes_its_factor) {
  const auto gpu = open_sim("h200,pages=resident");
  bytes host(mib);
  auto* const device = gpu->allocate_device(0, mib).value();
  const auto copy = [&] { gpu->copy(device, host.data(), mib).value(); };
  const auto usual = host_time(*gpu, copy);
  gpu->inject({.kind = fault_kind::slow_copy, .only = {}, .nth = 1, .factor = 50});
  EXPECT_GT(host_time(*gpu, copy), 20 * usual);
  EXPECT_EQ(host_time(*gpu, copy), usual);
  gpu->free_device(device).value();
}

TEST(faults, a_lost_device_refuses_everything_and_the_other_goes_on) {
  const auto gpu = open_sim("mi250x,devices=2");
  bytes host(4096);
  auto* const device = gpu->allocate_device(0, 4096).value();
  const auto stream = gpu->create_stream(0).value();
  int called = 0;
  gpu->inject({.kind = fault_kind::lose_device, .only = {}, .nth = 2});
  gpu->launch(runtime::kernel_spin{.release = nullptr, .at_most = 1ms}, stream).value();
  gpu->fill_async(device, std::byte{1}, 4096, stream).value();
  gpu->call_host(
         stream, [](void* data) { ++*static_cast<int*>(data); }, &called)
      .value();
  expect_error(gpu->synchronize_stream(stream).error(), errc::gpu_device_lost);
  expect_error(gpu->allocate_device(0, 4096).error(), errc::gpu_device_lost);
  expect_error(gpu->copy(device, host.data(), 4096).error(), errc::gpu_device_lost);
  expect_error(gpu->query_stream(stream).error(), errc::gpu_device_lost);
  expect_error(gpu->synchronize_device(0).error(), errc::gpu_device_lost);
  EXPECT_EQ(called, 0);
  EXPECT_EQ(gpu->held().pending, 0U);
  auto* const other = gpu->allocate_device(1, 4096).value();
  gpu->set_current_device(1).value();
  gpu->copy(other, host.data(), 4096).value();
  gpu->free_device(other).value();
}

}  // namespace
}  // namespace berth::test
