// SPDX-License-Identifier: Apache-2.0
// Two runs are different where they differ by more than they repeat within; and what was written
// can be read.
#include "bandwidth/compare.hpp"

#include <gtest/gtest.h>

#include "machine/bandwidth_reader.hpp"

namespace berth::bandwidth {
namespace {

using machine::bandwidth_results;

constexpr machine::path up{direction::host_to_device, memory_kind::pinned, engine::dma};

// One figure of 64 MiB whose times spread by `spread` to both sides.
bandwidth_results run_with(double gb_per_s, double spread = 0.005) {
  bandwidth_results made;
  made.devices = {{0, "GPU", ""}};
  machine::bandwidth_figure one{.where = up, .bytes = 64 * mib};
  const double ns = static_cast<double>(one.bytes) / gb_per_s;
  one.ns = statistics::summarise(std::vector<double>{ns * (1 - spread), ns, ns * (1 + spread)});
  made.figures = {one};
  return made;
}

std::size_t changes(const bandwidth_results& now, const bandwidth_results& before) {
  return compare(now, before, "old").value().changes.size();
}

TEST(BandwidthCompare, TellsAChangeFromNoise) {
  EXPECT_EQ(changes(run_with(50), run_with(55)), 1U);
  EXPECT_EQ(changes(run_with(54), run_with(55)), 0U) << "two percent are no change";
  EXPECT_EQ(changes(run_with(50, 0.15), run_with(55)), 0U) << "within what it repeats";
  const auto faster = compare(run_with(55), run_with(50), "old").value();
  ASSERT_EQ(faster.changes.size(), 1U);
  EXPECT_FALSE(faster.changes.front().is_slower());
  EXPECT_EQ(faster.with, "old");
}

TEST(BandwidthCompare, TakesWhatBothHave) {
  auto now = run_with(50);
  now.figures.front().bytes = mib;
  const auto none = compare(now, run_with(55), "old").value();
  EXPECT_EQ(none.compared, 0U);
  auto absent = run_with(55);
  absent.figures.front().ns.reset();
  EXPECT_EQ(compare(run_with(50), absent, "old").value().compared, 0U);
}

TEST(BandwidthCompare, RefusesOtherGpus) {
  auto other = run_with(55);
  other.devices.front().name = "another";
  EXPECT_EQ(compare(run_with(55), other, "old").error().code(), errc::usage);
  other.devices.clear();
  EXPECT_FALSE(compare(run_with(55), other, "old"));
}

errc fault_of(std::string_view text) {
  const auto read = machine::try_parse_bandwidth(text, "old.json");
  return read ? errc{} : read.error().code();
}

std::string with_figure(std::string_view figure) {
  return R"({"schema": "berth.bandwidth/1", "runtime": "cuda", "devices": [], "figures": [)" +
         std::string(figure) + "]}";
}

constexpr std::string_view good =
    R"({"device": 0, "direction": "host_to_device", "host_memory": "pinned", "engine": "dma",
        "traits": "bidirectional", "bytes": 4096, "gb_per_s": 1, "median_ns": 4096, "p5_ns": 4000,
        "p95_ns": 5000, "samples": 9, "clock": "device events"})";

TEST(BandwidthReader, ReadsWhatWasWritten) {
  const auto read = machine::try_parse_bandwidth(with_figure(good), "old.json");
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->figures.size(), 1U);
  const auto& one = read->figures.front();
  EXPECT_EQ(one.where.way, direction::host_to_device);
  EXPECT_TRUE(one.where.traits.has(machine::trait::bidirectional));
  EXPECT_DOUBLE_EQ(one.gb_per_s(), 1);
  const auto without = machine::try_parse_bandwidth(
      with_figure(R"({"device": 1, "direction": "device_to_host", "host_memory": "pageable",
                      "engine": "dma", "traits": "", "bytes": 1, "not_measured": "no memory"})"),
      "old.json");
  ASSERT_TRUE(without) << without.error().to_string();
  EXPECT_EQ(without->figures.front().why_not, "no memory");
  EXPECT_FALSE(without->figures.front().ns);
}

std::string replaced(std::string_view what, std::string_view by) {
  std::string text(good);
  text.replace(text.find(what), what.size(), by);
  return with_figure(text);
}

TEST(BandwidthReader, RefusesWhatIsNone) {
  EXPECT_EQ(fault_of(""), errc::input_empty);
  EXPECT_EQ(fault_of("[1, 2"), errc::input_malformed);
  EXPECT_EQ(fault_of("{}"), errc::input_malformed);
  EXPECT_EQ(fault_of(replaced("host_to_device", "sideways")), errc::input_malformed);
  EXPECT_EQ(fault_of(replaced("bidirectional", "two_way")), errc::input_malformed);
  EXPECT_EQ(fault_of(replaced("\"bytes\": 4096", "\"bytes\": 0")), errc::input_out_of_range);
  EXPECT_EQ(fault_of(replaced("\"median_ns\": 4096", "\"median_ns\": -1")),
            errc::input_out_of_range);
  EXPECT_EQ(fault_of(replaced("\"p5_ns\": 4000", "\"p5_ns\": 6000")), errc::input_out_of_range);
  EXPECT_EQ(fault_of(replaced("\"median_ns\": 4096, ", "")), errc::input_malformed);
}

}  // namespace
}  // namespace berth::bandwidth
