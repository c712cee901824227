// SPDX-License-Identifier: Apache-2.0
// What can be known of host pages without touching them, against mappings of each sort.
#include "runtime/page_probe.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace berth::runtime {
namespace {

constexpr bytes_t probed_bytes = 4 * mib;

// A mapping, and what is done to it.
class probed_memory {
public:
  explicit probed_memory(bytes_t bytes = probed_bytes, int sharing = MAP_PRIVATE)
      : probed_memory(bytes, sharing | MAP_ANONYMOUS, -1) {}
  probed_memory(bytes_t bytes, int flags, int file)
      : bytes_(bytes),
        mapped_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, 0)) {
    // One small page at a time, whatever the system's habits.
    static_cast<void>(madvise(mapped_, bytes_, MADV_NOHUGEPAGE));
  }
  probed_memory(const probed_memory&) = delete;
  probed_memory& operator=(const probed_memory&) = delete;
  probed_memory(probed_memory&&) = delete;
  probed_memory& operator=(probed_memory&&) = delete;
  ~probed_memory() { munmap(mapped_, bytes_); }

  [[nodiscard]] bool is_there() const noexcept { return mapped_ != MAP_FAILED; }
  [[nodiscard]] std::byte* at(bytes_t offset = 0) const noexcept {
    return static_cast<std::byte*>(mapped_) + offset;
  }
  [[nodiscard]] bytes_t size() const noexcept { return bytes_; }

  void write(bytes_t first, bytes_t bytes) const {
    std::memset(at(first), 1, static_cast<std::size_t>(bytes));
  }
  // One byte of each page.
  void read(bytes_t first, bytes_t bytes) const {
    for (bytes_t offset = first; offset < first + bytes; offset += host_page) {
      sink_ = *at(offset);
    }
  }
  void punch(bytes_t first, bytes_t bytes) const { munmap(at(first), bytes); }
  void protect(bytes_t first, bytes_t bytes, int how) const { mprotect(at(first), bytes, how); }

  [[nodiscard]] bytes_t resident_pages() const {
    std::vector<unsigned char> states(bytes_ / host_page);
    if (mincore(mapped_, bytes_, states.data()) != 0) {
      return std::numeric_limits<bytes_t>::max();
    }
    return static_cast<bytes_t>(std::count_if(states.begin(), states.end(),
                                              [](unsigned char one) { return (one & 1U) != 0; }));
  }

private:
  bytes_t bytes_;
  void* mapped_;
  mutable volatile std::byte sink_{};
};

// A file without a name.
class probed_file {
public:
  explicit probed_file(bytes_t bytes = probed_bytes) {
    auto name = (std::filesystem::temp_directory_path() / "berth-pages-XXXXXX").string();
    descriptor_ = mkstemp(name.data());
    unlink(name.c_str());
    const std::vector<char> text(bytes, 'x');
    filled_ = ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  probed_file(const probed_file&) = delete;
  probed_file& operator=(const probed_file&) = delete;
  probed_file(probed_file&&) = delete;
  probed_file& operator=(probed_file&&) = delete;
  ~probed_file() { close(descriptor_); }

  [[nodiscard]] bool is_filled() const noexcept { return filled_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] bool truncate(bytes_t bytes) const {
    return ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0;
  }

private:
  int descriptor_ = -1;
  bool filled_ = false;
};

// Why look() cannot tell pages apart here; empty where it can.
std::string why_no_pagemap() {
  const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return "/proc/self/pagemap cannot be read here: all pages count as resident";
  }
  close(file);
  return {};
}

// Why pages cannot be tried here; empty where they can.
std::string why_no_populate() {
  constexpr int populate_read = 22;  // MADV_POPULATE_READ
  const probed_memory fresh(host_page);
  if (madvise(fresh.at(), host_page, populate_read) != 0 && errno == EINVAL) {
    return "this kernel has no MADV_POPULATE_READ (Linux 5.14)";
  }
  return {};
}

class PageProbe : public ::testing::Test {
protected:
  void SetUp() override {
    if (const auto why = why_no_pagemap(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  page_probe probe;
};

TEST_F(PageProbe, PagesThatWereNeverTouchedAreFresh) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::fresh);
  EXPECT_EQ(probe.look(memory.at(17), memory.size() - 17), pages::fresh);
}

TEST_F(PageProbe, LookingTouchesNothing) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  for (const unsigned samples : {1U, 2U, 16U, 100U, 1024U}) {
    EXPECT_EQ(probe.look(memory.at(), memory.size(), samples), pages::fresh) << samples;
  }
  EXPECT_EQ(memory.resident_pages(), 0U);
}

TEST_F(PageProbe, PagesThatWereWrittenAreResident) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.write(0, memory.size());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::resident);
  EXPECT_EQ(probe.look(memory.at(4095), memory.size() - 4095), pages::resident);
}

TEST_F(PageProbe, TheMostPagesDecide) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.write(0, memory.size() / 4);
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::fresh);
  memory.write(memory.size() / 4, memory.size() / 2);
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::resident);
}

TEST_F(PageProbe, AWrittenFirstPageDoesNotMakeAnAllocationResident) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.write(0, 64);
  for (const unsigned samples : {1U, 2U, 16U}) {
    EXPECT_EQ(probe.look(memory.at(), memory.size(), samples), pages::fresh) << samples;
  }
}

TEST_F(PageProbe, LooksAtThePagesThatItWasGivenOnly) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  const bytes_t middle = memory.size() / 2;
  memory.write(middle, 64 * kib);
  for (const bytes_t bytes : {16 * host_page, 16 * host_page - 1, 8 * host_page}) {
    for (const unsigned samples : {2U, 4U, 8U, 16U}) {
      EXPECT_EQ(probe.look(memory.at(middle), bytes, samples), pages::resident)
          << bytes << " bytes, " << samples << " samples";
    }
  }
  EXPECT_EQ(probe.look(memory.at(middle - 64 * kib), 64 * kib), pages::fresh);
  EXPECT_EQ(probe.look(memory.at(middle + 64 * kib), 64 * kib), pages::fresh);
}

TEST_F(PageProbe, ASinglePageIsItsOwnSample) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.write(0, host_page);
  EXPECT_EQ(probe.look(memory.at(), host_page, 1), pages::resident) << "the next page is fresh";
}

TEST_F(PageProbe, FewerPagesThanSamplesAreTakenForResident) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  EXPECT_EQ(probe.look(memory.at(), 16 * host_page - 1, 16), pages::resident);
  EXPECT_EQ(probe.look(memory.at(), 16 * host_page, 16), pages::fresh);
  EXPECT_EQ(probe.look(memory.at(), 0), pages::resident);
  EXPECT_EQ(probe.look(memory.at(), memory.size(), 0), pages::resident);
}

TEST_F(PageProbe, AMappedFileIsOne) {
  const probed_file file;
  ASSERT_TRUE(file.is_filled());
  const probed_memory memory(probed_bytes, MAP_PRIVATE, file.descriptor());
  ASSERT_TRUE(memory.is_there());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::of_file) << "in the page cache";
  memory.read(0, memory.size());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::of_file) << "mapped in";
}

TEST_F(PageProbe, OwnCopiesOfAFilesPagesAreResident) {
  const probed_file file;
  ASSERT_TRUE(file.is_filled());
  const probed_memory memory(probed_bytes, MAP_PRIVATE, file.descriptor());
  ASSERT_TRUE(memory.is_there());
  memory.write(0, memory.size());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::resident);
}

TEST_F(PageProbe, SharedMemoryCountsAsAFile) {
  const probed_memory memory(probed_bytes, MAP_SHARED);
  ASSERT_TRUE(memory.is_there());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::fresh);
  memory.write(0, memory.size());
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::of_file);
}

TEST_F(PageProbe, PagesThatWereGivenBackAreFreshAgain) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.write(0, memory.size());
  ASSERT_EQ(madvise(memory.at(), memory.size(), MADV_DONTNEED), 0);
  EXPECT_EQ(probe.look(memory.at(), memory.size()), pages::fresh);
}

// --- is_mapped ---------------------------------------------------------------------------------

TEST(IsMapped, KnowsMemoryThatIsThere) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  EXPECT_TRUE(is_mapped(memory.at(), memory.size()));
  EXPECT_TRUE(is_mapped(memory.at(1), memory.size() - 2));
  const std::vector<std::byte> heap(100'000);
  EXPECT_TRUE(is_mapped(heap.data(), heap.size()));
  const int local = 0;
  EXPECT_TRUE(is_mapped(&local, sizeof local));
  EXPECT_EQ(memory.resident_pages(), 0U) << "looking touches nothing";
}

TEST(IsMapped, FindsAHoleInTheMiddle) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  const bytes_t hole = memory.size() / 2;
  memory.punch(hole, host_page);
  EXPECT_FALSE(is_mapped(memory.at(), memory.size()));
  EXPECT_TRUE(is_mapped(memory.at(), hole)) << "up to the hole";
  EXPECT_FALSE(is_mapped(memory.at(), hole + 1)) << "a byte into it";
  EXPECT_FALSE(is_mapped(memory.at(17), hole - 16)) << "a byte into it, from inside a page";
  EXPECT_TRUE(is_mapped(memory.at(17), hole - 17));
  EXPECT_FALSE(is_mapped(memory.at(hole), 1));
  EXPECT_FALSE(is_mapped(memory.at(hole + host_page - 1), 2)) << "its last byte";
  EXPECT_TRUE(is_mapped(memory.at(hole + host_page), memory.size() - hole - host_page));
}

TEST(IsMapped, TakesProtectedMemoryForMapped) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.protect(host_page, host_page, PROT_NONE);
  EXPECT_TRUE(is_mapped(memory.at(), memory.size()));
}

TEST(IsMapped, NoBytesAreAnywhere) {
  EXPECT_TRUE(is_mapped(nullptr, 0));
  EXPECT_FALSE(is_mapped(nullptr, 1));
}

TEST(IsMapped, BytesBeyondTheEndOfAllMemoryAreNot) {
  const int local = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&local);
  EXPECT_FALSE(is_mapped(&local, std::numeric_limits<bytes_t>::max()));
  EXPECT_FALSE(is_mapped(&local, std::numeric_limits<bytes_t>::max() - here + 2));
}

// --- is_readable, is_writable ------------------------------------------------------------------

TEST(IsReadable, KnowsMemoryThatCanBeUsed) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  EXPECT_TRUE(is_readable(memory.at(), memory.size()));
  EXPECT_TRUE(is_writable(memory.at(), memory.size()));
  EXPECT_TRUE(is_readable(memory.at(5), 1));
  EXPECT_TRUE(is_writable(memory.at(5), 1));
  EXPECT_LE(memory.resident_pages(), 2U) << "no more than the first and the last page";
  std::vector<std::byte> heap(100'000, std::byte{7});
  EXPECT_TRUE(is_readable(heap.data(), heap.size()));
  EXPECT_TRUE(is_writable(heap.data(), heap.size()));
  EXPECT_EQ(heap, std::vector<std::byte>(100'000, std::byte{7})) << "trying changes nothing";
}

TEST(IsReadable, NoBytesCanAlwaysBeUsed) {
  EXPECT_TRUE(is_readable(nullptr, 0));
  EXPECT_TRUE(is_writable(nullptr, 0));
}

TEST(IsReadable, NotWhereNoAccessIsAllowed) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  const bytes_t last = memory.size() - host_page;
  memory.protect(last, host_page, PROT_NONE);
  EXPECT_FALSE(is_readable(memory.at(), memory.size())) << "the last page";
  EXPECT_FALSE(is_writable(memory.at(), memory.size()));
  EXPECT_FALSE(is_readable(memory.at(), last + 1));
  EXPECT_TRUE(is_readable(memory.at(), last));
  EXPECT_TRUE(is_writable(memory.at(), last));
  EXPECT_FALSE(is_readable(memory.at(last), 1)) << "the first page";
  EXPECT_FALSE(is_writable(memory.at(last), 1));
}

TEST(IsReadable, ReadOnlyMemoryIsReadableAndNotWritable) {
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  memory.protect(0, memory.size(), PROT_READ);
  EXPECT_TRUE(is_readable(memory.at(), memory.size()));
  EXPECT_FALSE(is_writable(memory.at(), memory.size()));
  memory.protect(0, memory.size() / 2, PROT_READ | PROT_WRITE);
  EXPECT_FALSE(is_writable(memory.at(), memory.size())) << "the last page";
  memory.protect(0, memory.size() / 2, PROT_READ);
  memory.protect(memory.size() / 2, memory.size() / 2, PROT_READ | PROT_WRITE);
  EXPECT_FALSE(is_writable(memory.at(), memory.size())) << "the first page";
}

TEST(IsReadable, NotWhereNothingIsMapped) {
  if (const auto why = why_no_populate(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const probed_memory memory;
  ASSERT_TRUE(memory.is_there());
  const bytes_t last = memory.size() - host_page;
  memory.punch(last, host_page);
  EXPECT_FALSE(is_readable(memory.at(), memory.size()));
  EXPECT_FALSE(is_writable(memory.at(), memory.size()));
  EXPECT_FALSE(is_readable(memory.at(last), 1));
  EXPECT_FALSE(is_readable(nullptr, 1));
  EXPECT_TRUE(is_readable(memory.at(), last));
}

TEST(IsReadable, NotBeyondTheEndOfAFile) {
  if (const auto why = why_no_populate(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const probed_file file;
  ASSERT_TRUE(file.is_filled());
  const probed_memory memory(probed_bytes, MAP_PRIVATE, file.descriptor());
  ASSERT_TRUE(memory.is_there());
  EXPECT_TRUE(is_readable(memory.at(), memory.size()));
  const bytes_t kept = memory.size() / 2;
  ASSERT_TRUE(file.truncate(kept));
  EXPECT_FALSE(is_readable(memory.at(), memory.size()));
  EXPECT_FALSE(is_writable(memory.at(), memory.size()));
  EXPECT_FALSE(is_readable(memory.at(kept), 1));
  EXPECT_TRUE(is_readable(memory.at(), kept));
  EXPECT_TRUE(is_mapped(memory.at(), memory.size())) << "it is mapped all the same";
}

TEST(IsReadable, TryingAFilesPagesChangesNeitherThemNorTheFile) {
  const probed_file file(host_page);
  ASSERT_TRUE(file.is_filled());
  const probed_memory memory(host_page, MAP_PRIVATE, file.descriptor());
  ASSERT_TRUE(memory.is_there());
  EXPECT_TRUE(is_writable(memory.at(), host_page));
  EXPECT_EQ(*memory.at(), std::byte{'x'});
  char first = 0;
  ASSERT_EQ(pread(file.descriptor(), &first, 1, 0), 1);
  EXPECT_EQ(first, 'x');
}

}  // namespace
}  // namespace berth::runtime
