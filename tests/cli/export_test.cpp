// SPDX-License-Identifier: Apache-2.0
// `berth export`, and `berth analyze` of recordings and folders of them, as a user runs them.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/recording_builder.hpp"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr std::uint64_t device_memory = 0x7f00'0000'0000;
constexpr std::uint64_t malloc_memory = 0x5500'0000'0000;
constexpr std::int64_t ms = 1'000'000;

// A program that uploads 50 MB of pageable memory ten times, each in 10 ms.
std::string uploading(const recorded_pairs& process) {
  recording_builder made(recording_builder::encoding::zstd);
  made.process(process).coverage({{"device_times", "none: no profiler interface"}});
  made.event("hipMalloc", 0, 1000, {device_memory, 50'000'000});
  for (std::int64_t round = 1; round <= 10; ++round) {
    made.event("hipMemcpy", round * 20 * ms, 10 * ms, {device_memory, malloc_memory, 50'000'000, 1},
               {{"stack", 3}});
    made.event("hipModuleLaunchKernel", (round * 20 + 12) * ms, 5000, {0});
  }
  made.event("hipFree", 300 * ms, 1000, {device_memory});
  made.module(0x1000, 0x1000, 0, "/gone/libmodel.so", "ab").stack(3, {0x1100});
  return made.end().file();
}

std::string quiet_process(const std::string& program) {
  recording_builder made;
  return made.process({{"program", program}, {"pid", "7"}}).end().file();
}

TEST(analyze_recording, says_that_device_times_were_not_recorded) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  write_file(path, uploading({{"pid", "1"}, {"program", "/usr/bin/train"}}));
  const auto shown = run_berth({"analyze", path});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.err, IsEmpty());
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("berth recording"), HasSubstr("HtoD (Pageable -> Device)"),
                    HasSubstr("times of copies are how long the calls"),
                    HasSubstr("calls blocked in copies 100.0 ms"), HasSubstr("libmodel.so+0x100")));
}

TEST(analyze_recording, of_a_newer_version_is_refused_with_both_versions) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  auto file = uploading({});
  file[8] = 9;
  write_file(path, file);
  const auto shown = run_berth({"analyze", path});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.err, AllOf(StartsWith("error: BTH-1104: "), HasSubstr("version 9"),
                               HasSubstr("reads version 1")));
}

TEST(analyze_recording, of_a_folder_reports_ranks_in_order_and_quiet_processes_in_one_line) {
  const scratch_folder scratch;
  write_file(scratch.file("1.berth"), uploading({{"rank", "10"}, {"program", "/usr/bin/train"}}));
  write_file(scratch.file("2.berth"), uploading({{"rank", "9"}, {"program", "/usr/bin/train"}}));
  write_file(scratch.file("3.berth"), quiet_process("/usr/bin/bash"));
  write_file(scratch.file("4.berth"), quiet_process("/usr/bin/nproc"));
  write_file(scratch.file("5.berth"), quiet_process("/bin/bash"));
  write_file(scratch.file("notes.txt"), "not a recording");
  const auto text = run_berth({"analyze", scratch.file("")});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_LT(text.out.find("rank 9"), text.out.find("rank 10"));
  EXPECT_THAT(text.out, HasSubstr("Recorded without copies or kernels: 3 processes (2 x bash, "
                                  "nproc)."));
  EXPECT_THAT(text.out, Not(HasSubstr("3.berth")));
  const auto shown = json::parse(run_berth({"analyze", "--format", "json", scratch.file("")}).out);
  ASSERT_EQ(shown["traces"].size(), 2U);
  EXPECT_EQ(shown["traces"][0]["rank"], 9);
  EXPECT_EQ(shown["quiet_processes"].size(), 3U);
  EXPECT_EQ(shown["quiet_processes"][1]["program"], "/usr/bin/nproc");
}

TEST(analyze_recording, of_a_folder_of_quiet_processes_says_just_that) {
  const scratch_folder scratch;
  write_file(scratch.file("3.berth"), quiet_process("/usr/bin/bash"));
  const auto shown = run_berth({"analyze", scratch.file("")});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("Recorded without copies or kernels: 1 process (bash)."));
}

TEST(analyze_recording, of_a_folder_without_any_is_an_error) {
  const scratch_folder scratch;
  const auto shown = run_berth({"analyze", scratch.file("")});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.err, AllOf(StartsWith("error: BTH-1101: "), HasSubstr("without a recording"),
                               HasSubstr("\nhint: ")));
}

TEST(export_chrome, writes_json_that_says_what_the_recording_does) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  const auto out = scratch.file("a.json");
  write_file(path, uploading({{"pid", "1"}, {"program", "/usr/bin/train"}}));
  const auto shown = run_berth({"export", path, "--chrome", "-o", out});
  EXPECT_EQ(shown.status, 0) << shown.err;
  const auto whole = json::parse(read_file(out));
  std::size_t copies = 0;
  std::size_t arrows = 0;
  for (const auto& one : whole["traceEvents"]) {
    copies += one["ph"] == "X" && one["cat"] == "copy" ? 1U : 0U;
    arrows += one["ph"] == "f" ? 1U : 0U;
  }
  EXPECT_EQ(copies, 10U);
  EXPECT_EQ(arrows, 10U);
  EXPECT_EQ(json::parse(run_berth({"export", path, "--chrome"}).out), whole);
  // The export is for looking at, not for another analysis.
  const auto again = run_berth({"analyze", out});
  EXPECT_EQ(again.status, 3);
  EXPECT_THAT(again.err, HasSubstr("berth export"));
}

TEST(export_chrome, of_a_cut_recording_writes_what_is_whole_and_says_so) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  const auto out = scratch.file("a.json");
  const auto file = uploading({{"pid", "1"}});
  write_file(path, std::string_view(file).substr(0, file.size() - 5));
  const auto shown = run_berth({"export", path, "--chrome", "-o", out});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.err, StartsWith("error: BTH-1108: "));
  EXPECT_FALSE(json::parse(read_file(out))["traceEvents"].empty());
}

TEST(export_chrome, writes_the_whole_file_or_none) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  write_file(path, uploading({}));
  EXPECT_EQ(run_berth({"export", path, "--chrome", "-o", "/no/such/folder/a.json"}).status, 3);
  EXPECT_EQ(run_berth({"export", scratch.file("none"), "--chrome", "-o", scratch.file("b")}).status,
            3);
  EXPECT_THAT(scratch.names(), UnorderedElementsAre("a.berth"));
}

TEST(export_chrome, wrong_usage_exits_2) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  write_file(path, uploading({}));
  EXPECT_EQ(run_berth({"export", path}).status, 2);
  EXPECT_EQ(run_berth({"export", "--chrome"}).status, 2);
  EXPECT_EQ(run_berth({"export", path, "--chrome", "-o", path}).status, 2);
  EXPECT_EQ(read_file(path), uploading({}));
}

TEST(export_chrome, a_full_output_is_an_error) {
  const scratch_folder scratch;
  const auto path = scratch.file("a.berth");
  write_file(path, uploading({}));
  const auto shown = run_berth({"export", path, "--chrome", "-o", "/dev/full"});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.err, StartsWith("error: BTH-1102: "));
}

}  // namespace
}  // namespace berth::test
