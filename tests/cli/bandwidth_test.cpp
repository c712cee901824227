// SPDX-License-Identifier: Apache-2.0
// `berth bandwidth` as a user runs it, on simulated machines.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Bandwidth, ShowsMatricesAndSaysThatAllIsWell) {
  const auto shown = run_berth({"bandwidth", "--runtime", "sim:mi210", "--sizes", "1MiB,4MiB"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.err, IsEmpty());
  EXPECT_THAT(shown.out, StartsWith("VERDICT   As it should be"));
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

TEST(Bandwidth, SaysWhatDoesNotFit) {
  const auto shown =
      run_berth({"bandwidth", "--runtime", "sim:mi210", "--kinds", "pinned", "--sizes", "2TiB"});
  EXPECT_THAT(shown.out, HasSubstr("not measured"));
  EXPECT_THAT(shown.out, HasSubstr("BTH-1205"));
}

}  // namespace
}  // namespace berth::test
