// SPDX-License-Identifier: Apache-2.0
// Processes that fork, start others, close descriptors, change folders and rights, take signals.
#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "interpose/client.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;

// The recording with so many copies.
const recorded_file* with_copies(const std::vector<recorded_file>& all, std::size_t copies) {
  for (const auto& one : all) {
    if (one.copies().size() == copies) {
      return &one;
    }
  }
  return nullptr;
}

void expect_same_end(client& program) {
  const auto alone = program.run_alone();
  EXPECT_EQ(program.run_recorded(), alone);
}

TEST(Process, ThatForksGetsARecordingForEachThatUsesTheRuntime) {
  auto program = linked({"fork"});
  expect_same_end(program);
  const auto all = program.recordings();
  ASSERT_EQ(all.size(), 2U);
  const auto* const parent = with_copies(all, 5);
  const auto* const child = with_copies(all, 5) == all.data() ? &all[1] : all.data();
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(child->copies().size(), 5U);
  EXPECT_EQ(child->copied_bytes() + parent->copied_bytes(),
            bytes_of(5) + bytes_of(3) + bytes_of(2));
  for (const auto& one : all) {
    EXPECT_EQ(one.end.at("reason"), "exit");
  }
}

TEST(Process, HasNoRecordingOfChildrenThatDoNothing) {
  auto program = linked({"idle_children"});
  EXPECT_EQ(program.record().copies().size(), 3U);
}

TEST(Process, ForksWhileItsThreadsCopy) {
  auto program = linked({"fork_among_threads"});
  expect_same_end(program);
  EXPECT_EQ(program.recordings().size(), 51U);
}

TEST(Process, KeepsItsRecordingThroughAVfork) {
  auto program = linked({"vfork"});
  expect_same_end(program);
  const auto all = program.recordings();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_NE(with_copies(all, 5), nullptr);
  EXPECT_NE(with_copies(all, 4), nullptr);
}

TEST(Process, BeginsASecondRecordingWhenItExecutesAnotherProgram) {
  auto program = linked({"exec"});
  expect_same_end(program);
  const auto all = program.recordings();
  ASSERT_EQ(all.size(), 2U);
  const auto* const second = with_copies(all, 4);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->end.at("reason"), "exit");
}

TEST(Process, HasASpawnedChildRecorded) {
  auto program = linked({"spawn"});
  expect_same_end(program);
  const auto all = program.recordings();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_NE(with_copies(all, 3), nullptr);
  EXPECT_NE(with_copies(all, 4), nullptr);
}

TEST(Process, HasADaemonRecordedThatClosesAllDescriptors) {
  auto program = linked({"daemon"});
  expect_same_end(program);
  for (int tries = 0; tries < 100 && program.traces().files().size() < 2; ++tries) {
    std::this_thread::sleep_for(10ms);
  }
  std::this_thread::sleep_for(200ms);
  const auto all = program.recordings();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_NE(with_copies(all, 3), nullptr);
  const auto* const daemon = with_copies(all, 7);
  ASSERT_NE(daemon, nullptr);
  EXPECT_EQ(daemon->end.at("reason"), "exit");
}

TEST(Process, KeepsItsRecordingWhenItClosesDescriptors) {
  auto program = linked({"close"});
  EXPECT_EQ(program.record().copies().size(), 7U);
}

TEST(Process, KeepsItsRecordingWhereItWasWhenItChangesFolders) {
  client program(
      {"sh", "-c",
       "cd " + scratch().folder() + " 2>/dev/null; exec " + test::program("linked") + " chdir"});
  EXPECT_EQ(program.record().copies().size(), 4U);
  const scratch folder;
  client relative({"sh", "-c",
                   "cd " + folder.folder() +
                       " && BERTH_RECORD=a.trace LD_PRELOAD=" BERTH_PRELOAD " exec " +
                       test::program("linked") + " chdir"});
  EXPECT_EQ(relative.run_alone().out, "in /\n");
  EXPECT_EQ(recorded_file::read(folder.file("a.trace")).copies().size(), 4U);
}

TEST(Process, KeepsItsRecordingWhenItDropsItsRights) {
  auto program = linked({"setuid"});
  EXPECT_EQ(program.record().copies().size(), 7U);
}

TEST(Process, MayCancelAThreadWithinTheRuntime) {
  auto program = linked({"cancel"});
  const auto read = program.record();
  EXPECT_EQ(program.run_recorded().out, "cancelled 1\n");
  EXPECT_EQ(read.copies().size(), 1U);
}

TEST(Process, MayCopyInSignalHandlers) {
  auto program = linked({"signals"});
  const auto read = program.record();
  EXPECT_GE(read.copies().size() + read.dropped, 20'000U);
}

TEST(Process, MayExitInASignalHandler) {
  auto program = linked({"exit_in_handler"});
  for (int times = 0; times < 5; ++times) {
    ASSERT_EQ(program.run_recorded(), (ending{6, "", ""}));
  }
  for (const auto& one : program.recordings()) {
    EXPECT_EQ(one.end.at("reason"), "_exit");
  }
}

TEST(Process, MayForkInASignalHandler) {
  auto program = linked({"forks_in_handler"});
  EXPECT_EQ(program.record().copies().size(), 1000U);
}

TEST(Process, MayHaveSmallStacks) {
  auto program = linked({"small_stack"});
  EXPECT_EQ(program.record().copies().size(), 1U);
}

TEST(Process, HasOnlyItselfRecordedWhereAsked) {
  auto program = linked({"spawn"}, {{"BERTH_RECORD_ONLY", "1"}});
  expect_same_end(program);
  EXPECT_TRUE(program.traces().files().empty());
}

TEST(Process, HasOnlyItsAllocationsRecordedOutsideTheWindow) {
  auto program = linked({"memory"}, {{"BERTH_RECORD_DELAY", "100"}});
  const auto read = program.record();
  EXPECT_EQ(read.events.size(), 4U);
  EXPECT_TRUE(read.copies().empty());
  EXPECT_EQ(read.count("hipStreamSynchronize"), 0U);
  EXPECT_EQ(read.count("hipMalloc"), 1U);
  EXPECT_EQ(read.count("hipHostFree"), 1U);
}

}  // namespace
}  // namespace berth::test
