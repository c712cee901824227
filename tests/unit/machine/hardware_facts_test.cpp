// SPDX-License-Identifier: Apache-2.0
// What names and numbers of hardware mean.
#include "machine/hardware_facts.hpp"

#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace berth::machine {
namespace {

TEST(HardwareFacts, KnowWhichInstructionSetsCanRetryFaults) {
  EXPECT_EQ(xnack_ability_of("gfx90a"), xnack_ability::per_process);
  EXPECT_EQ(xnack_ability_of("gfx942"), xnack_ability::per_process);
  EXPECT_EQ(xnack_ability_of("gfx906"), xnack_ability::boot_parameter);
  EXPECT_EQ(xnack_ability_of("gfx1100"), xnack_ability::none);
  for (const char* const other : {"", "gfx9001", "gfx90a:xnack+", "gfx1010", "sm_90"}) {
    EXPECT_EQ(xnack_ability_of(other), xnack_ability::unknown) << other;
  }
}

TEST(HardwareFacts, KnowTheSpeedsOfPcie) {
  EXPECT_EQ(pcie_generation_of("2.5"), 1U);
  EXPECT_EQ(pcie_generation_of("16"), 4U);
  EXPECT_EQ(pcie_generation_of("64.0"), 6U);
  for (const char* const other : {"", "3", "16GT/s", "16.1"}) {
    EXPECT_EQ(pcie_generation_of(other), std::nullopt) << other;
  }
}

TEST(KfdFacts, ALinkOfCpusIsOneOfSocketsOnlyBetweenNodes) {
  const place node{place_kind::numa_node, 0};
  const place gpu{place_kind::gpu, 0};
  EXPECT_EQ(kfd::link_kind_of(2, node, gpu), link_kind::pcie);
  EXPECT_EQ(kfd::link_kind_of(11, gpu, gpu), link_kind::xgmi);
  EXPECT_EQ(kfd::link_kind_of(1, node, node), link_kind::socket);
  EXPECT_EQ(kfd::link_kind_of(5, node, gpu), link_kind::unknown);
  EXPECT_EQ(kfd::link_kind_of(0, node, node), link_kind::unknown);
}

TEST(KfdFacts, CountLinksOfXgmiByTheirRates) {
  const auto two = kfd::xgmi_links_of(50'000, 100'000, "gfx90a");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->count, 2U);
  EXPECT_EQ(two->gb_per_s, 100.0);
}

TEST(KfdFacts, TakeNoRateThatOlderKernelsGiveForEveryChip) {
  const auto one = kfd::xgmi_links_of(50'000, 50'000, "gfx942");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->count, 1U);
  EXPECT_EQ(one->gb_per_s, std::nullopt);
}

TEST(KfdFacts, BelieveNoRatesThatCannotBe) {
  for (const auto& [least, most] : {std::pair{0, 0}, std::pair{50'000, 25'000},
                                    std::pair{30'000, 50'000}, std::pair{1, 20'000'000}}) {
    EXPECT_FALSE(kfd::xgmi_links_of(static_cast<std::uint64_t>(least),
                                    static_cast<std::uint64_t>(most), "gfx90a"));
  }
}

TEST(PcieFacts, GiveTheRateOfALink) {
  EXPECT_NEAR(pcie_gb_per_s({.generation = 4, .width = 16}).value(), 31.5, 0.01);
  EXPECT_NEAR(pcie_gb_per_s({.generation = 1, .width = 1}).value(), 0.25, 0.01);
  EXPECT_EQ(pcie_gb_per_s({.generation = 7, .width = 16}), std::nullopt);
  EXPECT_EQ(pcie_gb_per_s({.generation = 0, .width = 16}), std::nullopt);
  EXPECT_EQ(pcie_gb_per_s({.generation = 4, .width = {}}), std::nullopt);
  EXPECT_EQ(pcie_speed_of(5), "32");
  EXPECT_EQ(pcie_speed_of(0), "");
}

TEST(PcieFacts, KnowTheWidthsThatThereAre) {
  for (const std::uint64_t width : {1U, 2U, 4U, 8U, 12U, 16U, 32U}) {
    EXPECT_TRUE(is_pcie_width(width)) << width;
  }
  for (const std::uint64_t width : {0U, 3U, 64U, 255U}) {
    EXPECT_FALSE(is_pcie_width(width)) << width;
  }
}

TEST(AddressFacts, TellHowFarAGpuReaches) {
  EXPECT_EQ(dma_bits_of("gfx803"), 40U);
  EXPECT_EQ(dma_bits_of("gfx908"), 44U);
  EXPECT_EQ(dma_bits_of("gfx90a"), 48U);
  EXPECT_EQ(dma_bits_of("gfx942"), 48U);
  EXPECT_EQ(dma_bits_of("gfx1100"), 44U);
  EXPECT_EQ(dma_bits_of("gfx1250"), std::nullopt);
  EXPECT_EQ(dma_bits_of("sm_90"), std::nullopt);
  EXPECT_EQ(dma_bits_of(""), std::nullopt);
}

}  // namespace
}  // namespace berth::machine
