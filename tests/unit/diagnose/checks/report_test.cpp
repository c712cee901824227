// SPDX-License-Identifier: Apache-2.0
// The report on a machine, as text and as JSON.
#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "report/doctor.hpp"
#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

report::doctor_report report_on(machine::survey seen) {
  report::doctor_report shown;
  shown.found = diagnose::check_machine(seen);
  shown.seen = std::move(seen);
  return shown;
}

machine::survey broken() {
  auto seen = instinct_node(2);
  seen.machine.gpus[1].bar = 256 * mib;
  seen.claims.push_back({"gpus[1].bar", "268435456 bytes", "lspci, line 12"});
  seen.problems.push_back({"/sys/x", "permission denied"});
  seen.sources = {"lspci (paste.txt)"};
  seen.lines = 40;
  seen.unread_lines = 1;
  seen.unread = {{"paste.txt, line 3", "what\x1b[31m is this"}};
  return seen;
}

TEST(DoctorReport, SaysTheVerdictFirstAndFitsATerminal) {
  const auto text = report::to_text(report_on(broken()), report::colour::off);
  EXPECT_THAT(text, StartsWith("VERDICT   1 fault"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nFAULT     GPU 1: the host can address 256 MiB"),
                    HasSubstr("gpus[1].bar: 256 MiB (lspci, line 12)"), HasSubstr("[large-bar]"),
                    HasSubstr("NOT READ  /sys/x: permission denied"),
                    HasSubstr("1 of 40 were not understood (--list-unread")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(DoctorReport, ListsWhatWasNotUnderstoodOnRequest) {
  auto shown = report_on(broken());
  shown.unread = report::unread_lines::listed;
  EXPECT_THAT(report::to_text(shown, report::colour::off),
              HasSubstr("paste.txt, line 3: what\\x1b[31m is this"));
  EXPECT_EQ(json::parse(report::to_json(shown))["not_understood"].size(), 1U);
}

TEST(DoctorReport, HasASchemaTheMachineAndASourceOfEachField) {
  const auto all = json::parse(report::to_json(report_on(broken())));
  EXPECT_EQ(all["schema"], "berth.doctor/1");
  EXPECT_EQ(all["verdict"], "fault");
  EXPECT_EQ(all["results"][0]["check"], "large-bar");
  EXPECT_EQ(all["results"][0]["evidence"][0]["source"], "lspci, line 12");
  EXPECT_EQ(all["results"][0]["page"], "docs/checks/large-bar.md");
  EXPECT_EQ(all["machine"]["gpus"][1]["bar_bytes"], 256 * mib);
  EXPECT_EQ(all["machine"]["gpus"][1]["hive"], json());
  EXPECT_EQ(all["machine"]["settings"]["iommu"], "passthrough");
  EXPECT_EQ(all["fields"][0]["field"], "gpus[1].bar");
  EXPECT_EQ(all["lines_not_understood"], 1);
  EXPECT_EQ(all["kind"], "captured");
}

TEST(DoctorReport, OfNothingIsShortAndValid) {
  const auto shown = report_on({});
  EXPECT_THAT(report::to_text(shown, report::colour::off),
              AllOf(StartsWith("VERDICT   No fault found; no GPU was seen."),
                    HasSubstr("nothing that describes a machine was recognised")));
  EXPECT_EQ(json::parse(report::to_json(shown))["machine"]["gpus"].size(), 0U);
}

TEST(DoctorReport, SurvivesNamesThatAreNoText) {
  auto seen = instinct_node(1);
  seen.machine.gpus[0].title = "\xff\x1b[2J";
  EXPECT_FALSE(json::parse(report::to_json(report_on(seen)), nullptr, false).is_discarded());
  EXPECT_THAT(report::to_text(report_on(seen), report::colour::off), Not(HasSubstr("\x1b")));
}

TEST(Comparison, NamesWhatDiffersAndNothingElse) {
  auto seen = broken();
  seen.claims.push_back({"settings.iommu", "passthrough", "/proc/cmdline"});
  auto other = seen;
  other.machine.gpus[1].bar = 64 * gib;
  other.claims[0].value = "68719476736 bytes";
  const auto both = report::compare(report_on(seen), report_on(other));
  std::vector<std::string> fields;
  for (const auto& one : both.differences) {
    fields.push_back(one.field);
  }
  EXPECT_THAT(fields, testing::ElementsAre("check large-bar", "gpus[1].bar"));
  EXPECT_THAT(report::to_text(both, report::colour::off), HasSubstr("268435456 bytes"));
  EXPECT_EQ(json::parse(report::to_json(both))["differences"].size(), 2U);
}

TEST(Comparison, OfTheSameSaysSo) {
  const auto both = report::compare(report_on(broken()), report_on(broken()));
  EXPECT_TRUE(both.differences.empty());
  EXPECT_THAT(report::to_text(both, report::colour::off), HasSubstr("No difference"));
}

TEST(AffinityReport, IsTextAndJson) {
  const auto all = diagnose::affinity_of(instinct_node(2));
  EXPECT_THAT(report::to_text(all, report::colour::off),
              AllOf(HasSubstr("GPU 1"), HasSubstr("8-15"), HasSubstr("srun")));
  EXPECT_EQ(json::parse(report::to_json(all))["gpus"][1]["numa_node"], 1);
}

}  // namespace
}  // namespace berth::test
