// SPDX-License-Identifier: Apache-2.0
// Claims about a machine: who is believed, and what becomes of claims that disagree.
#include "machine/survey.hpp"

#include <gtest/gtest.h>

namespace berth::machine {
namespace {

class Survey : public testing::Test {
protected:
  void claims_width(std::string source, std::uint32_t width) {
    writer_.reading(std::move(source));
    writer_.says("width", width_, width, "x" + std::to_string(width));
  }

  survey survey_;
  surveyor writer_{survey_};
  std::optional<std::uint32_t> width_;
};

TEST_F(Survey, TellsWhereAFieldWasRead) {
  claims_width("lspci, line 4", 16);
  EXPECT_EQ(width_, 16U);
  ASSERT_NE(survey_.claim_of("width"), nullptr);
  EXPECT_EQ(survey_.claim_of("width")->source, "lspci, line 4");
  EXPECT_EQ(survey_.claim_of("speed"), nullptr);
}

TEST_F(Survey, BelievesTheFirstOfTwoThatAgree) {
  claims_width("lspci", 16);
  claims_width("sysfs", 16);
  EXPECT_EQ(width_, 16U);
  EXPECT_EQ(survey_.claim_of("width")->source, "lspci");
  EXPECT_TRUE(survey_.contradictions.empty());
}

TEST_F(Survey, BelievesNeitherOfTwoThatDisagree) {
  claims_width("lspci", 16);
  claims_width("sysfs", 8);
  EXPECT_EQ(width_, std::nullopt);
  EXPECT_EQ(survey_.claim_of("width"), nullptr);
  ASSERT_EQ(survey_.contradictions.size(), 1U);
  EXPECT_EQ(survey_.contradictions[0].claims[0].value, "x16");
  EXPECT_EQ(survey_.contradictions[0].claims[1].source, "sysfs");
}

TEST_F(Survey, AThirdClaimDoesNotSettleAContradiction) {
  claims_width("lspci", 16);
  claims_width("sysfs", 8);
  claims_width("rocm-smi", 16);
  EXPECT_EQ(width_, std::nullopt);
  EXPECT_EQ(survey_.contradictions[0].claims.size(), 3U);
}

TEST_F(Survey, TakesUnknownAsNothing) {
  auto mode = iommu_mode::unknown;
  writer_.reading("dmesg");
  writer_.says("settings.iommu", mode, iommu_mode::passthrough, "passthrough");
  EXPECT_EQ(mode, iommu_mode::passthrough);
  writer_.reading("cmdline");
  writer_.says("settings.iommu", mode, iommu_mode::translated, "translated");
  EXPECT_EQ(mode, iommu_mode::unknown);
}

TEST_F(Survey, TellsWhatCouldNotBeRead) {
  writer_.reading("/sys/x");
  writer_.problem("no permission");
  ASSERT_EQ(survey_.problems.size(), 1U);
  EXPECT_EQ(survey_.problems[0].source, "/sys/x");
}

}  // namespace
}  // namespace berth::machine
