// SPDX-License-Identifier: Apache-2.0
// Pinned memory on the wrong NUMA node.
#include <algorithm>

#include "support/findings.hpp"
#include "support/recording_builder.hpp"
#include "trace/import/import.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Uploads of 50 MB that take 2 ms where 1 ms is expected.
struct uploads_from {
  std::int32_t node = 1;
  std::string fact = "coverage.device.0.numa_node";
  std::string device_node = "0";
  nanoseconds time = 2ms;
  trace::timing timed = trace::timing::device;
};

trace_builder uploads(const uploads_from& how) {
  trace_builder made;
  made.api(trace::gpu_api::hip).fact(how.fact, how.device_node);
  for (int step = 0; step < 8; ++step) {
    made.h2d(step * 10ms, how.time, 50 * mb, memory_kind::pinned).host_node(how.node);
    made.timed_by(how.timed).kernel(step * 10ms + 3ms, 7ms);
  }
  return made;
}

diagnosed diagnosed_uploads(const uploads_from& how) {
  auto made = uploads(how);
  return diagnose_on_round_machine(made);
}

TEST(remote_numa, what_is_lost_against_the_expected_rate) {
  const auto shown = diagnosed_uploads({});
  const auto* const found = shown.find("remote-numa");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(saving_ms(*found), 8);
  EXPECT_THAT(found->headline, HasSubstr("8 pinned copies cross between NUMA nodes"));
  EXPECT_THAT(found->headline, HasSubstr("node 1, the GPU to node 0"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("hipSetDevice"));
  // The cause is known: the general rule is silent.
  EXPECT_EQ(shown.find("slow-pinned-copies"), nullptr);
}

TEST(remote_numa, is_found_in_a_recording) {
  constexpr std::uint64_t host = 0x1000'0000;
  constexpr std::uint64_t device = 0x2000'0000;
  constexpr std::uint64_t bytes = 50 * mb;
  recording_builder made;
  made.coverage({{"device_times", "cupti"}, {"device.0.numa_node", "0"}});
  made.event("hipHostMalloc", 0, 10, {host, bytes, 0}).event("hipMalloc", 10, 10, {device, bytes});
  for (int step = 0; step < 8; ++step) {
    const auto at = 1'000'000 + step * 10'000'000;
    made.event("hipMemcpy", at, 2'000'000, {device, host, bytes, 1}, {{"host_node", 1}});
    made.event("gpu_copy", at + 1000, 1'990'000, {bytes, 1, 0, 0, 0, 7});
  }
  const auto file = made.end().file();
  auto read = trace::try_import(
      trace::byte_source::from_memory("test.berth", {file.begin(), file.end()}).value());
  ASSERT_TRUE(read);
  const auto machine = round_machine();
  const auto result = diagnose::diagnose(read->events, &machine);
  EXPECT_TRUE(
      std::any_of(result.findings.begin(), result.findings.end(),
                  [](const diagnose::finding& found) { return found.rule == "remote-numa"; }));
}

TEST(remote_numa, the_own_node_is_none_and_slow_for_another_reason) {
  const auto shown = diagnosed_uploads({.node = 0});
  EXPECT_EQ(shown.find("remote-numa"), nullptr);
  EXPECT_NE(shown.find("slow-pinned-copies"), nullptr);
}

TEST(remote_numa, remote_memory_at_full_rate_loses_nothing) {
  EXPECT_EQ(diagnosed_uploads({.time = 1ms}).find("remote-numa"), nullptr);
}

TEST(remote_numa, unknown_nodes_say_nothing) {
  EXPECT_EQ(diagnosed_uploads({.node = -1}).find("remote-numa"), nullptr);
  EXPECT_EQ(diagnosed_uploads({.device_node = "-1"}).find("remote-numa"), nullptr);
  EXPECT_EQ(diagnosed_uploads({.device_node = "none"}).find("remote-numa"), nullptr);
  EXPECT_EQ(diagnosed_uploads({.fact = "coverage.device.1.numa_node"}).find("remote-numa"),
            nullptr);
}

TEST(remote_numa, without_an_expectation_there_is_no_saving) {
  auto made = uploads({});
  const auto shown = diagnose_on_unknown_machine(made);
  const auto* const found = shown.find("remote-numa");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->saving.has_value());
}

TEST(remote_numa, copies_of_unknown_time_are_told_of_all_the_same) {
  const auto shown = diagnosed_uploads({.time = 0ms, .timed = trace::timing::unknown});
  const auto* const found = shown.find("remote-numa");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->saving.has_value());
}

}  // namespace
}  // namespace berth::test
