// SPDX-License-Identifier: Apache-2.0
// Which CPUs threads may use, from the texts of /sys and the cgroup, and on this machine.
#include "transfer/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace berth::transfer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int> own_affinity() {
  std::vector<int> cpus;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) {
        cpus.push_back(static_cast<int>(cpu));
      }
    }
  }
  return cpus;
}

void expect_sound(const usable_cpus& found) {
  const auto allowed = own_affinity();
  ASSERT_FALSE(allowed.empty()) << "this test needs a machine of at most 1024 CPUs";
  EXPECT_FALSE(found.cpus.empty());
  EXPECT_TRUE(std::is_sorted(found.cpus.begin(), found.cpus.end()));
  EXPECT_TRUE(std::includes(allowed.begin(), allowed.end(), found.cpus.begin(), found.cpus.end()));
  EXPECT_GE(found.at_once, 1U);
  EXPECT_LE(found.at_once, found.cpus.size());
}

TEST(CpuList, ReadsNumbersAndRanges) {
  EXPECT_THAT(parse_cpu_list("0").value(), ElementsAre(0));
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11").value(), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5-5").value(), ElementsAre(5));
}

TEST(CpuList, ComesInOrderWithoutDoubles) {
  EXPECT_THAT(parse_cpu_list("4-6,0-2,5-7,1").value(), ElementsAre(0, 1, 2, 4, 5, 6, 7));
  EXPECT_THAT(parse_cpu_list("3,3,3").value(), ElementsAre(3));
}

TEST(CpuList, IgnoresBlanksAroundIt) {
  EXPECT_THAT(parse_cpu_list("0-1\n").value(), ElementsAre(0, 1));
  EXPECT_THAT(parse_cpu_list(" \t2,4 \n").value(), ElementsAre(2, 4));
}

TEST(CpuList, OfANodeWithoutCpusIsEmpty) {
  EXPECT_THAT(parse_cpu_list("").value(), IsEmpty());
  EXPECT_THAT(parse_cpu_list("\n").value(), IsEmpty());
}

TEST(CpuList, RefusesWhatIsNone) {
  for (const auto* const text :
       {"a", "0x1", "-1", "1-", "1-a", "3-1", "1--2", "1,,2", ",1", "1,b", "1 2", "0 - 3", "1-2-3",
        "+1", "1.5", "1;2", "99999999999999999999", "0-99999999999999999999", "-"}) {
    EXPECT_EQ(parse_cpu_list(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(CpuList, RefusesMoreCpusThanMachinesHave) {
  EXPECT_EQ(parse_cpu_list("0-2147483647"), std::nullopt);
  EXPECT_EQ(parse_cpu_list("2147483647"), std::nullopt);
}

RC_GTEST_PROP(CpuList, ReadsBackAnySet, ()) {
  const auto cpus = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 300));
  std::string text;
  for (auto next = cpus.begin(); next != cpus.end();) {
    const int first = *next;
    int last = first;
    while (++next != cpus.end() && *next == last + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  const auto read = parse_cpu_list(text + "\n");
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == std::vector<int>(cpus.begin(), cpus.end()));
}

RC_GTEST_PROP(CpuList, IsOrderedOrRefusedWhateverTheText, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123459,-, \n\ta")));
  const auto read = parse_cpu_list(text);
  if (read) {
    RC_ASSERT(std::adjacent_find(read->begin(), read->end(), std::greater_equal<>()) ==
              read->end());
  }
}

TEST(CpuQuota, RoundsUpToWholeCpus) {
  EXPECT_EQ(parse_cpu_quota("100000 100000"), 1U);
  EXPECT_EQ(parse_cpu_quota("100001 100000"), 2U);
  EXPECT_EQ(parse_cpu_quota("150000 100000"), 2U);
  EXPECT_EQ(parse_cpu_quota("200000 100000\n"), 2U);
  EXPECT_EQ(parse_cpu_quota("1600000 50000"), 32U);
}

TEST(CpuQuota, IsAtLeastOne) {
  EXPECT_EQ(parse_cpu_quota("1000 100000"), 1U);
  EXPECT_EQ(parse_cpu_quota("1 1000000"), 1U);
}

TEST(CpuQuota, OfMoreCpusThanAnIntCountsMicrosecondsIsNotSmall) {
  const auto many = parse_cpu_quota("2147483647 100000");  // the kernel allows up to 2^44
  EXPECT_TRUE(!many || *many >= 4096U) << *many;
  const auto more = parse_cpu_quota("4294967296 100000");
  EXPECT_TRUE(!more || *more >= 4096U) << *more;
}

TEST(CpuQuota, IsNothingWithoutALimit) {
  EXPECT_EQ(parse_cpu_quota("max 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota("max"), std::nullopt);
}

TEST(CpuQuota, IsNothingForAnythingElse) {
  for (const auto* const text :
       {"", "\n", "100000", "100000 ", "100000 0", "100000 max", "-1 100000", "100000 -100000",
        "100000 a", "a 100000", "1e5 100000", "100000 100000 100000", "100000,100000"}) {
    EXPECT_EQ(parse_cpu_quota(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(UsableCpus, AreOfThisProcess) {
  expect_sound(find_usable_cpus(std::nullopt));
  EXPECT_EQ(find_usable_cpus(std::nullopt).cpus, own_affinity());
}

TEST(UsableCpus, OfANodeAreSomeOfThem) {
  for (const int node : {0, 1, 2, 3}) {
    expect_sound(find_usable_cpus(node));
  }
}

TEST(UsableCpus, OfANodeThatIsNotThereAreAll) {
  for (const int node : {1'000'000, 2'147'483'647, -1, -2'147'483'647}) {
    const auto found = find_usable_cpus(node);
    expect_sound(found);
    EXPECT_EQ(found.cpus, own_affinity()) << node;
  }
}

TEST(UsableCpus, AreNoMoreThanTheCallersAffinity) {
  const auto allowed = own_affinity();
  ASSERT_FALSE(allowed.empty());
  // A thread of its own: its affinity ends with it.
  std::thread([last = allowed.back()] {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(last), &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0) {
      GTEST_SKIP() << "the system does not let a thread choose its CPUs";
    }
    for (const auto node : {std::optional<int>(), std::optional<int>(0), std::optional<int>(1)}) {
      const auto found = find_usable_cpus(node);
      EXPECT_THAT(found.cpus, ElementsAre(last));
      EXPECT_EQ(found.at_once, 1U);
    }
  }).join();
  EXPECT_EQ(own_affinity(), allowed);
}

}  // namespace
}  // namespace berth::transfer
