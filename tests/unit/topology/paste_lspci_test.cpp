// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::pci_port;
using machine::setting_state;

constexpr std::string_view card_behind_switch = R"(# lspci -vv
00:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Renoir PCIe GPP Bridge (prog-if 00 [Normal decode])
	Control: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
	Bus: primary=00, secondary=01, subordinate=03, sec-latency=0
	Capabilities: [58] Express (v2) Root Port (Slot+), MSI 00
		LnkCap:	Port #0, Speed 8GT/s, Width x16, ASPM L1, Exit Latency L1 <64us
			ClockPM- Surprise- LLActRep+ BwNot+ ASPMOptComp+
		LnkSta:	Speed 8GT/s, Width x8 (downgraded)
			TrErr- Train- SlotClk+ DLActive+ BWMgmt+ ABWMgmt-
	Capabilities: [2a0 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
	Kernel driver in use: pcieport

01:00.0 PCI bridge: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Upstream Port of PCI Express Switch (rev c0)
	Bus: primary=01, secondary=02, subordinate=03, sec-latency=0
	Capabilities: [58] Express (v2) Upstream Port, MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 8GT/s (downgraded), Width x8 (downgraded)

02:00.0 PCI bridge: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Downstream Port of PCI Express Switch
	Bus: primary=02, secondary=03, subordinate=03, sec-latency=0
	Capabilities: [58] Express (v2) Downstream Port (Slot-), MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 16GT/s, Width x16

03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 21 [Radeon RX 6800/6800 XT / 6900 XT] (rev c1) (prog-if 00 [VGA controller])
	NUMA node: 1
	Region 0: Memory at 7000000000 (64-bit, prefetchable) [size=256M]
	Region 2: Memory at 7010000000 (64-bit, prefetchable) [size=2M]
	Region 4: I/O ports at e000 [size=256]
	Region 5: Memory at fcb00000 (32-bit, non-prefetchable) [size=1M]
	Capabilities: [50] Power Management version 3
		Status: D0 NoSoftRst+ PME-Enable- DSel=0 DScale=0 PME-
	Capabilities: [64] Express (v2) Legacy Endpoint, MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 16GT/s, Width x16
	Kernel driver in use: amdgpu
)";

TEST(PastedLspci, JudgesTheLinkToTheSlotAndNotTheOneOnTheCard) {
  const auto seen = test::read_text(std::string(card_behind_switch));
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  const auto& gpu = seen.machine.gpus[0];
  EXPECT_EQ(gpu.pci_address, "0000:03:00.0");
  ASSERT_EQ(gpu.pci_path.size(), 4U);
  EXPECT_EQ(gpu.pci_path[0].trained.generation, 4U);
  EXPECT_EQ(gpu.pci_path[2].port, pci_port::upstream);
  EXPECT_EQ(gpu.pci_path[3].port, pci_port::root_port);
  EXPECT_EQ(gpu.trained_link.generation, 3U);
  EXPECT_EQ(gpu.trained_link.width, 8U);
  EXPECT_EQ(gpu.host_link.generation, 3U);
  EXPECT_EQ(gpu.host_link.width, 16U);
  EXPECT_EQ(gpu.bar, 256 * mib);
  EXPECT_EQ(gpu.bar_address, 0x7000000000U);
  EXPECT_EQ(gpu.numa_node, 1U);
  EXPECT_EQ(gpu.asleep, setting_state::off);
  EXPECT_EQ(gpu.pci_path[3].acs_redirect, setting_state::on);
  EXPECT_EQ(seen.machine.set.acs_redirect, setting_state::on);
  EXPECT_TRUE(seen.problems.empty());
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedLspci, DoesNotTakeTheLinkOnAnAmdCardForThatToTheSlot) {
  const auto text = card_behind_switch.substr(card_behind_switch.find("03:00.0 VGA"));
  const auto seen = test::read_text(std::string(text));
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].pci_path.at(0).trained.width, 16U);
  EXPECT_EQ(seen.machine.gpus[0].trained_link.width, std::nullopt);
}

TEST(PastedLspci, TakesAnNvidiaCardsLinkForThatToTheSlot) {
  const auto seen = test::read_text(
      "41:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H200 SXM 141GB] [10de:2335] (rev "
      "a1)\n"
      "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
      "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16 (ok)\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].pci_device_id, 0x2335U);
  EXPECT_EQ(seen.machine.gpus[0].trained_link.generation, 1U);
  EXPECT_EQ(seen.machine.gpus[0].host_link.generation, std::nullopt);
}

TEST(PastedLspci, KnowsWhoseLinesACommandAskedFor) {
  const auto seen = test::read_text(
      "lspci | grep -i vga\n"
      "2f:00.0 VGA compatible controller: NVIDIA Corporation TU106 [GeForce RTX 2070]\n"
      "$ sudo lspci -s 2f:00.0 -vv | grep LnkSta:\n"
      "LnkSta: Speed 8GT/s, Width x8 (downgraded)\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_EQ(seen.machine.gpus[0].trained_link.width, 8U);
}

TEST(PastedLspci, KeepsLinksOfDevicesThatItCannotName) {
  const auto seen = test::read_text(
      "\tCapabilities: [70] Express (v2) Root Port (Slot-), MSI 00\n"
      "\t\tLnkCap: Port #0, Speed 16GT/s, Width x8, ASPM L0s L1\n"
      "\t\tLnkSta: Speed 5GT/s (downgraded), Width x1 (downgraded)\n");
  ASSERT_EQ(seen.machine.pci_devices.size(), 1U);
  EXPECT_EQ(seen.machine.pci_devices[0].port, pci_port::root_port);
  EXPECT_EQ(seen.machine.pci_devices[0].capable.width, 8U);
  EXPECT_EQ(seen.machine.pci_devices[0].trained.width, 1U);
  EXPECT_EQ(seen.machine.pci_devices[0].trained.generation, 2U);
  ASSERT_NE(seen.claim_of("pci_devices[0].trained.width"), nullptr);
}

TEST(PastedLspci, TakesSourceValidationAloneForNoRedirection) {
  const auto seen = test::read_text(
      "ACSCtl: SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n");
  EXPECT_EQ(seen.machine.set.acs_redirect, setting_state::off);
}

TEST(PastedLspci, LeavesOutAWidthThatCannotBe) {
  const auto seen = test::read_text("LnkSta: Speed 16GT/s, Width x0\n");
  EXPECT_TRUE(test::has_problem(seen, "width x0"));
  EXPECT_TRUE(seen.machine.pci_devices.empty());
}

TEST(PastedLspci, TrustsNeitherOfTwoStatesOfOneLink) {
  const std::string head = "41:00.0 3D controller: NVIDIA Corporation GH100\n";
  const auto seen = test::read_text(head + "LnkSta: Speed 32GT/s, Width x16\n" + head +
                                    "LnkSta: Speed 32GT/s, Width x8\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  EXPECT_TRUE(test::is_contradicted(seen, "gpus[0].pci_path[0].trained.width"));
  EXPECT_EQ(seen.machine.gpus[0].trained_link.width, std::nullopt);
  EXPECT_EQ(seen.machine.gpus[0].trained_link.generation, 5U);
}

TEST(PastedLspci, ReadsTheKernelsLineOnBandwidth) {
  const auto seen = test::read_text(
      "[    3.06] pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe "
      "x4 link at 0000:00:00.0 (capable of 63.012 Gb/s with 16.0 GT/s PCIe x4 link)\n");
  ASSERT_EQ(seen.machine.pci_devices.size(), 2U);
  EXPECT_EQ(seen.machine.pci_devices[0].address, "0000:01:00.0");
  EXPECT_EQ(seen.machine.pci_devices[0].capable.generation, 4U);
  EXPECT_EQ(seen.machine.pci_devices[1].address, "0000:00:00.0");
  EXPECT_EQ(seen.machine.pci_devices[1].trained.generation, 3U);
  EXPECT_EQ(seen.machine.pci_devices[1].trained.width, 4U);
}

}  // namespace
}  // namespace berth::topology
