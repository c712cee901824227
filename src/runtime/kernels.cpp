// SPDX-License-Identifier: Apache-2.0
// The test pattern on the host. Whole words where offset and length allow, so that checking a large
// buffer runs at memory speed; memcpy, since neither end needs to be aligned.
#include "runtime/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace berth::runtime {
namespace {

constexpr bytes_t word_bytes = sizeof(std::uint64_t);

// Calls visit(position, word, first byte in the word, bytes) for each word of the range.
template <typename Visitor>
void for_each_word(bytes_t bytes, std::uint64_t seed, bytes_t offset, Visitor visit) noexcept {
  bytes_t position = 0;
  while (position < bytes) {
    const bytes_t at = offset + position;
    if (at % word_bytes == 0 && bytes - position >= word_bytes) {
      // A length that the compiler knows: one load or store.
      visit(position, pattern_word(seed, at / word_bytes), 0,
            std::integral_constant<bytes_t, word_bytes>{});
      position += word_bytes;
      continue;
    }
    const bytes_t skip = at % word_bytes;
    const bytes_t count = std::min(word_bytes - skip, bytes - position);
    visit(position, pattern_word(seed, at / word_bytes), skip, count);
    position += count;
  }
}

}  // namespace

void write_pattern(void* dst, bytes_t bytes, std::uint64_t seed, bytes_t offset) noexcept {
  auto* to = static_cast<std::byte*>(dst);
  for_each_word(bytes, seed, offset,
                [to](bytes_t position, std::uint64_t word, bytes_t skip, auto count) {
                  word >>= skip * 8;
                  std::memcpy(to + position, &word, count);
                });
}

std::uint64_t count_mismatches(const void* data, bytes_t bytes, std::uint64_t seed,
                               bytes_t offset) noexcept {
  const auto* from = static_cast<const std::byte*>(data);
  std::uint64_t wrong = 0;
  for_each_word(bytes, seed, offset,
                [from, &wrong](bytes_t position, std::uint64_t word, bytes_t skip, auto count) {
                  word >>= skip * 8;
                  std::uint64_t found = 0;
                  std::memcpy(&found, from + position, count);
                  if (count < word_bytes) {
                    word &= (std::uint64_t{1} << (count % word_bytes * 8)) - 1;
                  }
                  for (std::uint64_t rest = found ^ word; rest != 0; rest >>= 8U) {
                    wrong += (rest & 0xFFU) != 0 ? 1 : 0;
                  }
                });
  return wrong;
}

}  // namespace berth::runtime
