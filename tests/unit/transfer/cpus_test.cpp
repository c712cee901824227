// SPDX-License-Identifier: Apache-2.0
// Which CPUs threads may use, from the texts of /sys and the cgroup, and on this machine.
#include "transfer/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::transfer {
namespace {

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
