// SPDX-License-Identifier: Apache-2.0
// --fix over CUDA's calls, on a stand-in that works: the same results, and large copies come from
// and to page-locked memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client.hpp"

namespace berth::test {
namespace {

client fixed_cuda(const std::string& fix, variables more = {}) {
  more.insert(more.end(), {{"BERTH_FIX", fix},
                           {"BERTH_FIX_PROFILE", "nominal"},
                           {"BERTH_FIX_THREADS", "3"},
                           {"BERTH_RECORD_DEVICE_TIMES", "off"}});
  return client({program("fixed_cuda")}, std::move(more));
}

std::uint64_t count_of(const recorded_file& read, const std::string& key) {
  const auto found = read.coverage.find(key);
  return found == read.coverage.end() ? 0 : std::stoull(found->second);
}

// 9 round trips, one of rows, one in a context of its own: 18 + 2 copies to fix, 2 to leave.
TEST(FixedCuda, HasAllCopiesOfThePrimaryContextStaged) {
  for (const char* const way : {"1", "check"}) {
    auto client = fixed_cuda(way);
    const auto read = client.record();
    EXPECT_EQ(client.run_recorded(), (ending{0, "wrong 0\n", ""})) << way;
    EXPECT_EQ(count_of(read, "fix.copies"), 20U) << way;
    EXPECT_EQ(count_of(read, "fix.passed.foreign_context"), 2U) << way;
    EXPECT_EQ(count_of(read, "fix.differed"), 0U) << way;
    // The stand-in's counts: pageable ends of a megabyte and more, and page-locked ones.
    const auto seen = client.cuda_counts();
    EXPECT_GE(seen.bytes, 20U) << way;
    if (std::string_view(way) == "1") {
      EXPECT_EQ(seen.copies, 2U) << "those of the other context";
    }
  }
}

TEST(FixedCuda, IsPlainWithoutBeingAsked) {
  auto client = fixed_cuda("0");
  const auto read = client.record();
  EXPECT_EQ(count_of(read, "fix.copies"), 0U);
  EXPECT_GE(client.cuda_counts().copies, 20U);
  EXPECT_EQ(client.cuda_counts().bytes, 0U);
}

TEST(FixedCuda, KeepsFreedPinnedMemoryIfAsked) {
  auto client = fixed_cuda("1", {{"BERTH_FIX_PINNED", "16"}});
  EXPECT_EQ(count_of(client.record(), "fix.reused"), 3U);
  auto plain = fixed_cuda("1");
  EXPECT_EQ(count_of(plain.record(), "fix.reused"), 0U);
}

}  // namespace
}  // namespace berth::test
