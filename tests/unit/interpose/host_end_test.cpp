// SPDX-License-Identifier: Apache-2.0
// What is found out about a copy's end on the host.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "interpose/capture/host_end.hpp"
#include "support/scratch.hpp"

namespace berth::interpose {
namespace {

constexpr std::size_t size = std::size_t{2} << 20;

class mapping {
public:
  explicit mapping(int flags, int file = -1)
      : memory_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0)) {}
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  mapping(mapping&&) = delete;
  mapping& operator=(mapping&&) = delete;
  ~mapping() { ::munmap(memory_, size); }
  [[nodiscard]] void* get() const { return memory_; }
  [[nodiscard]] host_range range() const {
    return {reinterpret_cast<std::uintptr_t>(memory_), size};
  }

private:
  void* memory_;
};

raw_event looked_at(const host_range& end) {
  raw_event event;
  look_at(end, event);
  return event;
}

TEST(HostPages, AreFreshUntilTheyAreTouched) {
  const mapping memory(MAP_PRIVATE | MAP_ANONYMOUS);
  const auto before = looked_at(memory.range());
  EXPECT_EQ(before.pages, host_pages::fresh);
  EXPECT_EQ(before.host_node, -1);
  std::memset(memory.get(), 1, size);
  EXPECT_EQ(looked_at(memory.range()).pages, host_pages::resident);
}

TEST(HostPages, OfAFileAreOfAFile) {
  const test::scratch scratch;
  const int file = ::open(scratch.file("a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string content(size, 'a');
  ASSERT_EQ(::write(file, content.data(), size), static_cast<ssize_t>(size));
  const mapping memory(MAP_PRIVATE, file);
  EXPECT_EQ(looked_at(memory.range()).pages, host_pages::of_file);
  ::close(file);
}

TEST(HostPages, AreNotLookedAtForSmallCopiesOrAddressesOfNobody) {
  const mapping memory(MAP_PRIVATE | MAP_ANONYMOUS);
  EXPECT_EQ(looked_at({memory.range().first, 4096}).pages, host_pages::unknown);
  EXPECT_EQ(looked_at({0, size}).pages, host_pages::unknown);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
    EXPECT_EQ(looked_at({~std::uintptr_t{0} - 5, bytes}).host_node, -1);
  }
}

TEST(SampleHash, DiffersWithTheContent) {
  std::vector<unsigned char> memory(size, 1);
  const auto before = sample_hash(memory.data(), size);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(sample_hash(memory.data(), size), before);
  memory[0] = 2;
  EXPECT_NE(sample_hash(memory.data(), size), before);
  memory[0] = 1;
  memory[size - 1] = 2;
  EXPECT_NE(sample_hash(memory.data(), size), before);
}

TEST(SampleHash, DiffersWithTheLength) {
  const std::vector<unsigned char> memory(100, 0);
  EXPECT_NE(sample_hash(memory.data(), 10), sample_hash(memory.data(), 11));
}

TEST(SampleHash, ReadsNoByteTooMuch) {
  const mapping memory(MAP_PRIVATE | MAP_ANONYMOUS);
  auto* const last = static_cast<char*>(memory.get()) + size - 4096;
  ASSERT_EQ(::mprotect(last, 4096, PROT_NONE), 0);
  for (const std::uint64_t bytes : {1U, 7U, 63U, 4095U, 4096U}) {
    EXPECT_TRUE(sample_hash(last - bytes, bytes).has_value()) << bytes;
  }
}

TEST(SampleHash, IsNothingOfMemoryThatCannotBeRead) {
  const mapping memory(MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_EQ(::mprotect(memory.get(), size, PROT_NONE), 0);
  EXPECT_FALSE(sample_hash(memory.get(), 100).has_value());
  EXPECT_FALSE(sample_hash(memory.get(), size).has_value());
  EXPECT_FALSE(sample_hash(reinterpret_cast<void*>(8), 100).has_value());  // NOLINT
}

TEST(HostEnd, IsTheOneThatTheCallSays) {
  role_values values;
  values[role::dst] = 1;
  values[role::src] = 2;
  values[role::bytes] = 3;
  EXPECT_EQ(host_end_of<call_id::cuMemcpyHtoD_v2>(values).first, 2U);
  EXPECT_EQ(host_end_of<call_id::cuMemcpyDtoH_v2>(values).first, 1U);
  EXPECT_EQ(host_end_of<call_id::hipMemcpy>(values).bytes, 0U) << "by address";
  values[role::way] = static_cast<std::uint64_t>(way::to_host);
  EXPECT_EQ(host_end_of<call_id::hipMemcpy>(values).first, 1U);
}

}  // namespace
}  // namespace berth::interpose
