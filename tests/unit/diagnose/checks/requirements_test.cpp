// SPDX-License-Identifier: Apache-2.0
// What a site requires of its machines.
#include "diagnose/checks/requirements.hpp"

#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::fulfilment;
using testing::HasSubstr;

fulfilment of(std::string_view text, const machine::survey& seen) {
  const auto parsed = diagnose::parse_requirement(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? diagnose::examine(*parsed, seen, diagnose::check_machine(seen)).is
                : fulfilment::unknown;
}

TEST(Requirements, AreMetByAMachineThatHasThem) {
  const auto seen = instinct_node(4);
  for (const auto* const one :
       {"gpus=4", "gpus=2", "link=gen4x16", "link=gen3", "link=x8", "memory=64GiB", "iommu=normal",
        "numa-balancing=normal", " link = x16 "}) {
    EXPECT_EQ(of(one, seen), fulfilment::met) << one;
  }
}

TEST(Requirements, FailWhereThereIsLess) {
  auto seen = instinct_node(4);
  for (auto& device : seen.machine.gpus[2].pci_path) {
    device.trained.width = 8;
  }
  seen.machine.set.numa_balancing = machine::setting_state::on;
  for (const auto* const one : {"gpus=5", "link=gen5", "link=x16", "memory=65GiB",
                                "numa-balancing=normal", "link-below-capability=limit"}) {
    EXPECT_EQ(of(one, seen), fulfilment::failed) << one;
  }
  EXPECT_EQ(of("numa-balancing=limit", seen), fulfilment::met);
  const auto shown = diagnose::examine(*diagnose::parse_requirement("link=x16"), seen,
                                       diagnose::check_machine(seen));
  EXPECT_EQ(shown.found, "GPU 2 has a link of 16 GT/s x8");
}

// What the input does not tell is not fulfilled.
TEST(Requirements, AreUnknownWhereTheInputDoesNotTell) {
  const auto seen = bare_paste();
  EXPECT_EQ(of("link=x16", seen), fulfilment::unknown);
  EXPECT_EQ(of("memory=1GiB", seen), fulfilment::unknown);
  EXPECT_EQ(of("device-access=normal", seen), fulfilment::unknown);
  EXPECT_EQ(of("device-access=unknown", seen), fulfilment::met);
  EXPECT_EQ(of("link=x16", machine::survey{}), fulfilment::unknown);
}

TEST(Requirements, ThatAreNonsenseAreRefusedWithAHint) {
  for (const auto* const text :
       {"",           "link",       "=x16",        "link=",      "link=x0",
        "link=x3",    "link=gen9",  "link=gen4x",  "link=16",    "link=x16x16",
        "gpus=0",     "gpus=-1",    "gpus=many",   "gpus=99999", "memory=0",
        "memory=big", "speed=fast", "iommu=fault", "iommu=pt",   "iommu="}) {
    const auto parsed = diagnose::parse_requirement(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), errc::usage) << text;
    EXPECT_FALSE(parsed.error().hint().empty()) << text;
  }
}

TEST(Requirements, ComeFromAFileWithRemarks) {
  const auto all =
      diagnose::parse_requirements("# our nodes\n\ngpus=8  # all\nlink=gen4x16\r\n", "site");
  ASSERT_TRUE(all.has_value());
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[1].wanted, "gen4x16");
  const auto wrong = diagnose::parse_requirements("gpus=8\nlink=fast\n", "site");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().where(), HasSubstr("site, line 2"));
  EXPECT_FALSE(diagnose::parse_requirements("# nothing\n", "site").has_value());
}

}  // namespace
}  // namespace berth::test
