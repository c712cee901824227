// SPDX-License-Identifier: Apache-2.0
// What goes wrong, goes wrong in the open: each GPU call of a copy fails once, devices are lost,
// streams stand still, processes fork, engines end too early.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "transfer_fixture.hpp"

namespace berth {
namespace {

using runtime::kernel_spin;
using runtime::sim::clock_kind;
using runtime::sim::fault;
using runtime::sim::fault_kind;
using test::host_buffer;
using test::simulated_engine;

constexpr bytes_t copied_bytes = 3 * mib;

// Whether a copy there and back works.
void expect_working(simulated_engine& on, std::byte* device) {
  host_buffer source(copied_bytes, 77);
  host_buffer result(copied_bytes);
  const auto up = on.engine.copy_and_wait(device, source.data(), copied_bytes, on.stream);
  EXPECT_EQ(up.plan.path, copy_path::staged_threaded) << to_string(up.plan.reason);
  on.engine.copy_and_wait(result.data(), device, copied_bytes, on.stream);
  EXPECT_EQ(result.mismatches(77), 0U);
}

// The k-th call from now on fails, for each k, until a whole round makes fewer calls than that.
template <typename Round>
void fail_each_call(simulated_engine& on, std::byte* device, Round round) {
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
  for (std::uint64_t k = 1; k <= calls + 1; ++k) {
    on.gpu->inject({.kind = fault_kind::fail_call, .nth = k, .code = errc::gpu_unexpected});
    const auto before = on.gpu->calls();
    const result<void> done = round();
    calls = on.gpu->calls() - before;
    on.gpu->clear_faults();
    if (!done) {
      ++failures;
      EXPECT_EQ(done.error().code(), errc::gpu_unexpected) << k << ": " << done.error().to_string();
      EXPECT_NE(done.error().to_string().find("an injected failure"), std::string::npos);
    }
    expect_working(on, device);
    ASSERT_LT(k, 5000U) << "a round makes ever more calls";
  }
  EXPECT_GT(failures, 10U);
}

TEST(EachCallFails, OfACopyToTheDevice) {
  simulated_engine on;
  const auto device = on.device_memory(copied_bytes);
  host_buffer host(copied_bytes, 1);
  fail_each_call(on, device.data(), [&]() -> result<void> {
    const auto done =
        on.engine.try_copy_and_wait(device.data(), host.data(), copied_bytes, on.stream);
    return done ? result<void>() : done.error();
  });
}

TEST(EachCallFails, OfACopyToTheHost) {
  simulated_engine on;
  const auto device = on.device_memory(copied_bytes);
  host_buffer host(copied_bytes);
  fail_each_call(on, device.data(), [&]() -> result<void> {
    auto ticket = on.engine.try_copy(host.data(), device.data(), copied_bytes, on.stream);
    if (!ticket) {
      return ticket.error();
    }
    const auto done = ticket->try_wait();
    return done ? result<void>() : done.error();
  });
}

TEST(EachCallFails, OfABatch) {
  simulated_engine on;
  const auto device = on.device_memory(copied_bytes);
  host_buffer host(copied_bytes, 1);
  std::vector<copy_range> ranges;
  for (bytes_t at = 0; at + 5000 < 1 * mib; at += 8192) {
    ranges.push_back({device.data() + at, host.data() + at, 5000});
  }
  fail_each_call(on, device.data(), [&]() -> result<void> {
    auto ticket = on.engine.try_copy_batch(ranges, on.stream);
    if (!ticket) {
      return ticket.error();
    }
    const auto done = ticket->try_wait();
    return done ? result<void>() : done.error();
  });
}

TEST(EachCallFails, OfTheSetUp) {
  for (std::uint64_t k = 1; k < 90; ++k) {
    const auto gpu = simulated_engine::make({});
    const auto context = berth::context::on(gpu);
    const unique_memory<std::byte, device_resource> device(context.device(), copied_bytes);
    const auto stream = context.create_stream();
    const auto before = gpu->held();
    {
      auto engine = copy_engine::make(context, {.ring_bytes = 4 * mib});
      gpu->inject({.kind = fault_kind::fail_call, .nth = k, .code = errc::gpu_out_of_memory});
      const auto prepared = engine.try_prepare();
      gpu->clear_faults();
      if (!prepared) {
        EXPECT_EQ(prepared.error().code(), errc::gpu_out_of_memory);
      }
      host_buffer source(copied_bytes, 3);
      host_buffer result(copied_bytes);
      engine.copy(device.data(), source.data(), copied_bytes, stream).wait();
      engine.copy(result.data(), device.data(), copied_bytes, stream).wait();
      EXPECT_EQ(result.mismatches(3), 0U) << "copies are left to the runtime";
    }
    const auto after = gpu->held();
    EXPECT_EQ(after.streams, before.streams) << k;
    EXPECT_EQ(after.events, before.events) << k;
    EXPECT_EQ(after.registrations, before.registrations) << k;
    EXPECT_EQ(context.pinned_memory().used, 0U) << k;
  }
}

TEST(Failure, ALostDeviceIsSaidAndNothingHangs) {
  simulated_engine on;
  const auto device = on.device_memory(16 * mib);
  host_buffer host(16 * mib, 1);
  on.gpu->inject({.kind = fault_kind::lose_device, .nth = 5});
  const auto done = on.engine.try_copy_and_wait(device.data(), host.data(), 16 * mib, on.stream);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), errc::gpu_device_lost);
}

TEST(Failure, ACorruptedDmaIsWhatTheTestsWouldSee) {
  simulated_engine on;
  const auto device = on.device_memory(copied_bytes);
  host_buffer source(copied_bytes, 5);
  host_buffer result(copied_bytes);
  on.engine.copy_and_wait(device.data(), source.data(), copied_bytes, on.stream);
  on.gpu->inject({.kind = fault_kind::corrupt_copy, .nth = 2});
  on.engine.copy_and_wait(result.data(), device.data(), copied_bytes, on.stream);
  EXPECT_EQ(result.mismatches(5), 1U);
}

TEST(Failure, TheWatchdogReportsACopyThatStandsStill) {
  std::atomic<int> reports{0};
  stalled_copy last;
  simulated_engine on({.clock = clock_kind::wall, .wall_slowdown = 1},
                      {.most_threads = 4,
                       .stall_after = std::chrono::milliseconds(20),
                       .on_stall = [&](const stalled_copy& what) {
                         last = what;
                         ++reports;
                       }});
  const auto device = on.device_memory(copied_bytes);
  const unique_memory<std::uint32_t, pinned_resource> flag(on.context.pinned(), 1);
  std::atomic_ref<std::uint32_t> release(*flag.data());
  release = 0;
  on.gpu->launch(kernel_spin{flag.data(), std::chrono::seconds(9)}, on.stream).value();
  host_buffer host(copied_bytes);
  std::jthread releaser([&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(8);
    while (reports == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    release = 1;
  });
  on.engine.copy_and_wait(host.data(), device.data(), copied_bytes, on.stream);
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(last.plan.bytes, copied_bytes);
  EXPECT_GE(last.since, std::chrono::milliseconds(20));
}

TEST(Failure, TheChildOfAForkHasNoEngineAndSaysSo) {
  simulated_engine on({.clock = clock_kind::wall, .wall_slowdown = 1}, {.most_threads = 4});
  const auto device = on.device_memory(copied_bytes);
  host_buffer host(copied_bytes, 1);
  on.engine.copy_and_wait(device.data(), host.data(), copied_bytes, on.stream);
  const auto child = fork();
  if (child == 0) {
    const auto refused = on.engine.try_copy(device.data(), host.data(), copied_bytes, on.stream);
    const bool right = !refused && refused.error().code() == errc::transfer_forked;
    { const auto ended = std::move(on.engine); }  // must not wait for threads that are not there
    _exit(right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  expect_working(on, device.data());
}

TEST(Failure, ClosedContextsMakeNoEngines) {
  const auto gpu = simulated_engine::make({});
  auto context = berth::context::on(gpu);
  EXPECT_EQ(copy_engine::try_make(context, {.device = 5}).error().code(),
            errc::gpu_device_out_of_range);
}

}  // namespace
}  // namespace berth
