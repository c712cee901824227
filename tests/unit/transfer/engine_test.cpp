// SPDX-License-Identifier: Apache-2.0
// What the copy engine promises: data, paths, tickets, what it refuses. Order is in order_test.cpp,
// failures are in failure_test.cpp.
#include <sys/mman.h>

#include <cstring>

#include "transfer_fixture.hpp"

namespace berth {
namespace {

using test::host_buffer;
using test::simulated_engine;

errc code_of(const auto& result) {
  return result ? errc::internal : result.error().code();
}

TEST(CopyEngine, MovesPageableMemoryBothWays) {
  simulated_engine on;
  for (const bytes_t bytes : {bytes_t{1}, 4 * kib, 1 * mib, 5 * mib + 3, 64 * mib + 1}) {
    host_buffer source(bytes, bytes);
    host_buffer result(bytes);
    const auto device = on.device_memory(bytes);
    const auto up = on.engine.copy_and_wait(device.data(), source.data(), bytes, on.stream);
    const auto down = on.engine.copy_and_wait(result.data(), device.data(), bytes, on.stream);
    EXPECT_EQ(result.mismatches(bytes), 0) << bytes << " bytes";
    if (bytes >= 1 * mib) {
      EXPECT_EQ(up.plan.path, copy_path::staged_threaded) << to_string(up.plan.reason);
      EXPECT_EQ(down.plan.path, copy_path::staged_threaded);
      EXPECT_GT(up.blocks, 1U);
      EXPECT_GT(up.total.count(), 0);
    }
  }
}

TEST(CopyEngine, IsFasterThanTheRuntimeByTheModel) {
  simulated_engine on;
  constexpr bytes_t bytes = 64 * mib;
  host_buffer host(bytes, 1);
  const auto device = on.device_memory(bytes);
  for (const bool up : {true, false}) {
    void* const dst = up ? device.data() : host.data();
    const void* const src = up ? host.data() : device.data();
    const auto begin = on.gpu->now();
    on.gpu->copy(dst, src, bytes).value();
    const auto plain = on.gpu->now() - begin;
    const auto staged = on.engine.copy_and_wait(dst, src, bytes, on.stream);
    EXPECT_LT(staged.total.count() * 2, plain.count()) << (up ? "to the device" : "to the host");
  }
}

TEST(CopyEngine, ATicketSaysWhenTheDataIsThere) {
  simulated_engine on;
  constexpr bytes_t bytes = 16 * mib;
  host_buffer source(bytes, 3);
  host_buffer result(bytes);
  const auto device = on.device_memory(bytes);
  on.engine.copy(device.data(), source.data(), bytes, on.stream).wait();
  auto ticket = on.engine.copy(result.data(), device.data(), bytes, on.stream);
  const auto stats = ticket.wait();
  EXPECT_TRUE(ticket.is_done());
  EXPECT_EQ(stats.plan.bytes, bytes);
  EXPECT_EQ(stats.plan.way, direction::device_to_host);
  EXPECT_EQ(ticket.stats().blocks, stats.blocks);
  EXPECT_EQ(result.mismatches(3), 0);
}

TEST(CopyEngine, ADroppedTicketDoesNotStopTheCopy) {
  simulated_engine on;
  constexpr bytes_t bytes = 8 * mib;
  host_buffer source(bytes, 4);
  host_buffer result(bytes);
  const auto device = on.device_memory(bytes);
  static_cast<void>(on.engine.copy(device.data(), source.data(), bytes, on.stream));
  static_cast<void>(on.engine.copy(result.data(), device.data(), bytes, on.stream));
  // The next copy through the same rings, and the end of the engine, wait for what is under way.
  on.engine = copy_engine::make(on.context, {.profile = calibration::nominal});
  EXPECT_EQ(result.mismatches(4), 0);
}

TEST(CopyEngine, OwnersLiveUntilTheCopyHasEnded) {
  simulated_engine on;
  constexpr bytes_t bytes = 8 * mib;
  const auto device = on.device_memory(bytes);
  const auto pinned =
      std::make_shared<unique_memory<std::byte, pinned_resource>>(on.context.pinned(), bytes);
  auto pageable = std::make_shared<host_buffer>(bytes, 5);
  const std::weak_ptr<host_buffer> watched = pageable;
  auto* const memory = pageable->data();
  auto ticket = on.engine.copy(device.data(), memory, bytes, on.stream,
                               {.source_owner = std::move(pageable)});
  ticket.wait();
  EXPECT_TRUE(watched.expired());

  std::weak_ptr<const void> pinned_watched = pinned;
  {
    auto owner = std::shared_ptr<const void>(pinned);
    static_cast<void>(on.engine.copy(pinned->data(), device.data(), bytes, on.stream,
                                     {.destination_owner = std::move(owner)}));
  }
  EXPECT_GT(pinned.use_count(), 1) << "the ticket is gone, the copy is not";
  on.stream.synchronize();
  on.engine
      .copy(device.data(), memory == nullptr ? nullptr : host_buffer(bytes, 6).data(), bytes,
            on.stream)
      .wait();
  EXPECT_EQ(pinned.use_count(), 1) << "a later copy lets go of it";
}

TEST(CopyEngine, PageLockedMemoryGoesDirectly) {
  simulated_engine on;
  constexpr bytes_t bytes = 2 * mib;
  const auto device = on.device_memory(bytes);
  const unique_memory<std::byte, pinned_resource> pinned(on.context.pinned(), bytes);
  runtime::write_pattern(pinned.data(), bytes, 9);
  const auto stats = on.engine.copy_and_wait(device.data(), pinned.data(), bytes, on.stream);
  EXPECT_EQ(stats.plan.path, copy_path::direct);
  std::memset(pinned.data(), 0, bytes);
  on.engine.copy_and_wait(pinned.data(), device.data(), bytes, on.stream);
  EXPECT_EQ(runtime::count_mismatches(pinned.data(), bytes, 9), 0);
}

TEST(CopyEngine, AKernelCopiesOnRequest) {
  simulated_engine on;
  constexpr bytes_t bytes = 2 * mib;
  const auto device = on.device_memory(bytes);
  const unique_memory<std::byte, pinned_resource> pinned(on.context.pinned(), bytes);
  runtime::write_pattern(pinned.data(), bytes, 9);
  const auto stats = on.engine.copy_and_wait(device.data(), pinned.data(), bytes, on.stream,
                                             {.prefer = engine::kernel});
  EXPECT_EQ(stats.plan.path, copy_path::kernel);
  EXPECT_EQ(stats.plan.reason, copy_reason::requested);
  host_buffer result(bytes);
  on.engine.copy_and_wait(result.data(), device.data(), bytes, on.stream);
  EXPECT_EQ(result.mismatches(9), 0);
}

TEST(CopyEngine, AKeptRangeNeedsNoStagingUntilItIsForgotten) {
  simulated_engine on;
  constexpr bytes_t bytes = 4 * mib;
  host_buffer host(bytes, 11);
  const auto device = on.device_memory(bytes);
  on.engine.keep({host.data(), bytes});
  EXPECT_EQ(on.gpu->held().registrations, 2U) << "the ring and the range";
  auto ticket = on.engine.copy(device.data(), host.data() + 4096, bytes - 4096, on.stream);
  EXPECT_EQ(ticket.stats().plan.path, copy_path::kept);
  on.engine.forget({host.data(), bytes});
  EXPECT_TRUE(ticket.is_done()) << "forget waits for the copies of the range";
  EXPECT_EQ(on.gpu->held().registrations, 1U);
  EXPECT_EQ(on.engine.plan(device.data(), host.data(), bytes).path, copy_path::staged_threaded);
  EXPECT_EQ(code_of(on.engine.try_forget({host.data(), bytes})), errc::transfer_not_kept);
}

TEST(CopyEngine, RowsArriveWhereTheyBelong) {
  simulated_engine on;
  struct shape {
    std::size_t width, rows, host_pitch, device_pitch;
  };
  for (const auto& [width, rows, host_pitch, device_pitch] :
       {shape{1000, 3000, 1024, 1500}, shape{4 * mib, 3, 4 * mib + 64, 5 * mib},
        shape{1 * mib, 5, 1 * mib, 1 * mib}, shape{7, 9, 16, 32}}) {
    host_buffer source(host_pitch * rows, 21);
    host_buffer result(host_pitch * rows);
    const auto device = on.device_memory(device_pitch * rows);
    on.engine
        .copy_2d({.dst = device.data(),
                  .dst_pitch = device_pitch,
                  .src = source.data(),
                  .src_pitch = host_pitch,
                  .width = width,
                  .rows = rows},
                 on.stream)
        .wait();
    on.engine
        .copy_2d({.dst = result.data(),
                  .dst_pitch = host_pitch,
                  .src = device.data(),
                  .src_pitch = device_pitch,
                  .width = width,
                  .rows = rows},
                 on.stream)
        .wait();
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < result.size(); ++at) {
      const bool inside = at % host_pitch < width;
      const auto expected = inside ? source.data()[at] : std::byte{0xA5};
      wrong += result.data()[at] != expected ? 1U : 0U;
    }
    EXPECT_EQ(wrong, 0U) << width << " x " << rows;
  }
}

TEST(CopyEngine, ABatchOfSmallCopiesIsPacked) {
  for (const bool kernels : {true, false}) {
    runtime::sim::options how;
    if (!kernels) {
      how.without.add(runtime::capability::kernels);
    }
    simulated_engine on(how);
    constexpr std::size_t count = 500;
    host_buffer source(count * 8192, 31);
    host_buffer result(count * 8192);
    const auto device = on.device_memory(count * 8192);
    std::vector<copy_range> up;
    std::vector<copy_range> down;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = (i * 7919 % count) * 8192;
      const bytes_t bytes = 1 + i * 13 % 5000;
      up.push_back({device.data() + at, source.data() + at, bytes});
      down.push_back({result.data() + at, device.data() + at, bytes});
    }
    up.push_back({device.data(), source.data(), 0});
    const auto before = on.gpu->calls();
    on.engine.copy_batch(up, on.stream).wait();
    if (kernels) {
      EXPECT_LT(on.gpu->calls() - before, 4 * count) << "not a call for each";
    }
    on.engine.copy_batch(down, on.stream).wait();
    std::size_t wrong = 0;
    for (const auto& one : down) {
      const auto at = static_cast<std::size_t>(static_cast<std::byte*>(one.dst) - result.data());
      wrong += std::memcmp(one.dst, source.data() + at, one.bytes) != 0 ? 1U : 0U;
      wrong += result.data()[at + one.bytes] != std::byte{0xA5} ? 1U : 0U;
    }
    EXPECT_EQ(wrong, 0U) << (kernels ? "by kernels" : "without kernels");
  }
}

TEST(CopyEngine, ABatchOfTinyCopiesFitsIntoTheRing) {
  simulated_engine on;
  constexpr std::size_t count = 180'000;  // their table alone is larger than the ring
  host_buffer source(2 * count, 32);
  const auto device = on.device_memory(2 * count);
  std::vector<copy_range> up;
  for (std::size_t i = 0; i < count; ++i) {
    up.push_back({device.data() + 2 * i, source.data() + 2 * i, 1});
  }
  on.engine.copy_batch(up, on.stream).wait();
  on.stream.synchronize();
  host_buffer result(2 * count);
  on.gpu->copy(result.data(), device.data(), 2 * count).value();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    wrong += result.data()[2 * i] != source.data()[2 * i] ? 1U : 0U;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(CopyEngine, CallbacksProduceAndConsumeInTheRing) {
  simulated_engine on;
  constexpr bytes_t bytes = 10 * mib + 17;
  const auto device = on.device_memory(bytes);
  for (const auto order : {callback_order::any, callback_order::sequential}) {
    std::atomic<bytes_t> produced{0};
    bytes_t expected = 0;
    const slot_producer make = [&](std::span<std::byte> slot, bytes_t offset) -> result<void> {
      if (order == callback_order::sequential) {
        EXPECT_EQ(offset, expected);
        expected += slot.size();
      }
      runtime::write_pattern(slot.data(), slot.size(), 41, offset);
      produced += slot.size();
      return {};
    };
    on.engine.produce(device.data(), bytes, make, on.stream, order).wait();
    EXPECT_EQ(produced, bytes);
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<bytes_t> consumed{0};
    on.engine
        .consume(
            device.data(), bytes,
            [&](std::span<const std::byte> slot, bytes_t offset) -> result<void> {
              wrong += runtime::count_mismatches(slot.data(), slot.size(), 41, offset);
              consumed += slot.size();
              return {};
            },
            on.stream, order)
        .wait();
    EXPECT_EQ(consumed, bytes);
    EXPECT_EQ(wrong, 0U);
  }
}

TEST(CopyEngine, ACallbackThatFailsFailsTheCopy) {
  simulated_engine on;
  constexpr bytes_t bytes = 8 * mib;
  const auto device = on.device_memory(bytes);
  const slot_producer broken = [](std::span<std::byte>, bytes_t offset) -> result<void> {
    return offset < 2 * mib ? result<void>()
                            : error(errc::file_unreadable, "the disk is gone", "data.bin");
  };
  const auto failed = on.engine.try_produce(device.data(), bytes, broken, on.stream);
  ASSERT_EQ(code_of(failed), errc::transfer_callback);
  EXPECT_NE(failed.error().message().find("the disk is gone"), std::string::npos);
  EXPECT_NE(failed.error().where().find("bytes done"), std::string::npos);
  const slot_producer throwing = [](std::span<std::byte>, bytes_t) -> result<void> {
    throw std::runtime_error("out of luck");
  };
  EXPECT_EQ(code_of(on.engine.try_produce(device.data(), bytes, throwing, on.stream)),
            errc::transfer_callback);
  host_buffer host(bytes, 2);
  EXPECT_EQ(on.engine.copy_and_wait(device.data(), host.data(), bytes, on.stream).plan.path,
            copy_path::staged_threaded)
      << "later copies work";
}

TEST(CopyEngine, NothingToDoSucceeds) {
  simulated_engine on;
  const auto device = on.device_memory(4096);
  EXPECT_TRUE(on.engine.copy(nullptr, nullptr, 0, on.stream).is_done());
  EXPECT_EQ(on.engine.plan(nullptr, nullptr, 0).path, copy_path::nothing);
  EXPECT_TRUE(on.engine.copy_batch({}, on.stream).is_done());
  EXPECT_TRUE(on.engine.copy_2d({}, on.stream).is_done());
  const slot_producer none = [](std::span<std::byte>, bytes_t) -> result<void> { return {}; };
  EXPECT_TRUE(on.engine.produce(device.data(), 0, none, on.stream).is_done());
}

TEST(CopyEngine, RefusesWhatCannotBeMeant) {
  simulated_engine on;
  constexpr bytes_t bytes = 2 * mib;
  host_buffer host(bytes, 1);
  const auto device = on.device_memory(bytes);
  EXPECT_EQ(code_of(on.engine.try_copy(host.data() + 1, host.data(), 100, on.stream)),
            errc::transfer_overlap);
  EXPECT_EQ(code_of(on.engine.try_copy(device.data(), host.data(), bytes, on.stream,
                                       {.expected = direction::device_to_host})),
            errc::transfer_wrong_direction);
  EXPECT_EQ(code_of(on.engine.try_copy(device.data() + 1, host.data(), bytes, on.stream)),
            errc::transfer_out_of_range);
  const slot_producer none = [](std::span<std::byte>, bytes_t) -> result<void> { return {}; };
  EXPECT_EQ(code_of(on.engine.try_produce(host.data(), bytes, none, on.stream)),
            errc::transfer_wrong_direction);
  EXPECT_EQ(code_of(on.engine.try_copy_2d({.dst = device.data(),
                                           .dst_pitch = 4,
                                           .src = host.data(),
                                           .src_pitch = 8,
                                           .width = 8,
                                           .rows = 2},
                                          on.stream)),
            errc::gpu_invalid_value);
}

TEST(CopyEngine, RefusesHostMemoryThatIsNotThere) {
  simulated_engine on;
  constexpr bytes_t bytes = 4 * mib;
  const auto device = on.device_memory(bytes);
  auto* const memory = static_cast<std::byte*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(memory + 1 * mib, 1 * mib);
  EXPECT_EQ(code_of(on.engine.try_copy(device.data(), memory, bytes, on.stream)),
            errc::transfer_unmapped);
  munmap(memory, bytes);
  auto* const constant =
      static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT_EQ(code_of(on.engine.try_copy(constant, device.data(), bytes, on.stream)),
            errc::transfer_unmapped);
  munmap(constant, bytes);
}

TEST(CopyEngine, FreshResultsAreMadePresentInParallel) {
  runtime::sim::options how;
  simulated_engine on(how);
  constexpr bytes_t bytes = 32 * mib;
  const auto device = on.device_memory(bytes);
  host_buffer source(bytes, 8);
  on.engine.copy_and_wait(device.data(), source.data(), bytes, on.stream);
  auto* const fresh = static_cast<std::byte*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT_TRUE(on.engine.plan(fresh + 5, device.data(), bytes - 5).populates);
  const auto stats = on.engine.copy_and_wait(fresh + 5, device.data(), bytes - 5, on.stream);
  EXPECT_TRUE(stats.plan.populates);
  EXPECT_EQ(runtime::count_mismatches(fresh + 5, bytes - 5, 8), 0);
  EXPECT_EQ(fresh[4], std::byte{0});
  EXPECT_FALSE(on.engine.plan(fresh + 5, device.data(), bytes - 5).populates);
  munmap(fresh, bytes);
}

TEST(CopyEngine, SeveralEnginesAndDevicesLiveSideBySide) {
  simulated_engine on({.model = "mi250x", .devices = 2});
  auto second = copy_engine::make(on.context, {.device = 1, .ring_bytes = 4 * mib});
  second.prepare();
  const auto other_stream = on.context.create_stream(1);
  constexpr bytes_t bytes = 4 * mib;
  const unique_memory<std::byte, device_resource> here(on.context.device(0), bytes);
  const unique_memory<std::byte, device_resource> there(on.context.device(1), bytes);
  host_buffer source(bytes, 51);
  host_buffer result(bytes);
  on.engine.copy_and_wait(here.data(), source.data(), bytes, on.stream);
  second.copy_and_wait(there.data(), source.data(), bytes, other_stream);
  EXPECT_EQ(second.plan(here.data(), source.data(), bytes).path, copy_path::runtime)
      << "memory of another device";
  second.copy_and_wait(result.data(), there.data(), bytes, other_stream);
  EXPECT_EQ(result.mismatches(51), 0);
  EXPECT_EQ(on.gpu->current_device().value(), 0) << "the program's device is left alone";
}

TEST(CopyEngine, GivesEverythingBack) {
  const auto gpu = simulated_engine::make({});
  const auto context = berth::context::on(gpu);
  const auto before = gpu->held();
  {
    auto engine = copy_engine::make(context, {.ring_bytes = 4 * mib});
    engine.prepare();
    const unique_memory<std::byte, device_resource> device(context.device(), 8 * mib);
    host_buffer host(8 * mib, 1);
    engine.copy_and_wait(device.data(), host.data(), 8 * mib);
    engine.keep({host.data(), 4096});
  }
  const auto after = gpu->held();
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.registrations, before.registrations);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(context.pinned_memory().used, 0U);
}

TEST(CopyEngine, TrimGivesIdleRingsBackAndTheyComeAgain) {
  const simulated_engine on;
  auto engine = copy_engine::make(on.context, {.ring_bytes = 4 * mib});
  const auto before = on.gpu->held();
  engine.prepare();
  const auto device = on.device_memory(8 * mib);
  host_buffer host(8 * mib, 1);
  engine.copy_and_wait(device.data(), host.data(), 8 * mib);
  ASSERT_GT(on.gpu->held().registrations, before.registrations);
  EXPECT_GE(engine.trim(), 4 * mib);
  EXPECT_EQ(on.gpu->held().registrations, before.registrations);
  EXPECT_EQ(on.gpu->held().streams, before.streams);
  EXPECT_EQ(on.gpu->held().events, before.events);
  EXPECT_EQ(engine.trim(), 0U) << "nothing is left to give back";
  host_buffer result(8 * mib);
  auto ticket = engine.copy(result.data(), device.data(), 8 * mib, on.stream);
  EXPECT_EQ(ticket.wait().plan.path, copy_path::staged_threaded);
  EXPECT_EQ(result.mismatches(1), 0);
}

TEST(CopyEngine, TrimLeavesRingsThatCopiesUse) {
  const simulated_engine on;
  auto engine = copy_engine::make(on.context, {.ring_bytes = 4 * mib, .most_rings = 2});
  engine.prepare();
  const auto device = on.device_memory(64 * mib);
  host_buffer host(64 * mib, 7);
  auto ticket = engine.copy(device.data(), host.data(), 64 * mib, on.stream);
  static_cast<void>(engine.trim());
  ticket.wait();
  host_buffer result(64 * mib);
  engine.copy(result.data(), device.data(), 64 * mib, on.stream).wait();
  EXPECT_EQ(result.mismatches(7), 0);
}

TEST(CopyEngine, TheFirstCopyIsLeftToTheRuntimeAndSetsUp) {
  const auto gpu = simulated_engine::make({});
  const auto context = berth::context::on(gpu);
  auto engine = copy_engine::make(context, {.ring_bytes = 4 * mib});
  const auto stream = context.create_stream();
  const unique_memory<std::byte, device_resource> device(context.device(), 8 * mib);
  host_buffer host(8 * mib, 1);
  EXPECT_EQ(gpu->held().registrations, 0U) << "an engine that is not used costs nothing";
  auto first = engine.copy(device.data(), host.data(), 8 * mib, stream);
  EXPECT_EQ(first.stats().plan.reason, copy_reason::not_ready);
  first.wait();
  engine.prepare();
  EXPECT_EQ(engine.copy(device.data(), host.data(), 8 * mib, stream).stats().plan.path,
            copy_path::staged_threaded);
}

TEST(CopyEngine, WithoutMemoryForARingCopiesAreLeftToTheRuntime) {
  const auto gpu = simulated_engine::make({});
  const auto context = berth::context::on(gpu, {.pinned_budget = 1 * mib});
  auto engine = copy_engine::make(context, {.ring_bytes = 4 * mib});
  EXPECT_EQ(code_of(engine.try_prepare()), errc::memory_over_budget);
  const unique_memory<std::byte, device_resource> device(context.device(), 8 * mib);
  host_buffer host(8 * mib, 6);
  host_buffer result(8 * mib);
  const auto stream = context.create_stream();
  engine.copy(device.data(), host.data(), 8 * mib, stream).wait();
  engine.copy(result.data(), device.data(), 8 * mib, stream).wait();
  EXPECT_EQ(result.mismatches(6), 0);
}

TEST(CopyEngine, NamesItsPathsAndReasons) {
  for (int path = 0; path <= static_cast<int>(copy_path::staged_threaded); ++path) {
    EXPECT_NE(to_string(static_cast<copy_path>(path)), "unknown");
  }
  for (int reason = 0; reason <= static_cast<int>(copy_reason::starved); ++reason) {
    EXPECT_NE(to_string(static_cast<copy_reason>(reason)), "unknown");
  }
  EXPECT_EQ(to_string(copy_reason::starved), "starved");
  EXPECT_EQ(to_string(copy_reason::slower_here), "slower_here");
}

}  // namespace
}  // namespace berth
