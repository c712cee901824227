// SPDX-License-Identifier: Apache-2.0
// Whatever stores are used, exactly the bytes asked for arrive, and nothing around them is touched
// or read.
#include "transfer/slot_copy.hpp"

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace berth::transfer {
namespace {

constexpr std::array all_stores{slot_store::ordinary, slot_store::streaming, slot_store::demoted};
constexpr std::array<bytes_t, 10> offsets{0, 1, 7, 8, 15, 16, 31, 33, 48, 63};
constexpr bytes_t cache_line = 64;
constexpr bytes_t margin = 2 * cache_line;
constexpr std::byte untouched{0xEE};

std::byte pattern_at(bytes_t index) {
  // Never `untouched`, and different from its neighbours at any distance below 251.
  const auto value = static_cast<unsigned char>(index % 251);
  return value == 0xEE ? std::byte{0xFF} : std::byte{value};
}

// Memory from the start of a cache line, with room for any offset and a margin at both sides.
class lined_memory {
public:
  explicit lined_memory(bytes_t most) : bytes_(most + 3 * margin + cache_line, untouched) {
    const auto misplaced = reinterpret_cast<std::uintptr_t>(bytes_.data()) % cache_line;
    start_ = bytes_.data() + (cache_line - misplaced);
  }
  [[nodiscard]] std::byte* at(bytes_t offset) noexcept { return start_ + margin + offset; }
  [[nodiscard]] std::byte* start() noexcept { return start_; }

private:
  std::vector<std::byte> bytes_;
  std::byte* start_;
};

class slot_copier {
public:
  explicit slot_copier(bytes_t most) : source_(most), target_(most) {}

  // Whether the bytes arrived, and only they.
  [[nodiscard]] testing::AssertionResult copies(bytes_t bytes, bytes_t source_offset,
                                                bytes_t target_offset, slot_store how) {
    auto* const from = source_.at(source_offset);
    auto* const to = target_.at(target_offset);
    for (bytes_t index = 0; index < bytes; ++index) {
      from[index] = pattern_at(index);
    }
    const bytes_t whole = margin + target_offset + bytes + margin;
    std::memset(target_.start(), static_cast<int>(untouched), whole);
    write_slot(to, from, bytes, how);
    const auto failure = [&](const char* what, bytes_t index) {
      return testing::AssertionFailure()
             << what << " byte " << index << " of " << bytes << ", " << to_string(how)
             << ", source offset " << source_offset << ", target offset " << target_offset;
    };
    for (bytes_t index = 0; index < bytes; ++index) {
      if (to[index] != pattern_at(index)) {
        return failure("wrong", index);
      }
    }
    for (bytes_t index = 0; index < margin + target_offset; ++index) {
      if (target_.start()[index] != untouched) {
        return failure("written below: margin", index);
      }
    }
    for (bytes_t index = 0; index < margin; ++index) {
      if (to[bytes + index] != untouched) {
        return failure("written above: margin", index);
      }
    }
    return testing::AssertionSuccess();
  }

private:
  lined_memory source_;
  lined_memory target_;
};

// Pages with one behind them that must not be touched.
class fenced_pages {
public:
  static constexpr bytes_t page = 4096;
  fenced_pages() {
    auto* const mapped =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
    if (memory_ != nullptr) {
      mprotect(memory_ + page, page, PROT_NONE);
    }
  }
  fenced_pages(const fenced_pages&) = delete;
  fenced_pages& operator=(const fenced_pages&) = delete;
  fenced_pages(fenced_pages&&) = delete;
  fenced_pages& operator=(fenced_pages&&) = delete;
  ~fenced_pages() { munmap(memory_, 2 * page); }
  // The last `bytes` before the fence.
  [[nodiscard]] std::byte* last(bytes_t bytes) const noexcept { return memory_ + page - bytes; }
  [[nodiscard]] bool is_there() const noexcept { return memory_ != nullptr; }

private:
  std::byte* memory_ = nullptr;
};

TEST(SlotCopy, CopiesSmallSizesAtAnyAlignment) {
  slot_copier copier(300);
  for (const auto how : all_stores) {
    for (const auto source_offset : offsets) {
      for (const auto target_offset : offsets) {
        for (bytes_t bytes = 0; bytes <= 300; ++bytes) {
          ASSERT_TRUE(copier.copies(bytes, source_offset, target_offset, how));
        }
      }
    }
  }
}

TEST(SlotCopy, CopiesLargeSizesAtAnyAlignment) {
  slot_copier copier(4 * mib + 13);
  for (const auto how : all_stores) {
    for (const bytes_t bytes :
         {4 * kib, 64 * kib - 1, 64 * kib + 1, 1 * mib + 63, 4 * mib, 4 * mib + 13}) {
      ASSERT_TRUE(copier.copies(bytes, 0, 0, how));
      ASSERT_TRUE(copier.copies(bytes, 1, 0, how));
      ASSERT_TRUE(copier.copies(bytes, 0, 63, how));
      ASSERT_TRUE(copier.copies(bytes, 33, 7, how));
    }
  }
}

RC_GTEST_PROP(SlotCopy, CopiesAnySizeAtAnyAlignment, ()) {
  static slot_copier copier(100'000);
  const auto how = *rc::gen::elementOf(all_stores);
  const auto bytes = *rc::gen::inRange<bytes_t>(0, 100'000);
  const auto source_offset = *rc::gen::inRange<bytes_t>(0, cache_line);
  const auto target_offset = *rc::gen::inRange<bytes_t>(0, cache_line);
  const auto copied = copier.copies(bytes, source_offset, target_offset, how);
  if (!copied) {
    RC_FAIL(copied.message());
  }
}

TEST(SlotCopy, ReadsAndWritesNothingBehindTheEnd) {
  const fenced_pages source;
  const fenced_pages target;
  ASSERT_TRUE(source.is_there());
  ASSERT_TRUE(target.is_there());
  for (const auto how : all_stores) {
    for (bytes_t bytes = 0; bytes <= 300; ++bytes) {
      std::memset(source.last(bytes), static_cast<int>(bytes % 255), bytes);
      write_slot(target.last(bytes), source.last(bytes), bytes, how);
      ASSERT_EQ(std::memcmp(target.last(bytes), source.last(bytes), bytes), 0)
          << bytes << " bytes, " << to_string(how);
    }
  }
}

TEST(SlotCopy, LeavesTheSourceAsItIs) {
  for (const auto how : all_stores) {
    std::vector<std::byte> source(1000, std::byte{7});
    std::vector<std::byte> target(1000);
    write_slot(target.data(), source.data(), source.size(), how);
    EXPECT_EQ(source, std::vector<std::byte>(1000, std::byte{7})) << to_string(how);
    EXPECT_EQ(source, target) << to_string(how);
  }
}

TEST(SlotStore, SpellingsAreReadBack) {
  for (const auto how : all_stores) {
    EXPECT_NE(to_string(how), "unknown");
    EXPECT_EQ(parse_slot_store(to_string(how)), how);
  }
  EXPECT_EQ(to_string(slot_store::ordinary), "ordinary");
  EXPECT_EQ(to_string(slot_store::streaming), "streaming");
  EXPECT_EQ(to_string(slot_store::demoted), "demoted");
}

TEST(SlotStore, OtherTextsAreNone) {
  for (const auto* const text : {"", "unknown", "Ordinary", "ordinary ", "stream", "demote"}) {
    EXPECT_EQ(parse_slot_store(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(to_string(static_cast<slot_store>(17)), "unknown");
}

}  // namespace
}  // namespace berth::transfer
