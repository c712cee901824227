// SPDX-License-Identifier: Apache-2.0
#include "transfer/block_schedule.hpp"

#include <algorithm>

namespace berth::transfer {
namespace {

constexpr bytes_t growth = 2;
// The last blocks halve what is left.
constexpr bytes_t tail_share = 2;

constexpr bytes_t round_up(bytes_t value, bytes_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

std::vector<block> cut(bytes_t bytes, const block_sizes& sizes) {
  std::vector<block> blocks;
  blocks.reserve(bytes / sizes.largest + 16);
  bytes_t offset = 0;
  bytes_t next = sizes.first;
  std::uint32_t pieces = 0;
  const auto add = [&](bytes_t length) {
    const auto count = static_cast<std::uint32_t>((length + sizes.piece - 1) / sizes.piece);
    blocks.push_back({.offset = offset, .bytes = length, .first_piece = pieces, .pieces = count});
    offset += length;
    pieces += count;
  };
  while (offset < bytes) {
    const bytes_t left = bytes - offset;
    const bytes_t tail = std::max(sizes.first, left / tail_share);
    const bytes_t wanted = std::min({next, sizes.largest, tail});
    add(std::min(left, round_up(wanted, sizes.granule)));
    next = std::min(sizes.largest, next * growth);
  }
  return blocks;
}

}  // namespace berth::transfer
