// SPDX-License-Identifier: Apache-2.0
// Programs that are linked with a runtime: all they do is recorded, and nothing they see changes.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "interpose/client.hpp"

namespace berth::test {
namespace {

void expect_same_as_counted(const recorded_file& read, const counted& by_runtime) {
  EXPECT_EQ(read.copies().size(), by_runtime.copies);
  EXPECT_EQ(read.copied_bytes(), by_runtime.bytes);
}

TEST(LinkedProgram, HasAllItsCopiesRecordedOnce) {
  auto client = linked({"plain", "1000"});  // so many are held before they are written
  const auto read = client.record();
  EXPECT_EQ(read.count("hipMemcpy"), 1000U);
  EXPECT_EQ(read.count("hipMemcpyAsync"), 0U) << "the runtime's own calls";
  EXPECT_EQ(read.copied_bytes(), bytes_of(1000));
  expect_same_as_counted(read, client.hip_counts());
  EXPECT_EQ(read.how("libamdhip64.so.5"), "linked");
  EXPECT_EQ(read.end.at("reason"), "exit");
  EXPECT_EQ(read.end.at("events"), "1000");
  for (std::size_t index = 0; index < read.events.size(); ++index) {
    ASSERT_EQ(read.events[index]["bytes"], index % 29 + 1);
    ASSERT_EQ(read.events[index]["way"], index % 2 + 1);
  }
}

TEST(LinkedProgram, HasTheCopiesCountedThatCameTooFast) {
  auto client = linked({"plain", "300000"});
  const auto read = client.record();
  EXPECT_EQ(read.copies().size() + read.dropped, 300'000U);
  EXPECT_EQ(read.end.at("events"), std::to_string(read.copies().size()));
  EXPECT_EQ(read.end.at("dropped"), std::to_string(read.dropped));
}

TEST(LinkedProgram, HasItsAllocationsCopiesWaitsAndFreesRecordedInOrder) {
  auto client = linked({"memory"});
  const auto read = client.record();
  ASSERT_EQ(read.events.size(), 8U);
  const char* const names[] = {"hipMalloc",   "hipHostMalloc",        "hipMemcpy", "hipMemcpyAsync",
                               "hipMemcpy2D", "hipStreamSynchronize", "hipFree",   "hipHostFree"};
  for (std::size_t index = 0; index < 8; ++index) {
    EXPECT_EQ(read.events[index].call, names[index]);
    EXPECT_EQ(read.events[index].status, 0);
  }
  const auto device = read.events[0]["memory"];
  const auto pinned = read.events[1]["memory"];
  EXPECT_NE(device, 0U);
  EXPECT_EQ(read.events[0]["bytes"], 1000U);
  EXPECT_EQ(read.events[1]["bytes"], 2000U);
  EXPECT_EQ(read.events[2]["dst"], device);
  EXPECT_EQ(read.events[2]["src"], pinned);
  EXPECT_EQ(read.events[4]["bytes"], 80U);
  EXPECT_EQ(read.events[4]["rows"], 8U);
  EXPECT_EQ(read.events[6]["memory"], device);
  EXPECT_EQ(read.events[7]["memory"], pinned);
  expect_same_as_counted(read, client.hip_counts());
}

TEST(LinkedProgram, GetsStatusAndErrnoOfCallsThatFail) {
  auto client = linked({"failing"});
  const auto read = client.record();
  EXPECT_EQ(client.run_alone().out, "2 5 2 77\n");
  ASSERT_EQ(read.count("hipMalloc"), 1U);
  EXPECT_EQ(read.of("hipMalloc")[0].status, 2);
  EXPECT_EQ(read.of("hipMemcpyAsync")[0].status, 2);
}

TEST(LinkedProgram, MayFailWithAnyAddressWhileContentsAreHashed) {
  auto client = linked({"failing"}, {{"BERTH_RECORD_CONTENT", "1"}});
  const auto read = client.record();
  EXPECT_FALSE(read.of("hipMemcpyAsync")[0].extras.contains("content"));
}

TEST(LinkedProgram, HasContentsHashedWhereAsked) {
  auto client = linked({"plain", "100"}, {{"BERTH_RECORD_CONTENT", "1"}});
  const auto read = client.record();
  EXPECT_TRUE(read.events[0].extras.contains("content"));
  EXPECT_FALSE(read.events[1].extras.contains("content")) << "from the device";
}

TEST(LinkedProgram, HasTheCallsOfManyShortThreadsRecorded) {
  auto client = linked({"threads", "600"});
  const auto read = client.record();
  EXPECT_EQ(read.dropped, 0U);
  EXPECT_EQ(read.copies().size(), 6000U);
  expect_same_as_counted(read, client.hip_counts());
}

TEST(LinkedProgram, HasDropsCountedWhereThreadsFindNoMemory) {
  auto client = linked({"many_at_once", "40"}, {{"BERTH_RECORD_MEMORY", "1"}});
  const auto read = client.record();
  EXPECT_LT(read.copies().size(), 80U);
  EXPECT_EQ(read.copies().size() + std::stoull(read.end.at("dropped")), 80U);
}

TEST(LinkedProgram, HasItsCallSitesRecorded) {
  auto client = linked({"plain", "200"}, {{"BERTH_RECORD_STACKS", "all"}});
  const auto read = client.record();
  std::set<std::uint64_t> used;
  for (const auto& event : read.events) {
    const auto found = event.extras.find("stack");
    ASSERT_NE(found, event.extras.end());
    used.insert(found->second);
  }
  for (const auto id : used) {
    ASSERT_TRUE(read.stacks.contains(id));
    EXPECT_GE(read.stacks.at(id).size(), 2U);
  }
  EXPECT_FALSE(read.modules.empty());
}

TEST(LinkedProgram, HasNoCallSitesWhereNotWanted) {
  auto client = linked({"plain", "200"}, {{"BERTH_RECORD_STACKS", "off"}});
  EXPECT_TRUE(client.record().stacks.empty());
}

TEST(LinkedProgram, KeepsAWrapperBetweenItselfAndTheRuntime) {
  client wrapped({program("wrapped"), "plain", "50"});
  const auto read = wrapped.record();
  EXPECT_EQ(wrapped.run_recorded().out, "wrapped\ncopied 50\n");
  EXPECT_EQ(read.copies().size(), 50U);
  EXPECT_EQ(wrapped.hip_counts().copies, 50U);
}

TEST(LinkedProgram, KeepsAWrapperThatIsPreloaded) {
  auto client = linked({"plain", "50"});
  // The recorder first, then the wrapper.
  const scratch traces;
  test::client both({"env", "LD_PRELOAD=" BERTH_PRELOAD ":" + program("wrapper/libwrapper.so.1"),
                     "BERTH_RECORD=" + traces.file("a"), program("linked"), "plain", "50"});
  EXPECT_EQ(both.run_alone().out, "wrapped\ncopied 50\n");
  EXPECT_EQ(recorded_file::read(traces.file("a")).copies().size(), 50U);
}

TEST(LinkedProgram, OfCudaHasRowsAndBatchesRecorded) {
  client cuda({program("linked_cuda")}, {{"BERTH_RECORD_DEVICE_TIMES", "off"}});
  const auto read = cuda.record();
  EXPECT_EQ(read.how("libcuda.so.1"), "linked");
  ASSERT_EQ(read.copies().size(), 3U);
  EXPECT_EQ(read.copies()[1]["bytes"], 64U);
  EXPECT_EQ(read.copies()[1]["rows"], 4U);
  EXPECT_EQ(read.copies()[2]["bytes"], 30U);
  EXPECT_EQ(read.copies()[2]["batch"], 2U);
  // A batch is one call, and as many copies as it says.
  EXPECT_EQ(cuda.cuda_counts().copies, 4U);
  EXPECT_EQ(cuda.cuda_counts().bytes, read.copied_bytes());
}

TEST(LinkedProgram, OfCudaMayFork) {
  for (const char* const times : {"auto", "off"}) {
    client cuda({program("linked_cuda"), "fork"}, {{"BERTH_RECORD_DEVICE_TIMES", times}});
    EXPECT_EQ(cuda.run_recorded().status, 7) << times;
  }
}

TEST(LinkedProgram, LeavesNothingBehindWithoutBeingAsked) {
  client quiet({"env", "LD_PRELOAD=" BERTH_PRELOAD, program("linked"), "plain", "50"});
  EXPECT_EQ(quiet.run_alone(), (ending{0, "copied 50\n", ""}));
  EXPECT_TRUE(quiet.traces().files().empty());
}

}  // namespace
}  // namespace berth::test
