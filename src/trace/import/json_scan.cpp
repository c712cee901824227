// SPDX-License-Identifier: Apache-2.0
#include "trace/import/json_scan.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace berth::trace {
namespace {

// Eight bytes as a number, the first in the lowest bits. A *mark* is such a number whose bytes are
// 0x80 or 0.
using word = std::uint64_t;
constexpr std::size_t word_size = sizeof(word);
constexpr word all_marks = 0x8080808080808080U;

constexpr word repeated(char c) noexcept {
  return 0x0101010101010101U * static_cast<unsigned char>(c);
}

word load(const char* at) noexcept {
  word bytes = 0;
  std::memcpy(&bytes, at, word_size);
  if constexpr (std::endian::native == std::endian::big) {
    bytes = __builtin_bswap64(bytes);
  }
  return bytes;
}

// Marks the bytes that are `c`. The sum sets the high bit of each byte whose low seven bits are not
// all zero, and cannot carry into the next byte.
constexpr word equal_to(word bytes, char c) noexcept {
  const word different = bytes ^ repeated(c);
  return ~(((different & ~all_marks) + ~all_marks) | different) & all_marks;
}

// Marks each byte that has an odd number of marks at or before it.
constexpr word parity(word marks) noexcept {
  marks ^= marks << 8U;
  marks ^= marks << 16U;
  marks ^= marks << 32U;
  return marks;
}

// What is open at some place of the text.
class nesting {
public:
  // Takes the eight bytes at `at`. Behind the bracket that closes the first one, or null.
  const char* take_word(const char* at) noexcept {
    const word bytes = load(at);
    if (escaped_ || equal_to(bytes, '\\') != 0) {
      return take_bytes(at, at + word_size);
    }
    const word in_string = parity(equal_to(bytes, '"')) ^ (in_string_ ? all_marks : 0);
    in_string_ = (in_string >> 63U) != 0;
    // '[' and '{', and ']' and '}', differ in the same bit, and no other byte becomes one of them.
    const word folded = bytes | repeated('{' ^ '[');
    const word opening = equal_to(folded, '{') & ~in_string;
    word brackets = opening | (equal_to(folded, '}') & ~in_string);
    for (; brackets != 0; brackets &= brackets - 1) {
      const word first = brackets & (~brackets + 1);
      if ((first & opening) != 0) {
        ++depth_;
      } else if (--depth_ == 0) {
        return at + static_cast<std::size_t>(std::countr_zero(first)) / 8 + 1;
      }
    }
    return nullptr;
  }

  // The same for any number of bytes.
  const char* take_bytes(const char* at, const char* end) noexcept {
    while (at < end) {
      const char c = *at++;
      if (in_string_) {
        in_string_ = escaped_ || c != '"';
        escaped_ = !escaped_ && c == '\\';
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if ((c == '}' || c == ']') && --depth_ == 0) {
        return at;
      }
    }
    return nullptr;
  }

private:
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;  // the next byte of the string stands behind a backslash
};

}  // namespace

const char* end_of_string(const char* at, const char* end) noexcept {
  const char* const text = at;
  while (at < end) {
    at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
    if (at == nullptr) {
      return nullptr;
    }
    const char* before = at;
    while (before > text && before[-1] == '\\') {
      --before;
    }
    ++at;
    if ((at - 1 - before) % 2 == 0) {
      return at;
    }
  }
  return nullptr;
}

const char* end_of_brackets(const char* at, const char* end) noexcept {
  nesting open;
  for (; static_cast<std::size_t>(end - at) >= word_size; at += word_size) {
    if (const char* const after = open.take_word(at)) {
      return after;
    }
  }
  return open.take_bytes(at, end);
}

}  // namespace berth::trace
