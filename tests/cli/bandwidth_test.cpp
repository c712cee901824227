// SPDX-License-Identifier: Apache-2.0
// `berth bandwidth` as a user runs it, on simulated machines.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/scratch.hpp"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(Bandwidth, ShowsMatricesAndSaysThatAllIsWell) {
  const auto shown = run_berth({"bandwidth", "--runtime", "sim:mi210", "--sizes", "1MiB,4MiB"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.err, IsEmpty());
  EXPECT_THAT(shown.out, StartsWith("VERDICT   Simulated, no GPU was measured. As it should be"));
  EXPECT_THAT(shown.out, HasSubstr("rows: source, columns: destination"));
  EXPECT_THAT(shown.out, HasSubstr("Both directions at once"));
  EXPECT_THAT(shown.out, HasSubstr("all figures are modelled"));
}

TEST(Bandwidth, HasAllOfItAsJson) {
  const auto shown = run_berth({"bandwidth", "--runtime", "sim:h200,devices=2", "--kinds",
                                "pinned,fresh", "--sizes", "2MiB", "--format", "json"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  const auto all = json::parse(shown.out);
  EXPECT_EQ(all["schema"], "berth.bandwidth/1");
  EXPECT_EQ(all["known"], "modelled");
  EXPECT_EQ(all["devices"].size(), 2U);
  EXPECT_EQ(all["figures"].size(), 6U);
  for (const auto& one : all["figures"]) {
    EXPECT_EQ(one["bytes"], 2 << 20);
    EXPECT_GT(one["gb_per_s"].get<double>(), 0.5);
    EXPECT_LE(one["p5_ns"].get<double>(), one["p95_ns"].get<double>());
    EXPECT_EQ(one["verdict"], "as expected");
  }
}

TEST(Bandwidth, HasARowForEachFigureAsCsv) {
  const auto shown = run_berth(
      {"bandwidth", "--runtime", "sim:mi100", "--kinds", "pageable", "--sizes", "1MiB", "--csv"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("device,direction,host_memory"));
  EXPECT_EQ(std::count(shown.out.begin(), shown.out.end(), '\n'), 3);
}

TEST(Bandwidth, RefusesNonsense) {
  struct refused {
    std::vector<std::string> words;
    int status;
    const char* says;
  };
  const std::vector<refused> all{
      {{"--kinds", "pined"}, 2, "there are pinned"},  {{"--sizes", "0"}, 2, "no bytes"},
      {{"--sizes", "many"}, 2, "is no size"},         {{"--device", "3"}, 2, "device 3"},
      {{"--samples", "0"}, 2, "no samples"},          {{"--quick", "--full"}, 2, "excludes"},
      {{"--csv", "--format", "json"}, 2, "excludes"}, {{"--runtime", "sim:mi999"}, 2, "mi999"},
      {{"--runtime", "vulkan"}, 2, "vulkan"},
  };
  for (const auto& one : all) {
    std::vector<std::string> words{"bandwidth"};
    if (one.words.front() != "--runtime") {
      words.insert(words.end(), {"--runtime", "sim:mi210"});
    }
    words.insert(words.end(), one.words.begin(), one.words.end());
    const auto shown = run_berth(words);
    EXPECT_EQ(shown.status, one.status) << one.words.front() << ' ' << shown.out;
    EXPECT_THAT(shown.err, HasSubstr(one.says)) << one.words.front();
    EXPECT_THAT(shown.out, IsEmpty());
  }
}

std::string halved_rates(const std::string& text) {
  auto all = json::parse(text);
  for (auto& one : all["figures"]) {
    for (const char* const time : {"median_ns", "p5_ns", "p95_ns"}) {
      one[time] = one[time].get<double>() / 2;  // the earlier run took half as long
    }
  }
  return all.dump();
}

TEST(Bandwidth, ComparesWithAnEarlierRun) {
  const scratch folder;
  const std::vector<std::string> words{"bandwidth", "--runtime", "sim:h200", "--kinds",
                                       "pinned",    "--sizes",   "2MiB"};
  const auto with = [&](std::vector<std::string> more) {
    auto all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run_berth(all);
  };
  const auto first = with({"--format", "json", "-o", folder.file("a.json")});
  ASSERT_EQ(first.status, 0) << first.err;
  const auto same = with({"--compare", folder.file("a.json"), "--check"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("0 slower, 0 faster, of 2 figures that both runs have"));
  write_file(folder.file("b.json"), halved_rates(read_file(folder.file("a.json"))));
  const auto slower = with({"--compare", folder.file("b.json"), "--check"});
  EXPECT_EQ(slower.status, 1);
  EXPECT_THAT(slower.out, HasSubstr("2 slower"));
  EXPECT_THAT(slower.out, HasSubstr("(-50 %)"));
  const auto other = run_berth({"bandwidth", "--runtime", "sim:mi210", "--kinds", "pinned",
                                "--sizes", "2MiB", "--compare", folder.file("a.json")});
  EXPECT_EQ(other.status, 0);
  EXPECT_THAT(other.out, HasSubstr("of other GPUs"));
}

TEST(Bandwidth, SavesAProfileThatAnalyzeGoesBy) {
  const scratch folder;
  const auto saved = run_berth({"bandwidth", "--runtime", "sim:h200", "--kinds", "pinned,pageable",
                                "--sizes", "1MiB,16MiB", "--save-profile", folder.file("h200")});
  ASSERT_EQ(saved.status, 0) << saved.err;
  const std::string trace = BERTH_TRACES "/torch_pageable_inference.json.gz";
  const auto other = run_berth({"analyze", "--profile", folder.file("h200"), trace});
  EXPECT_THAT(other.out, HasSubstr("The profile is of NVIDIA H200 (simulated)"));
  auto profile = json::parse(read_file(folder.file("h200")));
  profile["device_names"] = {"NVIDIA H200"};
  write_file(folder.file("mine"), profile.dump());
  const auto own = run_berth({"analyze", "--profile", folder.file("mine"), trace});
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_THAT(own.out, Not(HasSubstr("it was not used")));
  EXPECT_THAT(own.out, HasSubstr("profile of machine 'h200-measured'"));
  EXPECT_EQ(run_berth({"analyze", "--profile", folder.file("absent"), trace}).status, 3);
  const auto none = run_berth({"bandwidth", "--runtime", "sim:h200", "--kinds", "pinned", "--sizes",
                               "2TiB", "--save-profile", folder.file("no")});
  EXPECT_NE(none.status, 0) << "nothing was measured";
}

TEST(Bandwidth, RefusesAnEarlierRunThatIsNoneBeforeItMeasures) {
  const scratch folder;
  for (const char* const text : {"", "{}", "no json", R"({"schema": "berth.doctor/1"})"}) {
    write_file(folder.file("old"), text);
    const auto shown =
        run_berth({"bandwidth", "--runtime", "sim:h200", "--compare", folder.file("old")});
    EXPECT_EQ(shown.status, 3) << text;
    EXPECT_THAT(shown.err, StartsWith("error: BTH-11")) << text;
    EXPECT_THAT(shown.out, IsEmpty()) << text;
  }
  EXPECT_EQ(run_berth({"bandwidth", "--compare", folder.file("absent")}).status, 3);
}

TEST(Bandwidth, SaysWhatDoesNotFit) {
  const auto shown =
      run_berth({"bandwidth", "--runtime", "sim:mi210", "--kinds", "pinned", "--sizes", "2TiB"});
  EXPECT_THAT(shown.out, HasSubstr("not measured"));
  EXPECT_THAT(shown.out, HasSubstr("BTH-1205"));
}

}  // namespace
}  // namespace berth::test
