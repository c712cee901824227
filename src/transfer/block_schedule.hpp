// SPDX-License-Identifier: Apache-2.0
// How a staged copy is cut into blocks. One block is one DMA. The link can start when the first
// block is filled, and the threads must still empty the last one when the link has ended: so blocks
// grow from a small first one and shrink again at the end. In between they are large, since each
// DMA costs some microseconds of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/units.hpp"

namespace berth::transfer {

struct block_sizes {
  bytes_t first = 0;
  bytes_t largest = 0;
  bytes_t piece = 0;    // what one thread copies at a time
  bytes_t granule = 1;  // blocks but the last are multiples of it (rows of a 2D copy)
};

struct block {
  bytes_t offset = 0;
  bytes_t bytes = 0;
  std::uint32_t first_piece = 0;
  std::uint32_t pieces = 0;
};

// Blocks that cover [0, bytes) in order. Pre: bytes > 0; all sizes > 0.
[[nodiscard]] std::vector<block> cut(bytes_t bytes, const block_sizes& sizes);

}  // namespace berth::transfer
