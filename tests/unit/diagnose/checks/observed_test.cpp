// SPDX-License-Identifier: Apache-2.0
// What the checks conclude of rates and of copies that others have seen.
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;
using machine::traffic;
using testing::HasSubstr;
using testing::IsEmpty;

machine::measured_rate rate(direction way, std::optional<std::uint32_t> node, double gb_per_s) {
  machine::measured_rate one;
  one.way = way;
  one.host = memory_kind::pinned;
  one.gpu = 0;
  one.node = node;
  one.gb_per_s = gb_per_s;
  one.source = "a tool";
  return one;
}

machine::logged_copies copies(engine by, std::string name, direction way, std::uint64_t count) {
  machine::logged_copies some;
  some.by = by;
  some.engine_name = std::move(name);
  some.way = way;
  some.count = count;
  some.source = "a log";
  return some;
}

TEST(MeasuredRates, OfARemoteNodeThatAreLowerAreALimit) {
  auto seen = bare_paste();
  seen.rates = {rate(direction::host_to_device, 0, 12.0), rate(direction::host_to_device, 1, 4.0)};
  const auto said = only("measured-rates", seen);
  EXPECT_EQ(said.verdict, verdict::limit);
  EXPECT_THAT(said.headline, HasSubstr("3.0 times less"));
  EXPECT_THAT(said.fix.front(), HasSubstr("--cpunodebind=0"));
}

TEST(MeasuredRates, OfBothNodesThatAreEqualShowThatTheLinkLimits) {
  auto seen = bare_paste();
  seen.rates = {rate(direction::host_to_device, 0, 28.2), rate(direction::host_to_device, 1, 27.9)};
  const auto said = only("measured-rates", seen);
  EXPECT_EQ(said.verdict, verdict::normal);
  EXPECT_THAT(said.headline, HasSubstr("costs large single copies nothing"));
  EXPECT_THAT(said.headline, HasSubstr("small copies"));
}

// Two GPUs, or two kinds of memory, on different nodes are no comparison of nodes.
TEST(MeasuredRates, OfDifferentThingsAreNotCompared) {
  auto seen = bare_paste();
  auto other = rate(direction::host_to_device, 1, 4.0);
  other.gpu = 1;
  auto pageable = rate(direction::host_to_device, 1, 3.0);
  pageable.host = memory_kind::pageable;
  seen.rates = {rate(direction::host_to_device, 0, 12.0), other, pageable,
                rate(direction::device_to_host, 1, 5.0)};
  EXPECT_THAT(said_by("measured-rates", seen), IsEmpty());
}

TEST(MeasuredRates, NearAPromisedPeakAreNormalAndFarBelowItAreNot) {
  auto seen = bare_paste();
  seen.rates = {rate(direction::host_to_device, {}, 70)};
  seen.rates[0].promised_gb_per_s = 92;
  EXPECT_EQ(only("measured-rates", seen).verdict, verdict::normal);
  seen.rates[0].gb_per_s = 20;
  EXPECT_EQ(only("measured-rates", seen).verdict, verdict::unknown);
}

TEST(MeasuredRates, AreComparedWithTheModelOfTheGpu) {
  auto seen = bare_paste();
  seen.machine.gpus[0].model = "mi210";
  seen.rates = {rate(direction::host_to_device, {}, 6.0)};
  EXPECT_EQ(only("measured-rates", seen).verdict, verdict::limit);
  seen.rates[0].gb_per_s = 27.0;
  EXPECT_EQ(only("measured-rates", seen).verdict, verdict::normal);
  seen.machine.gpus[0].model.clear();
  EXPECT_THAT(said_by("measured-rates", seen), IsEmpty());
}

TEST(LoggedCopies, ThatFailedAreAFault) {
  auto seen = bare_paste(0);
  seen.copies = {copies(engine::dma, "4", direction::host_to_device, 2)};
  seen.copies[0].failure = 4097;
  const auto said = only("logged-copies", seen);
  EXPECT_EQ(said.verdict, verdict::fault);
  EXPECT_THAT(said.headline, HasSubstr("copy engine 4"));
}

TEST(LoggedCopies, OfBothDirectionsOnOneEngineAreALimit) {
  auto seen = bare_paste(0);
  seen.copies = {copies(engine::dma, "2", direction::host_to_device, 3),
                 copies(engine::dma, "2", direction::device_to_host, 3)};
  EXPECT_EQ(only("logged-copies", seen).verdict, verdict::limit);
  seen.copies[1].engine_name = "1";
  EXPECT_EQ(only("logged-copies", seen).verdict, verdict::normal);
}

TEST(LoggedCopies, ByKernelsAreNamed) {
  auto seen = bare_paste(0);
  seen.copies = {copies(engine::kernel, "", direction::unknown, 7)};
  EXPECT_THAT(only("logged-copies", seen).headline, HasSubstr("7 copies of unknown direction by a "
                                                              "kernel"));
}

}  // namespace
}  // namespace berth::test
