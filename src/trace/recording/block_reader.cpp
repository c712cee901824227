// SPDX-License-Identifier: Apache-2.0
#include "trace/recording/block_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

namespace berth::trace::recording {
namespace {

// What of the file is in memory: enough for most blocks, and for the largest wherever it begins.
constexpr std::size_t small_window = 1 << 19;
constexpr std::size_t large_window = 2 * (block_header_bytes + most_block_bytes);

// Behind damage, each place that looks like a header costs a checksum of what it claims to hold.
// A file made to look so everywhere must not take for ever: what lies behind this much vain work is
// lost.
constexpr std::uint64_t most_vain_bytes = 1ULL << 30;

constexpr std::size_t checked_header_bytes = block_header_bytes - 4;

struct free_context {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

struct read_header {
  block_header fields;
  bool plausible = false;
};

read_header parse_header(std::span<const std::byte> bytes) noexcept {
  byte_reader in(bytes.first(block_header_bytes));
  read_header read;
  const bool right_magic = in.get_fixed(4) == block_magic;
  read.fields.type = static_cast<block_type>(in.get_fixed(2));
  const auto encoding = in.get_fixed(2);
  read.fields.encoding = static_cast<block_encoding>(encoding);
  read.fields.stored_bytes = static_cast<std::uint32_t>(in.get_fixed(4));
  read.fields.plain_bytes = static_cast<std::uint32_t>(in.get_fixed(4));
  read.fields.sequence = static_cast<std::uint32_t>(in.get_fixed(4));
  read.fields.checksum = static_cast<std::uint32_t>(in.get_fixed(4));
  const bool is_plain = encoding == static_cast<std::uint64_t>(block_encoding::plain);
  read.plausible = right_magic && read.fields.stored_bytes <= most_block_bytes &&
                   read.fields.plain_bytes <= most_block_bytes &&
                   (!is_plain || read.fields.stored_bytes == read.fields.plain_bytes);
  return read;
}

std::uint32_t checksum_of(std::span<const std::byte> header, std::span<const std::byte> stored) {
  const auto update = [](uLong before, std::span<const std::byte> bytes) {
    return ::crc32(before, reinterpret_cast<const Bytef*>(bytes.data()),
                   static_cast<uInt>(bytes.size()));
  };
  return static_cast<std::uint32_t>(update(update(0, header.first(checked_header_bytes)), stored));
}

error no_header(const std::string& name) {
  return error(errc::input_truncated,
               fmt::format("shorter than the {} bytes of a recording's header", file_header_bytes),
               name, "the program that was recorded ended before it had written anything");
}

result<std::uint32_t> version_of(std::span<const std::byte> header, const std::string& name) {
  byte_reader in(header);
  const auto magic = in.get_fixed(file_magic.size());
  byte_reader known(std::as_bytes(std::span(file_magic)));
  if (magic != known.get_fixed(file_magic.size())) {
    return error(errc::input_unknown_format, "not a recording of berth run", name);
  }
  const auto found = static_cast<std::uint32_t>(in.get_fixed(4));
  if (found > version || found == 0) {
    return error(errc::input_unknown_format,
                 fmt::format("a recording of version {}; this berth reads version {}{}", found,
                             version, version > 1 ? " and older" : ""),
                 name,
                 found > version ? "read it with the berth that recorded it, or a newer one"
                                 : "there was never such a version: record the program again");
  }
  return found;
}

}  // namespace

bool is_recording(std::string_view first_bytes) noexcept {
  return first_bytes.starts_with(std::string_view(file_magic.data(), file_magic.size()));
}

struct block_reader::state {
  byte_source source;
  std::vector<std::byte> window;
  std::size_t begin = 0;  // of what has not been taken yet
  std::size_t end = 0;
  bool at_file_end = false;
  std::uint32_t version = 0;
  std::uint32_t next_sequence = 0;
  std::uint64_t blocks = 0;
  std::uint64_t vain_bytes = 0;
  damage losses;
  std::unique_ptr<ZSTD_DCtx, free_context> decompressor;
  std::vector<std::byte> plain;

  explicit state(byte_source from) : source(std::move(from)), window(small_window) {}

  [[nodiscard]] std::span<const std::byte> ahead() const noexcept {
    return std::span(window).subspan(begin, end - begin);
  }

  // Makes `bytes` available unless the file ends before.
  result<bool> have(std::size_t bytes) {
    if (end - begin >= bytes) {
      return true;
    }
    if (at_file_end) {
      return false;
    }
    std::copy(window.begin() + static_cast<std::ptrdiff_t>(begin),
              window.begin() + static_cast<std::ptrdiff_t>(end), window.begin());
    end -= begin;
    begin = 0;
    if (bytes > window.size()) {
      window.resize(large_window);
    }
    const auto room = std::span(window).subspan(end);
    auto count = source.read({reinterpret_cast<char*>(room.data()), room.size()});
    if (!count) {
      return count.error();
    }
    at_file_end = *count < room.size();
    end += *count;
    return end >= bytes;
  }

  void note_loss() {
    if (!losses.first_loss) {
      losses.first_loss = blocks;
    }
  }

  // The block that begins here; nothing if none does.
  result<std::optional<block>> try_here() {
    auto ready = have(block_header_bytes);
    if (!ready) {
      return ready.error();
    }
    if (!*ready) {
      return std::optional<block>();
    }
    auto [fields, plausible] = parse_header(ahead());
    if (!plausible) {
      return std::optional<block>();
    }
    ready = have(block_header_bytes + fields.stored_bytes);
    if (!ready) {
      return ready.error();
    }
    if (!*ready) {
      return std::optional<block>();
    }
    const auto stored = ahead().subspan(block_header_bytes, fields.stored_bytes);
    if (checksum_of(ahead(), stored) != fields.checksum) {
      vain_bytes += block_header_bytes + stored.size();
      return std::optional<block>();
    }
    auto payload = decoded(fields, stored);
    if (!payload) {
      return std::optional<block>();
    }
    begin += block_header_bytes + stored.size();
    return std::optional(block{fields.type, fields.sequence, *payload});
  }

  // Nothing for what does not decompress to what the header says, or has an unknown encoding.
  std::optional<std::span<const std::byte>> decoded(const block_header& fields,
                                                    std::span<const std::byte> stored) {
    if (fields.encoding == block_encoding::plain) {
      return stored;
    }
    if (fields.encoding != block_encoding::zstd) {
      return std::nullopt;
    }
    if (!decompressor) {
      decompressor.reset(ZSTD_createDCtx());
    }
    plain.resize(std::max<std::size_t>(plain.size(), fields.plain_bytes));
    const auto count = ZSTD_decompressDCtx(decompressor.get(), plain.data(), fields.plain_bytes,
                                           stored.data(), stored.size());
    if (ZSTD_isError(count) != 0 || count != fields.plain_bytes) {
      return std::nullopt;
    }
    return std::span<const std::byte>(plain).first(count);
  }

  // Goes on to the next place that may be a block's begin.
  result<void> skip_to_magic() {
    constexpr std::array<std::byte, 4> magic{
        std::byte{block_magic & 0xFF}, std::byte{(block_magic >> 8) & 0xFF},
        std::byte{(block_magic >> 16) & 0xFF}, std::byte{block_magic >> 24}};
    ++begin;
    ++losses.lost_bytes;
    while (true) {
      const auto left = ahead();
      const auto found = std::search(left.begin(), left.end(), magic.begin(), magic.end());
      const bool is_there = found != left.end();
      // The last three bytes may be the begin of a magic.
      const auto passed = is_there ? static_cast<std::size_t>(found - left.begin())
                                   : left.size() - std::min(left.size(), magic.size() - 1);
      begin += passed;
      losses.lost_bytes += passed;
      if (is_there) {
        return {};
      }
      auto more = have(magic.size());
      if (!more) {
        return more.error();
      }
      if (!*more) {
        losses.lost_bytes += end - begin;
        begin = end;
        return {};
      }
    }
  }

  result<void> give_up() {
    while (true) {
      losses.lost_bytes += end - begin;
      begin = end;
      auto more = have(1);
      if (!more) {
        return more.error();
      }
      if (!*more) {
        return {};
      }
    }
  }

  // True where the bytes that are left are the begin of a block.
  [[nodiscard]] bool at_cut_block() const noexcept {
    const auto left = ahead();
    if (left.size() >= block_header_bytes) {
      const auto read = parse_header(left);
      return read.plausible && left.size() < block_header_bytes + read.fields.stored_bytes;
    }
    byte_reader in(left);
    std::uint32_t expected = block_magic;
    for (std::size_t index = 0; index < std::min<std::size_t>(4, left.size()); ++index) {
      if (in.get_byte() != (expected & 0xFF)) {
        return false;
      }
      expected >>= 8;
    }
    return true;
  }

  result<std::optional<block>> next() {
    const auto lost_before = losses.lost_bytes;
    bool may_be_cut = false;
    while (true) {
      auto found = try_here();
      if (!found) {
        return found;
      }
      if (*found) {
        count_block((*found)->sequence, lost_before);
        return found;
      }
      if (begin == end && at_file_end) {
        break;
      }
      may_be_cut |= losses.lost_bytes == lost_before && at_file_end && at_cut_block();
      auto skipped = vain_bytes > most_vain_bytes ? give_up() : skip_to_magic();
      if (!skipped) {
        return skipped.error();
      }
    }
    if (losses.lost_bytes > lost_before) {
      losses.cut |= may_be_cut;
      losses.places += may_be_cut ? 0U : 1U;
      note_loss();
    }
    losses.cut |= source.ended_early();
    return std::optional<block>();
  }

  void count_block(std::uint32_t sequence, std::uint64_t lost_before) {
    const auto gap = sequence - next_sequence;  // modulo 2^32, as the numbers are
    constexpr std::uint32_t backwards = 1U << 31;
    if (losses.lost_bytes > lost_before) {
      ++losses.places;
      note_loss();
    }
    if (gap != 0 && gap < backwards) {
      losses.missing_blocks += gap;
      note_loss();
    }
    next_sequence = gap < backwards ? sequence + 1 : next_sequence;
    ++blocks;
  }
};

block_reader::block_reader(std::unique_ptr<state> opened) : state_(std::move(opened)) {}
block_reader::block_reader(block_reader&&) noexcept = default;
block_reader& block_reader::operator=(block_reader&&) noexcept = default;
block_reader::~block_reader() = default;

result<block_reader> block_reader::open(byte_source source) {
  auto opened = std::make_unique<state>(std::move(source));
  auto ready = opened->have(file_header_bytes);
  if (!ready) {
    return ready.error();
  }
  const auto& name = opened->source.name();
  const auto first = opened->ahead();
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (!*ready && is_recording(text)) {
    return no_header(name);
  }
  if (!*ready) {
    return error(errc::input_unknown_format, "not a recording of berth run", name);
  }
  auto found = version_of(first, name);
  if (!found) {
    return found.error();
  }
  opened->version = *found;
  opened->begin += file_header_bytes;
  return block_reader(std::move(opened));
}

result<std::optional<block>> block_reader::next() {
  return state_->next();
}
const damage& block_reader::losses() const noexcept {
  return state_->losses;
}
std::uint64_t block_reader::blocks_read() const noexcept {
  return state_->blocks;
}
std::uint32_t block_reader::version() const noexcept {
  return state_->version;
}
const byte_source& block_reader::source() const noexcept {
  return state_->source;
}

}  // namespace berth::trace::recording
