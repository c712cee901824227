// SPDX-License-Identifier: Apache-2.0
// Memory where a GPU can reach it, and where it cannot.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using testing::HasSubstr;
using testing::IsEmpty;

machine::survey with_bars_at(std::uint64_t first, std::uint64_t second,
                             const std::string& isa = "gfx908") {
  auto seen = instinct_node(2, isa);
  seen.machine.gpus[0].bar_address = first;
  seen.machine.gpus[1].bar_address = second;
  return seen;
}

TEST(AddressReach, OfAPeerAboveTheGpusBitsIsAFault) {
  const auto said = only("address-reach", with_bars_at(1ULL << 40U, 1ULL << 44U));
  EXPECT_EQ(said.verdict, verdict::fault);
  EXPECT_THAT(said.headline, HasSubstr("GPU 1's memory is at 0x100000000000, and GPU 0 reaches "
                                       "addresses of 44 bits"));
}

TEST(AddressReach, CountsTheEndOfThePeersMemory) {
  EXPECT_EQ(only("address-reach", with_bars_at(1ULL << 40U, (1ULL << 44U) - 32 * gib)).verdict,
            verdict::fault);
  EXPECT_THAT(said_by("address-reach", with_bars_at(1ULL << 40U, (1ULL << 44U) - 64 * gib)),
              IsEmpty());
}

// Its own memory a GPU reaches without the link.
TEST(AddressReach, OfTheGpuItselfDoesNotMatter) {
  auto seen = with_bars_at(1ULL << 44U, 1ULL << 44U);
  seen.machine.gpus.resize(1);
  EXPECT_THAT(said_by("address-reach", seen), IsEmpty());
}

TEST(AddressReach, IsThatOfTheDeviceWhereItTells) {
  auto seen = with_bars_at(1ULL << 40U, 1ULL << 45U, "gfx90a");
  EXPECT_THAT(said_by("address-reach", seen), IsEmpty());
  seen.machine.gpus[0].dma_bits = 44;
  EXPECT_EQ(only("address-reach", seen).verdict, verdict::fault);
}

TEST(AddressReach, OfHostMemoryIsALimitUnlessTheIommuTranslates) {
  auto seen = instinct_node(1, "gfx803");
  seen.machine.numa_nodes[0].memory = 2048 * gib;
  EXPECT_EQ(only("address-reach", seen).verdict, verdict::limit);
  seen.machine.set.iommu = machine::iommu_mode::translated;
  EXPECT_EQ(only("address-reach", seen).verdict, verdict::normal);
  seen.machine.set.iommu = machine::iommu_mode::passthrough;
  seen.machine.numa_nodes[0].memory = 512 * gib;
  EXPECT_EQ(only("address-reach", seen).verdict, verdict::normal);
}

TEST(AddressReach, OfAllBitsReachesAll) {
  auto seen = with_bars_at(1ULL << 50U, 1ULL << 51U, "gfx1");
  EXPECT_THAT(said_by("address-reach", seen), IsEmpty());
  seen.machine.gpus[0].dma_bits = 64;
  seen.machine.numa_nodes[0].memory = 512 * gib;
  EXPECT_EQ(only("address-reach", seen).verdict, verdict::normal);
}

}  // namespace
}  // namespace berth::test
