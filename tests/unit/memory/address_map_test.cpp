// SPDX-License-Identifier: Apache-2.0
#include "memory/address_map.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace berth::memory {
namespace {

void* address(std::uintptr_t bits) {
  return reinterpret_cast<void*>(bits);
}  // NOLINT

TEST(AddressMap, FindsWhatWasSetAndNothingElse) {
  address_map map;
  block one;
  block two;
  map.set(address(0x7f0000000000), &one);
  map.set(address(0x7f0000000100), &two);
  EXPECT_EQ(map.find(address(0x7f0000000000)), &one);
  EXPECT_EQ(map.find(address(0x7f0000000100)), &two);
  EXPECT_EQ(map.find(address(0x7f0000000200)), nullptr);
  EXPECT_EQ(map.find(address(0x7f0000000001)), nullptr);
  EXPECT_EQ(map.find(address(0x1000)), nullptr);
  EXPECT_EQ(map.find(nullptr), nullptr);
  map.set(address(0x7f0000000000), nullptr);
  EXPECT_EQ(map.find(address(0x7f0000000000)), nullptr);
}

TEST(AddressMap, IgnoresAddressesBeyond48Bits) {
  address_map map;
  block one;
  map.set(address(std::uintptr_t{1} << 50U), &one);
  EXPECT_EQ(map.find(address(std::uintptr_t{1} << 50U)), nullptr);
  EXPECT_EQ(map.find(address(0)), nullptr);
}

TEST(AddressMap, AddressesInEveryNodeStayApart) {
  address_map map;
  std::vector<block> blocks(48);
  for (unsigned bit = 8; bit < 48; ++bit) {
    map.set(address(std::uintptr_t{1} << bit), &blocks[bit]);
  }
  for (unsigned bit = 8; bit < 48; ++bit) {
    EXPECT_EQ(map.find(address(std::uintptr_t{1} << bit)), &blocks[bit]);
  }
}

// For thread sanitizer: readers look up while writers add.
TEST(AddressMap, ReadersNeedNoLock) {
  address_map map;
  constexpr std::uintptr_t base = 0x500000000000;
  constexpr std::size_t count = 5000;
  std::vector<block> blocks(count);
  std::atomic<std::size_t> added{0};
  std::jthread writer([&] {
    for (std::size_t index = 0; index < count; ++index) {
      map.set(address(base + index * 0x10100), &blocks[index]);
      added.store(index + 1, std::memory_order_release);
    }
  });
  std::size_t wrong = 0;
  while (added.load(std::memory_order_acquire) < count) {
    const auto known = added.load(std::memory_order_acquire);
    if (known > 0) {
      wrong += map.find(address(base + (known - 1) * 0x10100)) == &blocks[known - 1] ? 0U : 1U;
    }
    static_cast<void>(map.find(address(base + known * 0x10100)));
  }
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace berth::memory
