// SPDX-License-Identifier: Apache-2.0
// All checks together: their order, and the sum.
#include <algorithm>
#include <set>

#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using testing::HasSubstr;

TEST(Checkup, SaysTheWorstFirst) {
  auto seen = instinct_node(4);
  seen.machine.gpus[3].bar = 256 * mib;
  seen.machine.set.numa_balancing = machine::setting_state::on;
  const auto all = diagnose::check_machine(seen);
  EXPECT_EQ(all.worst, verdict::fault);
  EXPECT_EQ(all.results.front().check, "large-bar");
  EXPECT_TRUE(std::ranges::is_sorted(all.results, std::ranges::greater{},
                                     &diagnose::check_result::verdict));
  EXPECT_THAT(all.headline, HasSubstr("1 fault, 1 limit"));
}

TEST(Checkup, OfAMachineWithoutGpuFindsNoFault) {
  const auto all = diagnose::check_machine({});
  EXPECT_EQ(all.worst, verdict::normal);
  EXPECT_EQ(all.headline, "No fault found; no GPU was seen");
}

TEST(Checkup, OfNonsenseIsNoBillOfHealth) {
  machine::survey seen;
  seen.kind = machine::survey_kind::pasted;
  const auto all = diagnose::check_machine(seen);
  EXPECT_EQ(all.worst, verdict::unknown);
  EXPECT_EQ(all.headline, "Nothing in the input describes a machine");
}

TEST(Checkup, OfAPasteThatTellsLittleFindsNoFault) {
  const auto all = diagnose::check_machine(bare_paste(8));
  EXPECT_EQ(all.worst, verdict::unknown);
}

TEST(Checkup, NamesOnlyChecksThatThereAre) {
  std::set<std::string_view> ids;
  for (const auto& one : diagnose::checks()) {
    EXPECT_TRUE(ids.insert(one.id).second) << one.id;
    EXPECT_EQ(diagnose::find_check(one.id)->id, one.id);
  }
  EXPECT_EQ(diagnose::find_check("no-such-check"), nullptr);
}

TEST(Checkup, GivesEachFaultAndLimitAWayToConfirmIt) {
  auto seen = pcie_node(4);
  seen.machine.gpus[0].bar = 256 * mib;
  seen.machine.gpus[1].accessible = machine::setting_state::off;
  seen.machine.gpus[2].numa_node = 0;
  seen.machine.gpus[0].numa_node = 1;
  seen.machine.gpus[3].pci_path[0].trained = pcie(4, 1);
  seen.machine.links.pop_back();
  auto& set = seen.machine.set;
  set.iommu = machine::iommu_mode::translated;
  set.numa_balancing = machine::setting_state::on;
  set.transparent_huge_pages = "never";
  set.cpu_governor = "powersave";
  set.memory_limit = gib;
  set_variable(seen, "HSA_ENABLE_SDMA", "0");
  set_variable(seen, "HSA_XNACK", "1");
  std::set<std::string_view> bad;
  for (const auto& one : diagnose::check_machine(seen).results) {
    if (one.verdict >= verdict::limit) {
      bad.insert(one.check);
      EXPECT_FALSE(one.confirm.empty()) << one.check;
      EXPECT_FALSE(one.fix.empty()) << one.check;
      EXPECT_FALSE(one.headline.empty()) << one.check;
      EXPECT_FALSE(one.headline.ends_with('.')) << one.check;
    }
  }
  EXPECT_GE(bad.size(), 11U);
}

}  // namespace
}  // namespace berth::test
