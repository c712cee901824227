// SPDX-License-Identifier: Apache-2.0
// The ring between a thread and the drainer.
#include <cstdint>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "interpose/capture/thread_log.hpp"

namespace berth::interpose {
namespace {

template <class Ring>
bool push(Ring& ring, std::uint64_t value) {
  auto* const slot = ring.reserve();
  if (slot == nullptr) {
    return false;
  }
  *slot = value;
  ring.commit();
  return true;
}

TEST(SingleRing, HasNothingAtFirst) {
  const single_ring<std::uint64_t, 4> ring;
  EXPECT_EQ(ring.front(), nullptr);
}

TEST(SingleRing, GivesWhatWasPutInOrder) {
  single_ring<std::uint64_t, 4> ring;
  EXPECT_TRUE(push(ring, 1));
  EXPECT_TRUE(push(ring, 2));
  ASSERT_NE(ring.front(), nullptr);
  EXPECT_EQ(*ring.front(), 1U);
  ring.pop();
  EXPECT_EQ(*ring.front(), 2U);
  ring.pop();
  EXPECT_EQ(ring.front(), nullptr);
}

TEST(SingleRing, TakesAsMuchAsItHoldsAndNoMore) {
  single_ring<std::uint64_t, 4> ring;
  for (std::uint64_t value = 0; value < 4; ++value) {
    EXPECT_TRUE(push(ring, value));
  }
  EXPECT_FALSE(push(ring, 4));
  ring.pop();
  EXPECT_TRUE(push(ring, 4));
  EXPECT_FALSE(push(ring, 5));
  EXPECT_EQ(*ring.front(), 1U);
}

TEST(SingleRing, TellsHowManyWait) {
  single_ring<std::uint64_t, 4> ring;
  for (std::uint32_t waiting = 1; waiting <= 4; ++waiting) {
    ASSERT_NE(ring.reserve(), nullptr);
    EXPECT_EQ(ring.commit(), waiting);
  }
}

TEST(SingleRing, GivesTheSameSlotUntilItIsHandedOver) {
  single_ring<std::uint64_t, 4> ring;
  EXPECT_EQ(ring.reserve(), ring.reserve());
  EXPECT_EQ(ring.front(), nullptr);
}

TEST(SingleRing, ForgetsAllWhenItIsReset) {
  single_ring<std::uint64_t, 4> ring;
  push(ring, 1);
  push(ring, 2);
  ring.reset();
  EXPECT_EQ(ring.front(), nullptr);
  for (std::uint64_t value = 0; value < 4; ++value) {
    EXPECT_TRUE(push(ring, value));
  }
}

TEST(SingleRing, WrapsAroundManyTimes) {
  single_ring<std::uint64_t, 4> ring;
  for (std::uint64_t value = 0; value < 1000; ++value) {
    ASSERT_TRUE(push(ring, value));
    if (value % 2 == 1) {
      ASSERT_EQ(*ring.front(), value - 1);
      ring.pop();
      ASSERT_EQ(*ring.front(), value);
      ring.pop();
    }
  }
}

TEST(SingleRing, HandsAllFromOneThreadToAnother) {
  constexpr std::uint64_t all = 200'000;
  const auto ring = std::make_unique<single_ring<std::uint64_t, 64>>();
  std::thread producer([&] {
    for (std::uint64_t value = 0; value < all;) {
      if (push(*ring, value)) {
        ++value;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t expected = 0;
  bool in_order = true;
  while (expected < all) {
    if (const auto* const front = ring->front()) {
      in_order = in_order && *front == expected;
      ++expected;
      ring->pop();
    } else {
      std::this_thread::yield();
    }
  }
  producer.join();
  EXPECT_TRUE(in_order);
  EXPECT_EQ(ring->front(), nullptr);
}

}  // namespace
}  // namespace berth::interpose
