// SPDX-License-Identifier: Apache-2.0
// What devices did, on its way to the file, within bounds.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "interpose/capture/device_log.hpp"

namespace berth::interpose {
namespace {

using trace::recording::byte_reader;
using trace::recording::byte_writer;

std::vector<std::byte> room_for_a_block() {
  return std::vector<std::byte>(trace_file::most_payload);
}

TEST(DeviceLog, HasNothingAtFirst) {
  device_log log;
  auto room = room_for_a_block();
  byte_writer to(room);
  EXPECT_FALSE(log.take_records(to));
  EXPECT_FALSE(log.take_strings(to));
  EXPECT_EQ(log.take_dropped(), 0U);
}

TEST(DeviceLog, GivesTheSameTextTheSameNumber) {
  device_log log;
  const auto first = log.intern("kernel_a");
  const auto second = log.intern("kernel_b");
  EXPECT_NE(first, 0U);
  EXPECT_NE(second, first);
  EXPECT_EQ(log.intern("kernel_a"), first);
  auto room = room_for_a_block();
  byte_writer to(room);
  ASSERT_TRUE(log.take_strings(to));
  byte_reader from(to.written());
  EXPECT_EQ(from.get_varint(), first);
  EXPECT_EQ(from.get_string(), "kernel_a");
  EXPECT_EQ(from.get_varint(), second);
  EXPECT_EQ(from.get_string(), "kernel_b");
  EXPECT_TRUE(from.at_end());
  EXPECT_EQ(log.intern("kernel_a"), first) << "after it was written";
  EXPECT_FALSE(log.take_strings(to));
}

TEST(DeviceLog, CutsLongTextsAndRefusesTooManyBytes) {
  device_log log;
  EXPECT_NE(log.intern(std::string(100'000, 'a')), 0U);
  std::size_t refused = 0;
  for (int index = 0; index < 200; ++index) {
    refused += log.intern(std::to_string(index) + std::string(5000, 'a')) == 0 ? 1U : 0U;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, 200U);
  auto room = room_for_a_block();
  byte_writer to(room);
  ASSERT_TRUE(log.take_strings(to));
  EXPECT_TRUE(to.fits());
  byte_reader from(to.written());
  while (!from.at_end() && from.good()) {
    static_cast<void>(from.get_varint());
    EXPECT_LE(from.get_string().size(), 4096U);
  }
  EXPECT_TRUE(from.good());
  EXPECT_NE(log.intern("there is room again"), 0U);
}

TEST(DeviceLog, RefusesTooManyTexts) {
  device_log log;
  auto room = room_for_a_block();
  std::size_t known = 0;
  for (int index = 0; index < 20'000; ++index) {
    known += log.intern(std::to_string(index)) != 0 ? 1U : 0U;
    if (index % 1000 == 0) {
      byte_writer to(room);
      static_cast<void>(log.take_strings(to));
    }
  }
  EXPECT_EQ(known, 8192U);
  EXPECT_EQ(log.intern("0"), 1U);
}

TEST(DeviceLog, DropsAndCountsWhatFindsNoRoom) {
  device_log log;
  for (int index = 0; index < 17'000; ++index) {
    log.add({.begin = static_cast<std::uint64_t>(index)});
  }
  EXPECT_EQ(log.take_dropped(), 17'000U - 16'384U);
  EXPECT_EQ(log.take_dropped(), 0U);
}

TEST(DeviceLog, GivesAllInSeveralBlocks) {
  device_log log;
  for (std::uint64_t index = 0; index < 16'384; ++index) {
    log.add({.what = record_id::device_copy,
             .begin = index << 40U,
             .end = (index << 40U) + (std::uint64_t{1} << 39U),
             .stream = index % 2 == 0 ? 0 : ~std::uint64_t{0},
             .bytes = index << 44U,
             .correlation = index << 44U});
  }
  auto room = room_for_a_block();
  int blocks = 0;
  for (byte_writer to(room); log.take_records(to); to.clear(), ++blocks) {
    EXPECT_TRUE(to.fits());
  }
  EXPECT_GT(blocks, 1);
  EXPECT_EQ(log.taken(), 16'384U);
}

TEST(DeviceLog, BeginsAnewInTheChildOfAFork) {
  device_log log;
  static_cast<void>(log.intern("a"));
  log.add({});
  log.reset();
  auto room = room_for_a_block();
  byte_writer to(room);
  EXPECT_FALSE(log.take_records(to));
  EXPECT_FALSE(log.take_strings(to));
  EXPECT_EQ(log.intern("b"), 1U);
  ASSERT_TRUE(log.take_strings(to));
}

}  // namespace
}  // namespace berth::interpose
