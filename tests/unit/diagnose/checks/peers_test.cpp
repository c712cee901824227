// SPDX-License-Identifier: Apache-2.0
// GPUs and each other: IOMMU, ACS, peer access, hives, weights.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::iommu_mode;
using machine::link_kind;
using machine::pci_port;
using machine::setting_state;
using testing::HasSubstr;
using testing::Not;

TEST(Iommu, IsNormalWhereItPassesThroughOrIsOff) {
  auto seen = pcie_node();
  EXPECT_EQ(only("iommu", seen).verdict, verdict::normal);
  seen.machine.set.iommu = iommu_mode::off;
  EXPECT_EQ(only("iommu", seen).verdict, verdict::normal);
}

TEST(Iommu, IsAFaultWhereItTranslatesBetweenPciePeers) {
  auto seen = pcie_node();
  seen.machine.set.iommu = iommu_mode::translated;
  const auto result = only("iommu", seen);
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.fix, testing::Contains(HasSubstr("iommu=pt")));
}

TEST(Iommu, IsNoFaultWhereItTranslatesBesideFastLinks) {
  auto seen = instinct_node();
  seen.machine.set.iommu = iommu_mode::translated;
  EXPECT_EQ(only("iommu", seen).verdict, verdict::limit);
}

TEST(Iommu, TranslatesAsRecommendedForRadeon) {
  auto seen = pcie_node();
  for (auto& gpu : seen.machine.gpus) {
    gpu.isa = "gfx1100";
  }
  seen.machine.set.iommu = iommu_mode::translated;
  EXPECT_EQ(only("iommu", seen).verdict, verdict::normal);
}

TEST(Iommu, IsUnknownWhereTheInputLacksIt) {
  EXPECT_EQ(only("iommu", bare_paste()).verdict, verdict::unknown);
}

TEST(AcsRedirect, IsNormalWhereNoBridgeRedirects) {
  const auto result = only("acs-redirect", pcie_node());
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("SrcValid"));
}

TEST(AcsRedirect, IsAFaultBetweenPciePeers) {
  auto seen = pcie_node();
  seen.machine.set.iommu = iommu_mode::unknown;
  seen.machine.gpus[1].pci_path[1].acs_redirect = setting_state::on;
  const auto result = only("acs-redirect", seen);
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.headline, HasSubstr("0000:00:02.1"));
}

TEST(AcsRedirect, CostsNothingBesideFastLinks) {
  auto seen = instinct_node();
  seen.machine.gpus[0].pci_path[1].acs_redirect = setting_state::on;
  EXPECT_EQ(only("acs-redirect", seen).verdict, verdict::normal);
}

TEST(AcsRedirect, AtRootPortsAloneIsNoFaultWithoutTranslation) {
  auto seen = pcie_node();
  seen.machine.gpus[0].pci_path[1].acs_redirect = setting_state::on;
  EXPECT_EQ(only("acs-redirect", seen).verdict, verdict::normal);
  seen.machine.gpus[0].pci_path[1].port = pci_port::downstream;
  EXPECT_EQ(only("acs-redirect", seen).verdict, verdict::fault);
}

TEST(AcsRedirect, InAnExcerptWithoutGpusIsAFaultAllTheSame) {
  machine::survey seen;
  seen.kind = machine::survey_kind::pasted;
  seen.machine.set.acs_redirect = setting_state::on;
  EXPECT_EQ(only("acs-redirect", seen).verdict, verdict::fault);
  seen.machine.set.acs_redirect = setting_state::off;
  EXPECT_EQ(only("acs-redirect", seen).verdict, verdict::normal);
}

TEST(AcsRedirect, IsUnknownWhereTheInputLacksIt) {
  EXPECT_EQ(only("acs-redirect", bare_paste()).verdict, verdict::unknown);
}

TEST(PeerAccess, IsNormalWhereEachPairHasAPath) {
  EXPECT_EQ(only("peer-access", pcie_node()).verdict, verdict::normal);
}

TEST(PeerAccess, IsMissingAndTheSmallBarIsNamed) {
  auto seen = pcie_node(3);
  seen.machine.links.pop_back();
  seen.machine.gpus[2].bar = 256 * mib;
  const auto result = only("peer-access", seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("1 of 3 pairs"));
  EXPECT_THAT(result.headline, HasSubstr("large BAR"));
}

TEST(PeerAccess, IsUnknownWhereAnExcerptTellsOfSomePairs) {
  auto seen = pcie_node(3);
  seen.kind = machine::survey_kind::pasted;
  seen.machine.links.pop_back();
  const auto result = only("peer-access", seen);
  EXPECT_EQ(result.verdict, verdict::unknown);
  EXPECT_THAT(result.headline, HasSubstr("2 of 3 pairs"));
}

TEST(PeerAccess, IsUnknownWithoutLinks) {
  EXPECT_EQ(only("peer-access", bare_paste()).verdict, verdict::unknown);
  EXPECT_TRUE(said_by("peer-access", bare_paste(1)).empty());
}

// Four GPUs in two pairs.
machine::survey two_hives() {
  auto seen = instinct_node(4);
  for (auto& link : seen.machine.links) {
    if ((link.from.id < 2) != (link.to.id < 2)) {
      link.kind = link_kind::pcie;
      link.weight = 72;
      link.hops = 3;
    }
  }
  return seen;
}

TEST(Hives, AreNormalWhereAllAreOne) {
  EXPECT_EQ(only("hives", instinct_node()).verdict, verdict::normal);
}

TEST(Hives, AreALimitWhereThereAreTwo) {
  const auto result = only("hives", two_hives());
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("2 groups of GPUs: GPUs 0-1 | GPUs 2-3"));
}

TEST(Hives, AreUnknownWhereTheKindOfALinkIs) {
  auto seen = two_hives();
  seen.machine.links[0].kind = link_kind::unknown;
  EXPECT_EQ(only("hives", seen).verdict, verdict::unknown);
  for (auto& link : seen.machine.links) {
    link.kind = link_kind::unknown;
  }
  EXPECT_EQ(only("hives", seen).verdict, verdict::unknown);
}

TEST(Hives, AreNoFaultWhereThereIsNoBridge) {
  const auto result = only("hives", pcie_node());
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("no xGMI"));
}

TEST(Hives, AreNoQuestionWhereLinksAreNotInTheInput) {
  EXPECT_TRUE(said_by("hives", bare_paste()).empty());
}

TEST(LinkWeights, AreExplainedForWhatTheyAre) {
  const auto result = only("link-weights", two_hives());
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("15: one xGMI step"));
  EXPECT_THAT(result.headline, HasSubstr("72: PCIe up, across sockets, and down"));
  EXPECT_THAT(result.headline, HasSubstr("not physical steps"));
}

TEST(LinkWeights, AreNotExplainedWhereThereAreNone) {
  EXPECT_TRUE(said_by("link-weights", bare_paste()).empty());
}

}  // namespace
}  // namespace berth::test
