// SPDX-License-Identifier: Apache-2.0
// All ways in which a program ends: what was written is whole, and the program ends as it would.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "interpose/client.hpp"

namespace berth::test {
namespace {

struct exit_way {
  const char* name;
  int status;
  const char* reason;  // null: it can't be known, the recording is cut
  std::size_t copies;

  friend void PrintTo(const exit_way& one, std::ostream* out) { *out << one.name; }
};

class ProgramEnd : public testing::TestWithParam<exit_way> {};

TEST_P(ProgramEnd, LeavesAWholeRecording) {
  const auto& way = GetParam();
  auto program = linked({way.name});
  const auto read = program.record();
  EXPECT_EQ(program.run_recorded().status, way.status);
  if (way.reason != nullptr) {
    ASSERT_TRUE(read.end.contains("reason"));
    EXPECT_EQ(read.end.at("reason"), way.reason);
    EXPECT_EQ(read.copies().size(), way.copies);
  } else {
    EXPECT_TRUE(read.end.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Interpose, ProgramEnd,
    testing::Values(exit_way{"exit", 3, "exit", 10}, exit_way{"_exit", 4, "_exit", 10},
                    exit_way{"_Exit", 5, "_exit", 10}, exit_way{"quick_exit", 6, "quick_exit", 10},
                    exit_way{"exit_in_thread", 7, "exit", 10}, exit_way{"destructor", 0, "exit", 5},
                    exit_way{"thread_end", 0, "exit", 5},
                    exit_way{"abort", 128 + SIGABRT, nullptr, 0},
                    exit_way{"kill", 128 + SIGKILL, nullptr, 0}),
    [](const auto& given) {
      std::string name = given.param.name;
      std::replace(name.begin(), name.end(), '_', 'U');
      return name;
    });

TEST(ProgramEndAmongThreads, IsWrittenWhileTheyGoOn) {
  auto program = linked({"exit_among_threads"});
  EXPECT_EQ(program.run_recorded(), (ending{8, "", ""}));
  EXPECT_EQ(program.recording().end.at("reason"), "_exit");
}

TEST(ProgramKilled, LeavesAllThatWasWrittenBefore) {
  std::mt19937 random(3);
  for (int times = 0; times < 50; ++times) {
    auto program = linked({"forever"});
    const int child = program.start_recorded();
    // From before its first call on; drained every 100 ms.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 250'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const auto files = program.traces().files();
    if (files.empty()) {
      continue;
    }
    const auto read = recorded_file::read(files.front());
    if (!read.readable) {
      EXPECT_LT(content_of(files.front()).size(), 16U) << "only a header may be cut";
      continue;
    }
    EXPECT_TRUE(read.whole_events);
    EXPECT_EQ(read.losses.places, 0U);
    EXPECT_EQ(read.losses.missing_blocks, 0U);
    EXPECT_TRUE(read.end.empty());
    std::uint64_t last = 0;
    for (std::size_t index = 0; index < read.events.size(); ++index) {
      ASSERT_GE(read.events[index].begin, last);
      last = read.events[index].begin;
    }
    if (read.dropped == 0) {
      for (std::size_t index = 0; index < std::min<std::size_t>(read.events.size(), 1000);
           ++index) {
        ASSERT_EQ(read.events[index]["bytes"], index % 29 + 1);
      }
    }
  }
}

// A disk that is full after so many bytes, as the limit of files' sizes makes it.
TEST(ProgramOnAFullDisk, IsUnharmedAndLeavesWhatFitted) {
  unsigned told = 0;
  for (const int kilobytes : {4, 8, 12, 16}) {
    client program({"sh", "-c",
                    "ulimit -f " + std::to_string(kilobytes * 2) + "; exec " +
                        test::program("linked") + " plain 100000"});
    const auto alone = program.run_alone();
    EXPECT_EQ(program.run_recorded(), alone);
    for (const auto& one : program.recordings()) {
      EXPECT_LT(one.copies().size(), 100'000U);
      // Where a block ends within some bytes of the limit, there is no room for the reason, either:
      // such a file ends as one of a killed program does.
      // And a machine that has no time for the drainer has most events dropped: what is left fits.
      if (one.end.empty() || (one.end.at("reason") == "exit" && one.dropped > 0)) {
        continue;
      }
      EXPECT_EQ(one.end.at("reason"), "disk: File too large");
      ++told;
    }
  }
  EXPECT_GT(told, 0U);
}

TEST(ProgramOnAFullDisk, EndsAsItWould) {
  for (const char* const way : {"exit", "_exit", "quick_exit"}) {
    client program({"sh", "-c", "ulimit -f 0; exec " + test::program("linked") + " " + way});
    const auto alone = program.run_alone();
    EXPECT_EQ(program.run_recorded(), alone) << way;
    EXPECT_TRUE(program.traces().files().empty());
  }
}

TEST(ProgramWithoutAFolder, IsUnharmed) {
  for (const char* const path :
       {"/no/such/folder/a", "/proc/a", "/dev/full", "/", "", "%", "%%%%", "/dev/null"}) {
    client program({"env", std::string("BERTH_RECORD=") + path, "LD_PRELOAD=" BERTH_PRELOAD,
                    test::program("linked"), "plain", "100"});
    const scratch folder;
    client in_folder({"sh", "-c",
                      "cd " + folder.folder() + " && exec env \"BERTH_RECORD=" + path +
                          "\" LD_PRELOAD=" BERTH_PRELOAD " " + test::program("linked") +
                          " plain 100"});
    EXPECT_EQ(in_folder.run_alone(), (ending{0, "copied 100\n", ""})) << path;
  }
}

}  // namespace
}  // namespace berth::test
