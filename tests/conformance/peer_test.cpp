// SPDX-License-Identifier: Apache-2.0
// Devices that reach each other's memory.
#include <limits>
#include <utility>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class peer_suite : public suite {
protected:
  static constexpr bytes_t size = 1 * mib;

  void SetUp() override {
    suite::SetUp();
    BERTH_NEEDS(lacks(capability::peer_access));
  }
  // Two devices of which the first reaches the second; nothing if there are none.
  [[nodiscard]] std::optional<std::pair<int, int>> connected() {
    for (int device = 0; device < device_count(); ++device) {
      for (int peer = 0; peer < device_count(); ++peer) {
        if (peer != device && must(gpu().can_access_peer(device, peer))) {
          return std::pair{device, peer};
        }
      }
    }
    return std::nullopt;
  }
};
BERTH_CONFORMANCE_SUITE(peer_suite);

TEST_P(peer_suite, a_device_reaches_itself) {
  for (int index = 0; index < device_count(); ++index) {
    EXPECT_THAT(gpu().can_access_peer(index, index), gives(true));
    EXPECT_THAT(gpu().enable_peer_access(index, index), succeeds());
    EXPECT_THAT(gpu().disable_peer_access(index, index), succeeds());
  }
}

TEST_P(peer_suite, no_device_is_a_peer) {
  for (const int index : {-1, device_count(), std::numeric_limits<int>::max()}) {
    EXPECT_THAT(gpu().can_access_peer(0, index), fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().can_access_peer(index, 0), fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().enable_peer_access(0, index), fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().enable_peer_access(index, 0), fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().disable_peer_access(0, index), fails_with(errc::gpu_device_out_of_range));
  }
}

TEST_P(peer_suite, no_device_takes_part_in_a_copy) {
  auto* memory = device_memory(size);
  auto* other = device_memory(size);
  for (const int index : {-1, device_count()}) {
    EXPECT_THAT(gpu().copy_peer_async(memory, index, other, 0, size, default_stream),
                fails_with(errc::gpu_device_out_of_range));
    EXPECT_THAT(gpu().copy_peer_async(memory, 0, other, index, size, default_stream),
                fails_with(errc::gpu_device_out_of_range));
  }
  expect_usable();
}

TEST_P(peer_suite, a_copy_within_one_device_works) {
  auto* from = device_memory(size);
  auto* to = device_memory(size);
  put_pattern(from, size, 1);
  EXPECT_THAT(gpu().copy_peer_async(to, 0, from, 0, size, default_stream), succeeds());
  EXPECT_THAT(gpu().copy_peer_async(to, 0, from, 0, 0, default_stream), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(mismatches_in(to, size, 1), 0U);
}

TEST_P(peer_suite, access_can_be_enabled_and_disabled_twice) {
  BERTH_NEEDS(fewer_devices_than(2));
  const auto pair = connected();
  if (!pair) {
    GTEST_SKIP() << "no two devices reach each other";
  }
  const auto [device, peer] = *pair;
  EXPECT_THAT(gpu().disable_peer_access(device, peer), succeeds()) << "not enabled yet";
  EXPECT_THAT(gpu().enable_peer_access(device, peer), succeeds());
  EXPECT_THAT(gpu().enable_peer_access(device, peer), succeeds()) << "again";
  EXPECT_THAT(gpu().disable_peer_access(device, peer), succeeds());
  EXPECT_THAT(gpu().disable_peer_access(device, peer), succeeds()) << "again";
  EXPECT_THAT(gpu().current_device(), gives(0));
}

TEST_P(peer_suite, access_is_refused_to_a_device_out_of_reach) {
  BERTH_NEEDS(fewer_devices_than(2));
  if (must(gpu().can_access_peer(0, 1))) {
    GTEST_SKIP() << "device 0 reaches device 1";
  }
  EXPECT_THAT(gpu().enable_peer_access(0, 1), fails_with(errc::gpu_not_supported));
  expect_usable();
}

TEST_P(peer_suite, memory_goes_from_device_to_device_with_and_without_access) {
  BERTH_NEEDS(fewer_devices_than(2));
  auto* first = device_memory(size, 0);
  auto* second = device_memory(size, 1);
  const auto work = stream({}, 0);
  const auto send = [&](std::uint64_t seed) {
    put_pattern(first, size, seed);
    must(gpu().synchronize_device(0));
    EXPECT_THAT(gpu().copy_peer_async(second, 1, first, 0, size, work), succeeds());
    EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
    EXPECT_EQ(mismatches_in(second, size, seed), 0U);
  };
  send(1);
  if (must(gpu().can_access_peer(0, 1))) {
    must(gpu().enable_peer_access(0, 1));
    send(2);
    must(gpu().disable_peer_access(0, 1));
    send(3);
  }
}

TEST_P(peer_suite, a_copy_keeps_its_place_in_the_stream) {
  BERTH_NEEDS(fewer_devices_than(2));
  BERTH_NEEDS(lacks(capability::kernels));
  auto* first = device_memory(size, 0);
  auto* second = device_memory(size, 1);
  auto* back = pinned_memory(size);
  const auto work = stream({}, 0);
  delay(work);
  must(gpu().launch(runtime::kernel_fill{first, size, 4}, work));
  must(gpu().copy_peer_async(second, 1, first, 0, size, work));
  must(gpu().fill_async(first, std::byte{0}, size, work));
  must(gpu().copy_peer_async(first, 0, second, 1, size, work));
  must(gpu().copy_async(back, first, size, work));
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 4), 0U);
}

TEST_P(peer_suite, kernels_reach_memory_of_a_peer) {
  BERTH_NEEDS(fewer_devices_than(2));
  BERTH_NEEDS(lacks(capability::kernels));
  const auto pair = connected();
  if (!pair) {
    GTEST_SKIP() << "no two devices reach each other";
  }
  const auto [device, peer] = *pair;
  auto* there = device_memory(size, peer);
  must(gpu().enable_peer_access(device, peer));
  must(gpu().set_current_device(device));
  must(gpu().launch(runtime::kernel_fill{there, size, 5}, default_stream));
  EXPECT_THAT(gpu().synchronize_stream(default_stream), succeeds());
  EXPECT_EQ(mismatches_in(there, size, 5), 0U);
  must(gpu().disable_peer_access(device, peer));
}

class no_peer_suite : public suite {};
BERTH_CONFORMANCE_SUITE(no_peer_suite);

TEST_P(no_peer_suite, peers_are_refused_where_there_are_none) {
  BERTH_NEEDS(has_after_all(capability::peer_access));
  auto* memory = device_memory(4096);
  EXPECT_THAT(gpu().can_access_peer(0, 0), fails_with(errc::gpu_not_supported));
  EXPECT_THAT(gpu().enable_peer_access(0, 0), fails_with(errc::gpu_not_supported));
  EXPECT_THAT(gpu().disable_peer_access(0, 0), fails_with(errc::gpu_not_supported));
  EXPECT_THAT(gpu().copy_peer_async(memory, 0, memory + 2048, 0, 2048, default_stream),
              fails_with(errc::gpu_not_supported));
}

}  // namespace
}  // namespace berth::conformance
