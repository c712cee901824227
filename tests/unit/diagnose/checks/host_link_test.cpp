// SPDX-License-Identifier: Apache-2.0
// The link between GPU and host: which hop limits, and what is a fault, a limit, or sleep.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::pci_port;
using machine::setting_state;
using testing::HasSubstr;
using testing::Not;

constexpr auto link_check = "link-below-capability";

machine::survey one_gpu() {
  return instinct_node(1);
}

// A Radeon whose card has a switch: GPU, inner port, the card's upper port, root port.
machine::survey card_with_switch(machine::pcie_link card_trained) {
  auto seen = one_gpu();
  auto& gpu = seen.machine.gpus[0];
  gpu.isa = "gfx1100";
  gpu.pci_path = {pci("0000:03:00.0", pci_port::endpoint, 0x1002, pcie(4, 16), pcie(4, 16)),
                  pci("0000:02:00.0", pci_port::downstream, 0x1002, pcie(4, 16), pcie(4, 16)),
                  pci("0000:01:00.0", pci_port::upstream, 0x1002, pcie(4, 16), card_trained),
                  pci("0000:00:01.1", pci_port::root_port, 0x1022, pcie(4, 16), card_trained)};
  return seen;
}

TEST(HostLink, IsNormalWhereItRunsAsFastAsBothEndsCan) {
  const auto result = only(link_check, instinct_node(4));
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("GPUs 0-3"));
  EXPECT_THAT(result.headline, HasSubstr("16 GT/s x16 (31.5 GB/s)"));
}

TEST(HostLink, IsUnknownWhereTheInputLacksSpeedAndWidth) {
  const auto result = only(link_check, bare_paste());
  EXPECT_EQ(result.verdict, verdict::unknown);
  EXPECT_THAT(result.confirm, HasSubstr("lspci"));
}

TEST(HostLink, IsAFaultWhereLanesAreLostThatBothEndsHave) {
  auto seen = one_gpu();
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained = pcie(4, 8);
  }
  const auto result = only(link_check, seen);
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.headline, HasSubstr("16 GT/s x8 (15.8 GB/s), though both ends can do"));
  EXPECT_THAT(result.confirm, HasSubstr("0000:00:01.1"));
  EXPECT_THAT(result.fix, Not(testing::IsEmpty()));
}

TEST(HostLink, IsALimitWhereTheSlotIsOfAnOlderGeneration) {
  auto seen = one_gpu();
  seen.machine.gpus[0].pci_path[0].capable = pcie(5, 16);
  const auto result = only(link_check, seen);
  EXPECT_EQ(result.verdict, verdict::limit);
  EXPECT_THAT(result.headline, HasSubstr("slot's generation"));
}

TEST(HostLink, IsALimitWhereTheSlotHasFewerLanes) {
  auto seen = one_gpu();
  seen.machine.gpus[0].pci_path[0].trained = pcie(4, 8);
  seen.machine.gpus[0].pci_path[1].capable = pcie(4, 8);
  seen.machine.gpus[0].pci_path[1].trained = pcie(4, 8);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::limit);
}

TEST(HostLink, IsNoFaultWhereASleepingGpuHasASlowLink) {
  auto seen = one_gpu();
  seen.machine.gpus[0].asleep = setting_state::on;
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained = pcie(1, 16);
  }
  const auto result = only(link_check, seen);
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("asleep"));
}

TEST(HostLink, SaysToLookUnderLoadWhereASlowLinkMayBeIdle) {
  auto seen = one_gpu();
  seen.machine.gpus[0].asleep = setting_state::unknown;
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained = pcie(1, 16);
  }
  const auto result = only(link_check, seen);
  EXPECT_EQ(result.verdict, verdict::unknown);
  EXPECT_THAT(result.fix, testing::Contains(HasSubstr("while copies run")));
}

TEST(HostLink, IsAFaultWhereAnAwakeGpuIsSlowerThanBothEnds) {
  auto seen = one_gpu();
  for (auto& device : seen.machine.gpus[0].pci_path) {
    device.trained = pcie(3, 16);
  }
  EXPECT_EQ(only(link_check, seen).verdict, verdict::fault);
}

TEST(HostLink, IsJudgedAboveTheSwitchOfTheCard) {
  const auto healthy = only(link_check, card_with_switch(pcie(4, 16)));
  EXPECT_EQ(healthy.verdict, verdict::normal);
  const auto result = only(link_check, card_with_switch(pcie(3, 8)));
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.headline, HasSubstr("above the switch on the card"));
  EXPECT_THAT(result.headline, HasSubstr("8 GT/s x8"));
}

TEST(HostLink, OfTheCardsInnerSwitchIsNoMatter) {
  auto seen = card_with_switch(pcie(4, 16));
  seen.machine.gpus[0].pci_path[0].trained = pcie(1, 8);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::normal);
}

TEST(HostLink, IsJudgedAtASwitchOfTheMachineToo) {
  auto seen = one_gpu();
  auto& way = seen.machine.gpus[0].pci_path;
  way = {pci("0000:05:00.0", pci_port::endpoint, 0x1002, pcie(4, 16), pcie(4, 16)),
         pci("0000:04:00.0", pci_port::downstream, 0x10b5, pcie(4, 16), pcie(4, 16)),
         pci("0000:03:00.0", pci_port::upstream, 0x10b5, pcie(4, 16), pcie(4, 4)),
         pci("0000:00:01.1", pci_port::root_port, 0x1022, pcie(4, 16), pcie(4, 4))};
  const auto result = only(link_check, seen);
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.headline, HasSubstr("link of the switch to the host"));
}

TEST(HostLink, OfAVirtualPortTellsNothingOfTheSlot) {
  auto seen = one_gpu();
  auto& port = seen.machine.gpus[0].pci_path[1];
  port.vendor_id = 0x1b36;
  port.capable = pcie(1, 1);
  port.trained = pcie(1, 1);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::normal);
}

TEST(HostLink, WithAnUnknownPortIsNoFaultAtHalfTheLanes) {
  auto seen = one_gpu();
  auto& gpu = seen.machine.gpus[0];
  gpu.pci_path.resize(1);
  gpu.pci_path[0].trained = pcie(4, 8);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::unknown);
  gpu.pci_path[0].trained = pcie(2, 1);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::fault) << "no slot of a GPU has one lane";
  gpu.pci_path[0].capable = pcie(5, 16);
  gpu.pci_path[0].trained = pcie(4, 16);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::limit) << "a card of a later generation";
}

TEST(HostLink, IsTakenFromTheGpuWhereItsWayIsUnknown) {
  auto seen = one_gpu();
  seen.machine.gpus[0].pci_path.clear();
  EXPECT_EQ(only(link_check, seen).verdict, verdict::normal);
  seen.machine.gpus[0].trained_link = pcie(4, 1);
  EXPECT_EQ(only(link_check, seen).verdict, verdict::fault);
}

TEST(HostLink, IsNotAskedOfIntegratedGpusAndVirtualFunctions) {
  auto seen = one_gpu();
  seen.machine.gpus[0].integrated = setting_state::on;
  EXPECT_TRUE(said_by(link_check, seen).empty());
  seen.machine.gpus[0].integrated = setting_state::off;
  seen.machine.gpus[0].virtual_function = setting_state::on;
  EXPECT_TRUE(said_by(link_check, seen).empty());
}

TEST(HostLink, OfACardWithASwitchIsUnknownWhereOnlyTheGpuWasShown) {
  auto seen = bare_paste(1, "gfx1201");
  seen.machine.gpus[0].pci_path = {
      pci("0000:2f:00.0", pci_port::endpoint, 0x1002, pcie(5, 16), pcie(5, 16))};
  const auto result = only(link_check, seen);
  EXPECT_EQ(result.verdict, verdict::unknown);
  EXPECT_THAT(result.headline, HasSubstr("may be the link to a switch on the card"));
}

// Links in an excerpt that names no GPU.
machine::survey excerpt(pci_port port, machine::pcie_link capable, machine::pcie_link trained) {
  machine::survey seen;
  seen.kind = machine::survey_kind::pasted;
  seen.machine.pci_devices = {pci("", port, 0x1022, capable, trained)};
  return seen;
}

TEST(HostLink, InAnExcerptIsAFaultWhereLanesAndSpeedAreLost) {
  EXPECT_EQ(only(link_check, excerpt(pci_port::root_port, pcie(4, 8), pcie(2, 1))).verdict,
            verdict::fault);
}

TEST(HostLink, InAnExcerptIsALimitOfAnOlderSlotAndOfASingleLane) {
  EXPECT_EQ(only(link_check, excerpt(pci_port::endpoint, pcie(5, 16), pcie(4, 16))).verdict,
            verdict::limit);
  EXPECT_EQ(only(link_check, excerpt(pci_port::root_port, pcie(2, 1), pcie(1, 1))).verdict,
            verdict::limit);
}

TEST(HostLink, InAnExcerptMayBeIdle) {
  EXPECT_EQ(only(link_check, excerpt(pci_port::unknown, {}, pcie(1, 16))).verdict,
            verdict::unknown);
  EXPECT_TRUE(said_by(link_check, excerpt(pci_port::unknown, {}, pcie(4, 16))).empty());
}

TEST(HostLink, OfOtherDevicesOfAWholeListingIsNoMatter) {
  auto seen = one_gpu();
  seen.machine.pci_devices = {
      pci("0000:40:01.1", pci_port::root_port, 0x1022, pcie(5, 16), pcie(1, 1))};
  EXPECT_EQ(only(link_check, seen).verdict, verdict::normal);
}

TEST(HostLink, NamesItsSource) {
  auto seen = one_gpu();
  seen.claims.push_back({"gpus[0].pci_path[0].trained.width", "x16", "lspci, line 7"});
  const auto result = only(link_check, seen);
  ASSERT_FALSE(result.evidence.empty());
  EXPECT_EQ(result.evidence[0].field, "gpus[0].pci_path[0].trained");
  EXPECT_EQ(result.evidence[0].source, "lspci, line 7");
}

}  // namespace
}  // namespace berth::test
