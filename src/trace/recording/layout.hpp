// SPDX-License-Identifier: Apache-2.0
// The layout of berth's own trace files: constants, and how numbers are written.
// docs/trace-format.md is its grammar. Shared by the recorder, which lives in other people's
// programs, and by the reader; so nothing here allocates, throws, or needs more than the language.
//
// All numbers are little-endian. A varint is LEB128 of at most 10 bytes; a signed one is zigzag
// coded first. A string is a varint, its length in bytes, and UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace berth::trace::recording {

inline constexpr std::array<char, 8> file_magic{'b', 'e', 'r', 't', 'h', 't', 'r', 'c'};
inline constexpr std::uint32_t version = 1;
inline constexpr std::size_t file_header_bytes = 16;  // magic, version, 4 bytes of zeros

inline constexpr std::uint32_t block_magic = 0x4B4C'4272;  // "rBLK"
inline constexpr std::size_t block_header_bytes = 24;
// No block is larger, stored or plain: what says so is corrupt.
inline constexpr std::uint32_t most_block_bytes = 1U << 22;

enum class block_type : std::uint16_t {
  process = 1,   // pairs of strings: whose memory life this is
  calls = 2,     // what the numbers of calls and roles mean
  events = 3,    // of one thread, or of the devices
  stacks = 4,    // call sites: raw addresses
  modules = 5,   // what is mapped where, to name the addresses by
  strings = 6,   // texts that events refer to
  coverage = 7,  // pairs of strings: what was watched, and what was missed
  dropped = 8,   // events that found no room
  end = 9,       // pairs of strings: why the recording ended. Without it, it was cut
};

enum class block_encoding : std::uint16_t { plain = 0, zstd = 1 };

struct block_header {
  block_type type{};
  block_encoding encoding{};
  std::uint32_t stored_bytes = 0;  // behind the header
  std::uint32_t plain_bytes = 0;   // when decompressed
  std::uint32_t sequence = 0;      // 0, 1, ... in the order of the file
  std::uint32_t checksum = 0;      // CRC-32 of the header before this, and of the stored bytes
};

// Bits of an event's flags.
inline constexpr std::uint64_t event_failed = 1;  // a signed varint follows: the status
// Pairs follow: a varint, their number; then for each an index into the roles of call 0, and a
// value.
inline constexpr std::uint64_t event_has_extras = 2;

// Call 0 is no call: its roles are what any event may have besides its own.
inline constexpr std::uint64_t extras_call = 0;

// --- Bytes --------------------------------------------------------------------------------------

inline constexpr std::size_t most_varint_bytes = 10;

constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

// Appends to memory of fixed size. What does not fit is not written, and fits() tells.
class byte_writer {
public:
  explicit constexpr byte_writer(std::span<std::byte> into) noexcept : into_(into) {}

  constexpr void put_byte(std::uint8_t value) noexcept {
    if (at_ < into_.size()) {
      into_[at_++] = std::byte{value};
    } else {
      fits_ = false;
    }
  }
  constexpr void put_varint(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) {
      put_byte(static_cast<std::uint8_t>(value | 0x80));
    }
    put_byte(static_cast<std::uint8_t>(value));
  }
  constexpr void put_signed(std::int64_t value) noexcept { put_varint(zigzag(value)); }
  // 2 or 4 bytes.
  constexpr void put_fixed(std::uint64_t value, std::size_t bytes) noexcept {
    for (std::size_t index = 0; index < bytes; ++index) {
      put_byte(static_cast<std::uint8_t>(value >> (8 * index)));
    }
  }
  constexpr void put_text(std::string_view text) noexcept {
    for (const char letter : text) {
      put_byte(static_cast<std::uint8_t>(letter));
    }
  }
  constexpr void put_string(std::string_view text) noexcept {
    put_varint(text.size());
    put_text(text);
  }

  [[nodiscard]] constexpr bool fits() const noexcept { return fits_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return at_; }
  [[nodiscard]] constexpr std::size_t room() const noexcept { return into_.size() - at_; }
  [[nodiscard]] constexpr std::span<const std::byte> written() const noexcept {
    return into_.first(at_);
  }
  constexpr void clear() noexcept {
    at_ = 0;
    fits_ = true;
  }

private:
  std::span<std::byte> into_;
  std::size_t at_ = 0;
  bool fits_ = true;
};

// Reads what byte_writer wrote. Behind the end, and after a number that is none, everything is zero
// and good() false.
class byte_reader {
public:
  explicit constexpr byte_reader(std::span<const std::byte> from) noexcept : from_(from) {}

  constexpr std::uint8_t get_byte() noexcept {
    if (at_ >= from_.size()) {
      good_ = false;
      return 0;
    }
    return std::to_integer<std::uint8_t>(from_[at_++]);
  }
  constexpr std::uint64_t get_varint() noexcept {
    std::uint64_t value = 0;
    for (std::size_t index = 0; index < most_varint_bytes; ++index) {
      const std::uint64_t part = get_byte();
      value |= (part & 0x7F) << (7 * index);
      if ((part & 0x80) == 0) {
        return good_ ? value : 0;
      }
    }
    good_ = false;
    return 0;
  }
  constexpr std::int64_t get_signed() noexcept { return unzigzag(get_varint()); }
  constexpr std::uint64_t get_fixed(std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    for (std::size_t index = 0; index < bytes; ++index) {
      value |= static_cast<std::uint64_t>(get_byte()) << (8 * index);
    }
    return value;
  }
  // The bytes stay where they are.
  std::string_view get_string() noexcept {
    const auto length = get_varint();
    if (!good_ || length > from_.size() - at_) {
      good_ = false;
      return {};
    }
    const auto* const first = reinterpret_cast<const char*>(from_.data() + at_);
    at_ += length;
    return {first, static_cast<std::size_t>(length)};
  }

  [[nodiscard]] constexpr bool good() const noexcept { return good_; }
  [[nodiscard]] constexpr bool at_end() const noexcept { return at_ >= from_.size(); }
  [[nodiscard]] constexpr std::size_t position() const noexcept { return at_; }

private:
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// CRC-32 as zlib, PNG and Ethernet have it (polynomial 0xEDB88320). `before`: of what came before.
[[nodiscard]] constexpr std::uint32_t crc32(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0) noexcept {
  constexpr auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t index = 0; index < 256; ++index) {
      std::uint32_t value = index;
      for (int bit = 0; bit < 8; ++bit) {
        value = (value & 1) != 0 ? (value >> 1) ^ 0xEDB8'8320U : value >> 1;
      }
      made[index] = value;
    }
    return made;
  }();
  std::uint32_t value = ~before;
  for (const std::byte one : bytes) {
    value = table[(value ^ std::to_integer<std::uint32_t>(one)) & 0xFF] ^ (value >> 8);
  }
  return ~value;
}

// Into 24 bytes. `stored`: the block's bytes, whose checksum goes into the header.
constexpr void put_block_header(byte_writer& to, const block_header& header,
                                std::span<const std::byte> stored) noexcept {
  const auto begin = to.size();
  to.put_fixed(block_magic, 4);
  to.put_fixed(static_cast<std::uint16_t>(header.type), 2);
  to.put_fixed(static_cast<std::uint16_t>(header.encoding), 2);
  to.put_fixed(stored.size(), 4);
  to.put_fixed(header.plain_bytes, 4);
  to.put_fixed(header.sequence, 4);
  if (to.fits()) {
    to.put_fixed(crc32(stored, crc32(to.written().subspan(begin))), 4);
  }
}

constexpr void put_file_header(byte_writer& to) noexcept {
  to.put_text({file_magic.data(), file_magic.size()});
  to.put_fixed(version, 4);
  to.put_fixed(0, 4);
}

// --- Events -------------------------------------------------------------------------------------

// Roles, the words of spec/gpu_api.def and these few more, get numbers in order of their names'
// first use in the block of calls. An event's values are written as differences to the last value
// of the same role in the same block, so that streams, sizes and neighbouring addresses take a
// byte.
class event_values {
public:
  static constexpr std::size_t most_roles = 128;

  // The difference to write, and the value from a difference that was read.
  constexpr std::int64_t difference(std::size_t role, std::uint64_t value) noexcept {
    const auto last = last_[role];
    last_[role] = value;
    return static_cast<std::int64_t>(value - last);
  }
  constexpr std::uint64_t value(std::size_t role, std::int64_t difference) noexcept {
    return last_[role] += static_cast<std::uint64_t>(difference);
  }

private:
  std::array<std::uint64_t, most_roles> last_{};
};

}  // namespace berth::trace::recording
