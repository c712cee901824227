// SPDX-License-Identifier: Apache-2.0
// The heap against a model: whatever is given and taken, blocks never overlap, nothing is lost, and
// all merges again in the end.
#include "memory/extent_heap.hpp"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "runtime/sim/sim_driver.hpp"

namespace berth::memory {
namespace {

std::byte* place(std::uintptr_t bits) {
  return reinterpret_cast<std::byte*>(bits);
}  // NOLINT

constexpr std::uintptr_t base = 0x300000000000;

struct heap_test : ::testing::Test {
  address_map addresses;
  extent_heap heap{addresses};
  std::shared_ptr<runtime::driver> gpu = runtime::make_sim_driver("h200").value();
  stream_ledger streams{*gpu, 0};

  void add(bytes_t bytes, std::uintptr_t at = base) {
    heap.add_region({.address = place(at), .bytes = bytes}, nullptr, 0);
  }
  void give(block* which, stream_state* gate = nullptr) {
    which->gate = gate;
    which->gate_number = gate != nullptr ? streams.next_number() : 0;
    heap.give(which);
  }
};

TEST_F(heap_test, SplitsAndMerges) {
  add(mib);
  auto* const first = heap.take(class_of(1000), nullptr);
  auto* const second = heap.take(class_of(100 * kib), nullptr);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->bytes, 1024U);
  EXPECT_EQ(heap.take(class_of(mib), nullptr), nullptr);
  give(first);
  give(second);
  auto* const whole = heap.take(class_of(mib), nullptr);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->address, place(base));
}

TEST_F(heap_test, AGatedBlockServesItsOwnStreamOnly) {
  add(mib);
  auto* const one = streams.find_or_add({0x1000});
  auto* const other = streams.find_or_add({0x2000});
  give(heap.take(class_of(mib), nullptr), one);
  EXPECT_EQ(heap.take(class_of(mib), nullptr), nullptr);
  EXPECT_EQ(heap.take(class_of(mib), other), nullptr);
  auto* const again = heap.take(class_of(mib), one);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->gate, nullptr);
}

TEST_F(heap_test, TakeGatedLeavesTheGateInTheBlock) {
  add(mib);
  auto* const one = streams.find_or_add({0x1000});
  give(heap.take(class_of(mib), nullptr), one);
  auto* const taken = heap.take_gated(class_of(4 * kib));
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->gate, one);
  EXPECT_GT(taken->gate_number, 0U);
}

TEST_F(heap_test, NeighboursWithDifferentGatesStayApart) {
  add(mib);
  auto* const one = streams.find_or_add({0x1000});
  auto* const left = heap.take(class_of(512 * kib), nullptr);
  auto* const right = heap.take(class_of(512 * kib), nullptr);
  give(left, one);
  give(right);
  EXPECT_EQ(heap.take(class_of(mib), one), nullptr);
  EXPECT_NE(heap.take(class_of(512 * kib), nullptr), nullptr);
}

TEST_F(heap_test, SettlingMergesWhatWorkHasLeft) {
  add(mib);
  const auto made = gpu->create_stream(0);
  ASSERT_TRUE(made);
  auto* const one = streams.find_or_add(*made);
  auto* const left = heap.take(class_of(512 * kib), nullptr);
  auto* const right = heap.take(class_of(512 * kib), nullptr);
  give(left, one);
  give(right);
  for (const auto& [stream, number] : heap.gates()) {
    ASSERT_TRUE(stream->wait_for(number));
  }
  heap.settle();
  EXPECT_NE(heap.take(class_of(mib), nullptr), nullptr);
}

TEST_F(heap_test, EmptyRegionsCanBeTakenOut) {
  add(mib);
  add(2 * mib, base + gib);
  auto* const used = heap.take(class_of(mib), nullptr);
  auto empty = heap.take_empty_regions(0);
  ASSERT_EQ(empty.size(), 1U);
  EXPECT_EQ(empty[0].bytes, 2 * mib);
  EXPECT_EQ(heap.now().region_bytes, mib);
  give(used);
  EXPECT_EQ(heap.take_empty_regions(1).size(), 0U);
  EXPECT_EQ(heap.take_empty_regions(0).size(), 1U);
}

// Random takes and gives with random gates against a list of what is out.
RC_GTEST_FIXTURE_PROP(heap_test, BlocksNeverOverlapAndAllComesBack, ()) {
  constexpr bytes_t region = 4 * mib;
  address_map own_addresses;
  extent_heap tested(own_addresses);
  tested.add_region({.address = place(base), .bytes = region}, nullptr, 0);
  tested.add_region({.address = place(base + gib), .bytes = region}, nullptr, 0);
  const auto made = gpu->create_stream(0);
  RC_ASSERT(made.has_value());
  auto* const stream = streams.find_or_add(*made);
  std::map<std::byte*, block*> out;
  bytes_t out_bytes = 0;

  const auto steps =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  for (const auto step : steps) {
    if (step % 3 != 0 || out.empty()) {
      const bytes_t bytes = 1 + (step >> 2U) % (512 * kib);
      auto* const taken = tested.take(class_of(bytes), step % 2 == 0 ? stream : nullptr);
      if (taken == nullptr) {
        continue;
      }
      RC_ASSERT(taken->bytes == size_of(class_of(bytes)));
      RC_ASSERT(own_addresses.find(taken->address) == taken);
      const auto after = out.lower_bound(taken->address);
      const bool clear_above = after == out.end() || taken->address + taken->bytes <= after->first;
      const bool clear_below =
          after == out.begin() ||
          std::prev(after)->first + std::prev(after)->second->bytes <= taken->address;
      RC_ASSERT(clear_above);
      RC_ASSERT(clear_below);
      out.emplace(taken->address, taken);
      out_bytes += taken->bytes;
    } else {
      auto which = out.begin();
      std::advance(which, static_cast<std::ptrdiff_t>((step >> 3U) % out.size()));
      auto* const given = which->second;
      out_bytes -= given->bytes;
      out.erase(which);
      given->gate = (step >> 5U) % 2 == 0 ? stream : nullptr;
      given->gate_number = given->gate != nullptr ? streams.next_number() : 0;
      tested.give(given);
    }
    RC_ASSERT(tested.now().given_out_bytes == out_bytes);
  }
  for (const auto& [start, which] : out) {
    which->gate = nullptr;
    tested.give(which);
  }
  for (const auto& [gate, number] : tested.gates()) {
    RC_ASSERT(gate->wait_for(number).has_value());
  }
  tested.settle();
  RC_ASSERT(tested.take_empty_regions(0).size() == 2U);
  static_cast<void>(gpu->destroy_stream(*made));
}

}  // namespace
}  // namespace berth::memory
