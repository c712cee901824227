// SPDX-License-Identifier: Apache-2.0
// Pasted text as such: several tools in one, what no reader knows, and what is no text.
#include <gtest/gtest.h>

#include <chrono>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

TEST(PastedText, JoinsWhatSeveralToolsSayOfAGpu) {
  const auto seen = test::read_text(
      "Look at this:\n```console\nuser@host:~$ rocminfo\n"
      "Agent 1\n  Name: gfx90a\n  Device Type: GPU\n  BDFID: 17152\n```\n"
      "and\n```\n$ rocm-smi --showtoponuma\n"
      "GPU[0]		: (Topology) Numa Node: 3\n```\n"
      "$ lspci -vv\n43:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran\n"
      "\tRegion 0: Memory at 3f00000000 (64-bit, prefetchable) [size=64G]\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].isa, "gfx90a");
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 3U);
  EXPECT_EQ(seen.machine.gpus[0].bar, 64 * gib);
  EXPECT_EQ(seen.sources.size(), 3U);
  ASSERT_EQ(seen.unread_lines, 2U);
  EXPECT_EQ(seen.unread[0].text, "Look at this:");
  EXPECT_EQ(seen.unread[0].source, "paste.txt, line 1");
}

TEST(PastedText, SaysThatBinaryDataIsNone) {
  std::string bytes(4096, '\0');
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<char>(at * 7);
  }
  auto seen = test::read_text(bytes);
  EXPECT_TRUE(test::has_problem(seen, "binary"));
  EXPECT_EQ(seen.lines, 0U);
  seen = test::read_text("\x1f\x8b\x08 compressed");
  EXPECT_TRUE(test::has_problem(seen, "binary"));
}

TEST(PastedText, ReadsWhatWindowsToolsSave) {
  std::string wide = "\xFF\xFE";
  for (const char c : std::string("XNACK enabled:           NO\r\n")) {
    wide += c;
    wide += '\0';
  }
  EXPECT_EQ(test::read_text(wide).machine.set.xnack, machine::setting_state::off);
}

TEST(PastedText, KeepsABoundedListOfWhatItDoesNotUnderstand) {
  std::string prose;
  for (int line = 0; line < 5000; ++line) {
    prose += "this is prose\n";
  }
  const auto seen = test::read_text(prose);
  EXPECT_EQ(seen.unread_lines, 5000U);
  EXPECT_EQ(seen.unread.size(), 1000U);
  EXPECT_TRUE(seen.sources.empty());
}

TEST(PastedText, ReadsNothingFromNothing) {
  EXPECT_EQ(read_pasted({}).lines, 0U);
  EXPECT_EQ(test::read_text("").lines, 0U);
  EXPECT_EQ(test::read_text("\n\n").unread_lines, 0U);
}

TEST(PastedText, KeepsTheGpusOfTwoMakersApart) {
  const auto seen = test::read_text(
      "GPU[0]		: (Topology) Numa Node: 0\n"
      "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X PHB 0-7 1\nGPU1 PHB X 0-7 1\n");
  ASSERT_EQ(seen.machine.gpus.size(), 3U);
  EXPECT_EQ(seen.machine.gpus[0].made_by, machine::vendor::amd);
  EXPECT_EQ(seen.machine.gpus[1].made_by, machine::vendor::nvidia);
  EXPECT_TRUE(seen.contradictions.empty());
}

// Ten times what a person pastes; the bound is far above what is needed, for slow machines.
TEST(PastedText, ReadsTenMegabytesInASecondOrSo) {
  constexpr std::size_t wanted = 10 << 20;
  const auto one = test::content_of(std::filesystem::path(BERTH_SOURCE_DIR) /
                                    "tests/emulator/golden/mi250x_node.rocminfo.txt");
  ASSERT_FALSE(one.empty());
  std::string text;
  while (text.size() < wanted) {
    text += one + "some prose between: with a colon\n";
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto seen = test::read_text(text);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_FALSE(seen.machine.gpus.empty());
}

}  // namespace
}  // namespace berth::topology
