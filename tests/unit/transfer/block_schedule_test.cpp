// SPDX-License-Identifier: Apache-2.0
// How copies are cut into blocks: nothing is left out, sizes stay within what was asked for, and
// the link neither waits long for the first block nor leaves much behind the last.
#include "transfer/block_schedule.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace berth::transfer {
namespace {

using testing::ElementsAre;

constexpr bytes_t up_to(bytes_t value, bytes_t granule) {
  return (value + granule - 1) / granule * granule;
}

std::vector<bytes_t> lengths_of(const std::vector<block>& blocks) {
  std::vector<bytes_t> lengths;
  for (const auto& one : blocks) {
    lengths.push_back(one.bytes);
  }
  return lengths;
}

struct cut_request {
  bytes_t bytes = 0;
  block_sizes sizes;
};

// Sizes of all magnitudes, in any relation to each other, and a copy of at most some 300 blocks.
cut_request any_cut() {
  const auto size = [](const char* what, unsigned most_bits) {
    const auto bits = *rc::gen::inRange(0U, most_bits + 1).as(what);
    const bytes_t least = bytes_t{1} << bits;
    return *rc::gen::inRange<bytes_t>(least, 2 * least).as(what);
  };
  cut_request made;
  made.sizes = {
      .first = size("first", 20),
      .largest = size("largest", 22),
      .piece = size("piece", 18),
      .granule = *rc::gen::element<bytes_t>(1, 2, 7, 512, 3000, 4096, 65537).as("granule")};
  const bytes_t shortest =
      up_to(std::min(made.sizes.first, made.sizes.largest), made.sizes.granule);
  made.bytes = *rc::gen::inRange<bytes_t>(1, 300 * shortest).as("bytes");
  return made;
}

RC_GTEST_PROP(BlockSchedule, CoversAllBytesInOrderWithoutGaps, ()) {
  const auto [bytes, sizes] = any_cut();
  bytes_t covered = 0;
  for (const auto& one : cut(bytes, sizes)) {
    RC_ASSERT(one.offset == covered);
    RC_ASSERT(one.bytes > 0U);
    covered += one.bytes;
  }
  RC_ASSERT(covered == bytes);
}

RC_GTEST_PROP(BlockSchedule, OnlyTheLastBlockEndsInsideAGranule, ()) {
  const auto [bytes, sizes] = any_cut();
  const auto blocks = cut(bytes, sizes);
  for (std::size_t index = 0; index + 1 < blocks.size(); ++index) {
    RC_ASSERT(blocks[index].bytes % sizes.granule == 0U);
  }
}

RC_GTEST_PROP(BlockSchedule, NoBlockIsLargerThanAskedFor, ()) {
  const auto [bytes, sizes] = any_cut();
  const auto blocks = cut(bytes, sizes);
  RC_ASSERT(blocks.front().bytes <= up_to(sizes.first, sizes.granule));
  for (const auto& one : blocks) {
    RC_ASSERT(one.bytes <= up_to(sizes.largest, sizes.granule));
  }
}

RC_GTEST_PROP(BlockSchedule, BlocksGrowAtMostTwofold, ()) {
  const auto [bytes, sizes] = any_cut();
  bytes_t limit = sizes.first;
  for (const auto& one : cut(bytes, sizes)) {
    RC_ASSERT(one.bytes <= up_to(limit, sizes.granule));
    limit = std::min(2 * limit, bytes_t{1} << 60U);
  }
}

RC_GTEST_PROP(BlockSchedule, TheTailShrinks, ()) {
  const auto [bytes, sizes] = any_cut();
  for (const auto& one : cut(bytes, sizes)) {
    const bytes_t left = bytes - one.offset;
    RC_ASSERT(one.bytes <= up_to(std::max(sizes.first, left / 2), sizes.granule));
  }
}

RC_GTEST_PROP(BlockSchedule, PiecesAreNumberedThroughoutAndFillTheirBlock, ()) {
  const auto [bytes, sizes] = any_cut();
  std::uint32_t pieces = 0;
  for (const auto& one : cut(bytes, sizes)) {
    RC_ASSERT(one.first_piece == pieces);
    RC_ASSERT(one.pieces * sizes.piece >= one.bytes);
    RC_ASSERT((one.pieces - 1) * sizes.piece < one.bytes);
    pieces += one.pieces;
  }
}

// Each block is a DMA and costs some microseconds: beyond the growing and the shrinking ones there
// are only those of the largest size.
RC_GTEST_PROP(BlockSchedule, ThereAreNoMoreBlocksThanGrowthAndTailNeed, ()) {
  const auto [bytes, sizes] = any_cut();
  RC_PRE(sizes.first <= sizes.largest);
  const auto doublings = static_cast<bytes_t>(std::bit_width(sizes.largest / sizes.first));
  RC_ASSERT(cut(bytes, sizes).size() <= bytes / sizes.largest + 2 * doublings + 4);
}

TEST(BlockSchedule, GrowsToTheLargestBlockAndShrinksAgain) {
  const auto blocks = cut(16, {.first = 1, .largest = 4, .piece = 1, .granule = 1});
  EXPECT_THAT(lengths_of(blocks), ElementsAre(1, 2, 4, 4, 2, 1, 1, 1));
}

TEST(BlockSchedule, CutsByWholeGranules) {
  const auto blocks = cut(30, {.first = 4, .largest = 12, .piece = 5, .granule = 6});
  ASSERT_THAT(lengths_of(blocks), ElementsAre(6, 12, 6, 6));
  EXPECT_EQ(blocks[0].pieces, 2U);
  EXPECT_EQ(blocks[1].pieces, 3U);
  EXPECT_EQ(blocks[1].first_piece, 2U);
  EXPECT_EQ(blocks[2].first_piece, 5U);
  EXPECT_EQ(blocks[3].first_piece, 7U);
}

TEST(BlockSchedule, WhatFitsIntoTheFirstBlockIsOneBlock) {
  const block_sizes sizes{.first = 4096, .largest = 65536, .piece = 1024, .granule = 1};
  const auto smallest = cut(1, sizes);
  ASSERT_THAT(lengths_of(smallest), ElementsAre(1));
  EXPECT_EQ(smallest[0].pieces, 1U);
  EXPECT_THAT(lengths_of(cut(4096, sizes)), ElementsAre(4096));
  EXPECT_THAT(lengths_of(cut(4097, sizes)), ElementsAre(4096, 1));
}

TEST(BlockSchedule, AGranuleLargerThanAllIsAllOrTheFirstBlock) {
  const block_sizes sizes{.first = 10, .largest = 20, .piece = 10, .granule = 1000};
  EXPECT_THAT(lengths_of(cut(700, sizes)), ElementsAre(700));
  EXPECT_THAT(lengths_of(cut(2500, sizes)), ElementsAre(1000, 1000, 500));
}

TEST(BlockSchedule, AFirstBlockAboveTheLargestIsTheLargest) {
  EXPECT_THAT(lengths_of(cut(10, {.first = 8, .largest = 3, .piece = 3, .granule = 1})),
              ElementsAre(3, 3, 3, 1));
}

TEST(BlockSchedule, LargeCopiesAreMadeOfLargeBlocks) {
  const block_sizes sizes{.first = 256 * kib, .largest = 4 * mib, .piece = 128 * kib, .granule = 1};
  const auto lengths = lengths_of(cut(4 * gib, sizes));
  EXPECT_EQ(lengths.front(), 256 * kib);
  EXPECT_LE(lengths.back(), 256 * kib);
  EXPECT_GE(std::count(lengths.begin(), lengths.end(), 4 * mib), 1020);
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), bytes_t{0}), 4 * gib);
}

}  // namespace
}  // namespace berth::transfer
