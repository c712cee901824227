// SPDX-License-Identifier: Apache-2.0
// Access to devices, GPUs that are hidden or renumbered, and sources that disagree.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::setting_state;
using testing::Contains;
using testing::HasSubstr;

TEST(DeviceAccess, IsNormalWhereAllMayBeOpened) {
  EXPECT_EQ(only("device-access", instinct_node()).verdict, verdict::normal);
}

TEST(DeviceAccess, IsAFaultAndTheContainerIsBlamedInOne) {
  auto seen = instinct_node(2);
  seen.machine.gpus[1].accessible = setting_state::off;
  auto result = only("device-access", seen);
  EXPECT_EQ(result.verdict, verdict::fault);
  EXPECT_THAT(result.headline, HasSubstr("GPU 1"));
  EXPECT_THAT(result.fix, Contains(HasSubstr("usermod")));
  seen.machine.set.container = setting_state::on;
  result = only("device-access", seen);
  EXPECT_THAT(result.fix, Contains(HasSubstr("--device /dev/kfd")));
}

TEST(DeviceAccess, IsUnknownInAPasteAndInAContainerWithoutAGpu) {
  EXPECT_EQ(only("device-access", bare_paste()).verdict, verdict::unknown);
  machine::survey seen;
  seen.machine.set.container = setting_state::on;
  EXPECT_EQ(only("device-access", seen).verdict, verdict::unknown);
  seen.machine.set.container = setting_state::off;
  EXPECT_TRUE(said_by("device-access", seen).empty());
}

TEST(VisibleDevices, SayThatGpusAreRenumbered) {
  auto seen = instinct_node();
  EXPECT_TRUE(said_by("visible-devices", seen).empty());
  set_variable(seen, "ROCR_VISIBLE_DEVICES", "2,3");
  const auto result = only("visible-devices", seen);
  EXPECT_EQ(result.verdict, verdict::normal);
  EXPECT_THAT(result.headline, HasSubstr("renumbers"));
}

TEST(VisibleDevices, ThatHideAllAreAFault) {
  auto seen = instinct_node();
  set_variable(seen, "HIP_VISIBLE_DEVICES", "-1");
  EXPECT_EQ(only("visible-devices", seen).verdict, verdict::fault);
}

TEST(VisibleDevices, ThatAreNotThereAreALimit) {
  auto seen = instinct_node(2);
  set_variable(seen, "HIP_VISIBLE_DEVICES", "4,5");
  EXPECT_EQ(only("visible-devices", seen).verdict, verdict::limit);
}

TEST(VisibleDevices, OfTheOtherVendorDoNotMatter) {
  auto seen = instinct_node();
  set_variable(seen, "CUDA_VISIBLE_DEVICES", "");
  EXPECT_TRUE(said_by("visible-devices", seen).empty());
}

TEST(VisibleDevices, FilteredTwiceAreALimit) {
  auto seen = instinct_node();
  set_variable(seen, "ROCR_VISIBLE_DEVICES", "2,3");
  set_variable(seen, "HIP_VISIBLE_DEVICES", "0");
  const auto results = said_by("visible-devices", seen);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results.front().verdict, verdict::limit);
  EXPECT_THAT(results.front().headline, HasSubstr("both"));
}

TEST(Contradictions, AreToldWithBothSides) {
  auto seen = instinct_node();
  EXPECT_TRUE(said_by("contradictory-input", seen).empty());
  seen.contradictions.push_back({"gpus[0].numa_node",
                                 {{"gpus[0].numa_node", "0", "rocm-smi, line 3"},
                                  {"gpus[0].numa_node", "1", "lspci, line 9"}}});
  const auto result = only("contradictory-input", seen);
  EXPECT_EQ(result.verdict, verdict::unknown);
  EXPECT_THAT(result.headline, HasSubstr("gpus[0].numa_node: 0 or 1; none is believed"));
  ASSERT_EQ(result.evidence.size(), 2U);
  EXPECT_EQ(result.evidence[1].source, "lspci, line 9");
}

TEST(Contradictions, OfSeveralMachinesAreToldTogether) {
  machine::survey seen;
  for (const auto* field : {"a", "b", "c", "d"}) {
    seen.contradictions.push_back({field, {{field, "0", "x"}, {field, "1", "y"}}});
  }
  const auto result = only("contradictory-input", seen);
  EXPECT_THAT(result.headline, HasSubstr("4 fields"));
  EXPECT_THAT(result.headline, HasSubstr("several machines"));
  EXPECT_EQ(result.evidence.size(), 8U);
}

}  // namespace
}  // namespace berth::test
