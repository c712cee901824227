// SPDX-License-Identifier: Apache-2.0
// Runtime and devices: what the driver says of itself, the current device, the clock.
#include <limits>
#include <thread>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class device_suite : public suite {
protected:
  // Indices that are none of a device.
  [[nodiscard]] std::vector<int> out_of_range() const {
    return {-1, device_count(), device_count() + 100, std::numeric_limits<int>::max(),
            std::numeric_limits<int>::min()};
  }
};
BERTH_CONFORMANCE_SUITE(device_suite);

TEST_P(device_suite, has_a_device) {
  EXPECT_GE(gpu().devices().size(), 1U);
}

TEST_P(device_suite, is_of_the_kind_asked_for) {
  EXPECT_EQ(gpu().info().kind, GetParam().kind);
  EXPECT_FALSE(gpu().info().library.empty());
}

TEST_P(device_suite, says_whether_its_times_are_measured) {
  const auto expected =
      is(runtime::runtime_kind::sim) ? provenance::modelled : provenance::measured;
  EXPECT_EQ(gpu().info().timing, expected);
}

TEST_P(device_suite, tells_a_version) {
  EXPECT_GT(gpu().info().version, runtime::runtime_version{});
}

TEST_P(device_suite, numbers_its_devices_from_0) {
  int expected = 0;
  for (const auto& one : gpu().devices()) {
    EXPECT_EQ(one.index, expected++);
    EXPECT_FALSE(one.name.empty());
  }
}

TEST_P(device_suite, tells_no_impossible_attributes) {
  for (const auto& one : gpu().devices()) {
    EXPECT_GT(one.memory_total.value_or(1), 0U);
    EXPECT_GT(one.compute_units.value_or(1), 0);
    EXPECT_GE(one.copy_engines.value_or(0), 0);
    EXPECT_THAT(one.wave_size.value_or(32), testing::AnyOf(32, 64));
    EXPECT_GE(one.numa_node.value_or(0), 0) << "unknown is nothing, not -1";
  }
}

TEST_P(device_suite, has_managed_memory_only_where_a_device_has) {
  if (has(capability::managed)) {
    EXPECT_TRUE(device().managed_memory.value_or(true));
  }
  for (const auto what : {capability::advise, capability::prefetch}) {
    EXPECT_TRUE(!has(what) || has(capability::managed)) << runtime::to_string(what);
  }
}

TEST_P(device_suite, answers_the_same_each_time) {
  const auto capabilities = gpu().info().capabilities;
  const auto* first = gpu().devices().data();
  must(gpu().synchronize_device(0));
  EXPECT_EQ(gpu().info().capabilities, capabilities);
  EXPECT_EQ(gpu().devices().data(), first);
}

TEST_P(device_suite, memory_info_has_less_free_than_total) {
  for (int index = 0; index < device_count(); ++index) {
    const auto amounts = must(gpu().memory_info(index));
    EXPECT_GT(amounts.total, 0U);
    EXPECT_LE(amounts.free, amounts.total);
    EXPECT_LE(amounts.total, device(index).memory_total.value_or(amounts.total));
  }
}

TEST_P(device_suite, memory_info_falls_by_what_is_allocated) {
  constexpr auto size = 64 * mib;
  const auto before = must(gpu().memory_info(0));
  device_memory(size);
  const auto during = must(gpu().memory_info(0));
  EXPECT_EQ(during.total, before.total);
  EXPECT_LE(during.free, before.free - size / 2) << "most of it must be missing";
}

TEST_P(device_suite, memory_info_of_another_device_than_the_current) {
  BERTH_NEEDS(fewer_devices_than(2));
  constexpr auto size = 64 * mib;
  const auto first = must(gpu().memory_info(0));
  const auto second = must(gpu().memory_info(1));
  device_memory(size, 1);
  EXPECT_LE(must(gpu().memory_info(1)).free, second.free - size / 2);
  EXPECT_GT(must(gpu().memory_info(0)).free, first.free - size / 2);
}

TEST_P(device_suite, memory_info_of_no_device_fails) {
  for (const int index : out_of_range()) {
    EXPECT_THAT(gpu().memory_info(index), fails_with(errc::gpu_device_out_of_range)) << index;
  }
}

TEST_P(device_suite, a_new_thread_starts_with_device_0) {
  must(gpu().set_current_device(device_count() - 1));
  std::thread([&] { EXPECT_THAT(gpu().current_device(), gives(0)); }).join();
}

TEST_P(device_suite, the_current_device_stays_set) {
  for (int index = 0; index < device_count(); ++index) {
    EXPECT_THAT(gpu().set_current_device(index), succeeds());
    EXPECT_THAT(gpu().current_device(), gives(index));
    EXPECT_THAT(gpu().set_current_device(index), succeeds()) << "again";
    EXPECT_THAT(gpu().current_device(), gives(index));
  }
}

TEST_P(device_suite, each_thread_has_its_own_current_device) {
  BERTH_NEEDS(fewer_devices_than(2));
  std::thread([&] {
    EXPECT_THAT(gpu().set_current_device(1), succeeds());
    EXPECT_THAT(gpu().current_device(), gives(1));
  }).join();
  EXPECT_THAT(gpu().current_device(), gives(0));
}

TEST_P(device_suite, no_device_cannot_be_made_current) {
  must(gpu().set_current_device(device_count() - 1));
  for (const int index : out_of_range()) {
    EXPECT_THAT(gpu().set_current_device(index), fails_with(errc::gpu_device_out_of_range))
        << index;
    EXPECT_THAT(gpu().current_device(), gives(device_count() - 1)) << index;
  }
}

TEST_P(device_suite, operations_on_a_device_leave_the_current_one) {
  constexpr bytes_t size = 4096;
  const int last = device_count() - 1;
  for (int current = 0; current < device_count(); ++current) {
    must(gpu().set_current_device(current));
    const int other = last - current;
    auto* memory = device_memory(size, other);
    auto* pinned = pinned_memory(size, {.device = other});
    const auto on_other = stream({}, other);
    const auto marker = event({}, other);
    EXPECT_THAT(gpu().copy_async(memory, pinned, size, on_other), succeeds());
    EXPECT_THAT(gpu().fill_async(memory, std::byte{1}, size, on_other), succeeds());
    EXPECT_THAT(gpu().record_event(marker, on_other), succeeds());
    EXPECT_THAT(gpu().wait_event(on_other, marker), succeeds());
    EXPECT_THAT(gpu().synchronize_event(marker), succeeds());
    EXPECT_THAT(gpu().query_stream(on_other), succeeds());
    EXPECT_THAT(gpu().classify(memory), succeeds());
    EXPECT_THAT(gpu().memory_info(other), succeeds());
    EXPECT_THAT(gpu().synchronize_device(other), succeeds());
    EXPECT_THAT(gpu().current_device(), gives(current));
  }
}

TEST_P(device_suite, a_failed_operation_leaves_the_current_device) {
  must(gpu().set_current_device(device_count() - 1));
  EXPECT_FALSE(gpu().allocate_device(0, 0));
  EXPECT_FALSE(gpu().allocate_device(device_count(), 1));
  EXPECT_FALSE(gpu().create_stream(-1));
  EXPECT_THAT(gpu().current_device(), gives(device_count() - 1));
}

TEST_P(device_suite, a_scope_puts_the_former_device_back) {
  const int last = device_count() - 1;
  {
    const auto scope = runtime::scoped_device::make(gpu(), last);
    ASSERT_THAT(scope, succeeds());
    EXPECT_THAT(gpu().current_device(), gives(last));
  }
  EXPECT_THAT(gpu().current_device(), gives(0));
}

TEST_P(device_suite, scopes_nest_and_move) {
  BERTH_NEEDS(fewer_devices_than(2));
  {
    auto outer = must(runtime::scoped_device::make(gpu(), 1));
    {
      const auto inner = must(runtime::scoped_device::make(gpu(), 0));
      EXPECT_THAT(gpu().current_device(), gives(0));
    }
    EXPECT_THAT(gpu().current_device(), gives(1));
    const auto moved = std::move(outer);
    EXPECT_THAT(gpu().current_device(), gives(1)) << "moving restores nothing";
  }
  EXPECT_THAT(gpu().current_device(), gives(0));
}

TEST_P(device_suite, a_scope_of_no_device_fails_and_changes_nothing) {
  for (const int index : out_of_range()) {
    EXPECT_THAT(runtime::scoped_device::make(gpu(), index),
                fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().current_device(), gives(0));
  }
}

TEST_P(device_suite, synchronizing_an_idle_device_succeeds) {
  for (int index = 0; index < device_count(); ++index) {
    EXPECT_THAT(gpu().synchronize_device(index), succeeds());
  }
}

TEST_P(device_suite, synchronizing_no_device_fails) {
  for (const int index : out_of_range()) {
    EXPECT_THAT(gpu().synchronize_device(index), fails_with(errc::gpu_device_out_of_range))
        << index;
  }
}

TEST_P(device_suite, synchronizing_a_device_waits_for_all_its_streams) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 4096;
  const std::vector streams{stream(), stream(), blocking_stream(), default_stream};
  std::vector<std::byte*> results;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    results.push_back(pinned_memory(size));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    delay(streams[i], 5ms);
    must(gpu().fill_async(results[i], std::byte{42}, size, streams[i]));
  }
  EXPECT_THAT(gpu().synchronize_device(0), succeeds());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(bytes(results[i], results[i] + size), repeated(size, 42)) << i;
    EXPECT_THAT(gpu().query_stream(streams[i]), gives(progress::complete)) << i;
  }
}

TEST_P(device_suite, the_clock_never_goes_back) {
  auto* memory = device_memory(1 * mib);
  auto last = gpu().now();
  for (int i = 0; i < 100; ++i) {
    must(gpu().fill(memory, std::byte{1}, 1 * mib));
    const auto now = gpu().now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST_P(device_suite, the_clock_advances_with_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  const auto before = gpu().now();
  delay(default_stream, 5ms);
  must(gpu().synchronize_stream(default_stream));
  EXPECT_GE(gpu().now() - before, 4ms);
}

TEST_P(device_suite, charging_host_work_does_no_harm) {
  bytes source(4096);
  bytes target(4096);
  const auto before = gpu().now();
  gpu().charge({.kind = runtime::host_work_kind::copy,
                .bytes = source.size(),
                .src = source.data(),
                .dst = target.data()});
  gpu().charge({.kind = runtime::host_work_kind::fill, .bytes = 4096, .dst = target.data()});
  gpu().charge({.kind = runtime::host_work_kind::fault, .bytes = 4096, .dst = target.data()});
  gpu().charge({.kind = runtime::host_work_kind::wait, .duration = 1ms});
  gpu().charge({});
  EXPECT_GE(gpu().now(), before);
  expect_usable();
}

}  // namespace
}  // namespace berth::conformance
