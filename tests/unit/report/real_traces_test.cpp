// SPDX-License-Identifier: Apache-2.0
// Traces of real programs: totals against figures that were computed by other means, and what must
// be concluded of each.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/render.hpp"
#include "support/analysed_file.hpp"
#include "support/shared_cases.hpp"

namespace berth::test {
namespace {

using diagnose::severity;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json totals_of(const report::trace_report& shown) {
  return json::parse(report::to_json({{shown}}))["traces"][0]["totals"];
}

// Within 0.1 %, or what the rounding of the last digit allows.
void expect_close(const json& actual, const json& expected, double last_digit,
                  const std::string& what) {
  const auto wanted = expected.get<double>();
  EXPECT_NEAR(actual.get<double>(), wanted, std::max(0.001 * std::abs(wanted), 0.5001 * last_digit))
      << what;
}

void expect_totals(const json& actual, const json& expected, const std::string& file) {
  EXPECT_EQ(actual["kernels"], expected["kernels"]) << file;
  for (const auto* name :
       {"kernel_busy_us", "gpu_span_us", "copy_busy_us", "copy_overlapped_with_kernels_us"}) {
    expect_close(actual[name], expected[name], 0.1, file + ": " + name);
  }
  expect_close(actual["copy_to_kernel_ratio"], expected["copy_to_kernel_ratio"], 0.001, file);
  EXPECT_EQ(actual["copies"].size(), expected["copies"].size()) << file;
  for (const auto& [label, wanted] : expected["copies"].items()) {
    ASSERT_TRUE(actual["copies"].contains(label)) << file << ": " << label;
    const auto& group = actual["copies"][label];
    EXPECT_EQ(group["count"], wanted["count"]) << file << ": " << label;
    EXPECT_EQ(group["bytes"], wanted["bytes"]) << file << ": " << label;
    expect_close(group["us"], wanted["us"], 0.1, file + ": " + label);
    expect_close(group["GBps"], wanted["GBps"], 0.01, file + ": " + label);
  }
}

void expect_totals_of_folder(const std::filesystem::path& folder) {
  std::ifstream file(folder / "expected.json");
  const auto expected = json::parse(file);
  std::size_t traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (entry.path().extension() == ".gz") {
      ++traces;
      ASSERT_TRUE(expected.contains(name)) << name;
      expect_totals(totals_of(analysed(entry.path())), expected[name], name);
    }
  }
  EXPECT_EQ(traces, expected.size());
}

TEST(real_traces, totals_are_the_expected_ones) {
  expect_totals_of_folder(bundled_traces());
}

TEST(real_traces, totals_of_shared_traces_are_the_expected_ones) {
  const auto folder = shared_case("traces");
  BERTH_REQUIRE_SHARED(folder / "expected.json");
  expect_totals_of_folder(folder);
}

diagnose::diagnosis diagnosis_of(const std::string& name) {
  return analysed(bundled_traces() / ("torch_" + name + ".json.gz")).diagnosis;
}

std::vector<std::string> rules_of(const diagnose::diagnosis& shown) {
  std::vector<std::string> rules;
  for (const auto& one : shown.findings) {
    rules.emplace_back(one.rule);
  }
  return rules;
}

const diagnose::finding& finding_of(const diagnose::diagnosis& shown, std::string_view rule) {
  const auto found = std::find_if(shown.findings.begin(), shown.findings.end(),
                                  [&](const auto& one) { return one.rule == rule; });
  if (found == shown.findings.end()) {
    throw std::runtime_error("no finding of " + std::string(rule));
  }
  return *found;
}

double ms(std::int64_t time_ns) {
  return static_cast<double>(time_ns) / 1e6;
}

TEST(real_traces, pageable_inference_is_symptom_1_worth_about_100_ms) {
  const auto shown = diagnosis_of("pageable_inference");
  EXPECT_THAT(rules_of(shown), ElementsAre("pageable-copies"));
  const auto& found = finding_of(shown, "pageable-copies");
  EXPECT_EQ(found.severity, severity::fault);
  ASSERT_TRUE(found.saving.has_value());
  const auto saved = ms(found.saving->time_ns);
  EXPECT_GE(saved, 95);
  EXPECT_LE(saved, 110);
  EXPECT_NEAR(ms(shown.totals.span_ns), 250, 1);
  const auto falls_by = saved / ms(shown.totals.copy_busy_ns);
  EXPECT_GE(falls_by, 0.86);
  EXPECT_LE(falls_by, 0.90);
  EXPECT_EQ(found.saving->known, provenance::modelled);
  EXPECT_THAT(found.saving->basis, HasSubstr("nominal"));
  EXPECT_EQ(shown.saving_ns, found.saving->time_ns);
}

TEST(real_traces, pingpong_is_symptoms_1_and_3_with_fresh_pages) {
  const auto shown = diagnosis_of("pingpong");
  EXPECT_THAT(rules_of(shown),
              testing::UnorderedElementsAre("pageable-copies", "ping-pong", "fresh-pages"));
  EXPECT_EQ(finding_of(shown, "pageable-copies").severity, severity::fault);
  const auto& turns = finding_of(shown, "ping-pong");
  EXPECT_THAT(turns.headline, HasSubstr("30 round trips move 7.50 GiB"));
  EXPECT_THAT(turns.headline, HasSubstr("the trace has no addresses"));
  EXPECT_THAT(finding_of(shown, "fresh-pages").headline, HasSubstr("1.45 GB/s"));
  EXPECT_THAT(finding_of(shown, "fresh-pages").headline, HasSubstr("probably fresh"));
  EXPECT_LE(shown.saving_ns, shown.totals.copy_busy_ns);
}

TEST(real_traces, many_small_copies_are_to_be_batched_and_not_pinned) {
  const auto shown = diagnosis_of("many_small_copies");
  EXPECT_THAT(rules_of(shown), ElementsAre("tiny-copies"));
  const auto& found = finding_of(shown, "tiny-copies");
  EXPECT_EQ(found.severity, severity::fault);
  EXPECT_THAT(found.headline, HasSubstr("2400 copies of 4 KiB"));
  EXPECT_THAT(found.headline, HasSubstr("6 batched copies"));
  EXPECT_THAT(found.fix.back(), HasSubstr("Pinning is not the cure"));
  EXPECT_GT(ms(found.saving->time_ns), 60);
  EXPECT_LT(ms(found.saving->time_ns), ms(shown.totals.span_ns));
}

TEST(real_traces, pinned_inference_has_at_most_its_copies_to_hide) {
  const auto shown = diagnosis_of("pinned_inference");
  EXPECT_THAT(rules_of(shown), ElementsAre("no-overlap"));
  const auto& found = finding_of(shown, "no-overlap");
  EXPECT_EQ(found.severity, severity::advice);
  EXPECT_THAT(found.headline, HasSubstr("at the link's rate (55.3 GB/s) but not overlapped"));
  EXPECT_EQ(found.saving->bound, diagnose::bound::at_most);
  EXPECT_LE(ms(found.saving->time_ns), 14.6);
  EXPECT_GE(ms(found.saving->time_ns), 12);
}

TEST(real_traces, overlapped_has_nothing_to_gain) {
  const auto shown = diagnosis_of("overlapped");
  EXPECT_THAT(shown.findings, IsEmpty());
  EXPECT_EQ(shown.verdict,
            "Copies are pinned and at the link's rate, and run beside kernels: nothing to gain.");
  EXPECT_EQ(shown.saving_ns, 0);
}

TEST(real_traces, train_pinned_loader_has_no_fault) {
  const auto shown = diagnosis_of("train_pinned_loader");
  EXPECT_NE(shown.worst, severity::fault);
  EXPECT_THAT(shown.findings, IsEmpty());
  EXPECT_THAT(shown.verdict, HasSubstr("Copies are pinned, and take 2.6 % of the span"));
  EXPECT_THAT(shown.verdict, HasSubstr("idles 74 % of the span, but not in copies"));
}

TEST(real_traces, mi250_case_takes_bytes_from_the_calls_and_blames_no_link) {
  const auto path = shared_case("cases/i01_hta_mi250_kineto_trace.json");
  BERTH_REQUIRE_SHARED(path);
  const auto shown = analysed(path);
  EXPECT_EQ(shown.about.api, trace::gpu_api::hip);
  ASSERT_EQ(shown.diagnosis.totals.copies.size(), 1U);
  const auto& group = shown.diagnosis.totals.copies[0];
  EXPECT_EQ(group.direction, direction::host_to_device);
  EXPECT_EQ(group.source, memory_kind::unknown);
  EXPECT_EQ(group.count, 2U);
  EXPECT_EQ(group.bytes, 5120U);
  EXPECT_EQ(group.without_bytes, 0U);
  EXPECT_THAT(shown.diagnosis.findings, IsEmpty());
  EXPECT_THAT(report::to_text({{shown}}, report::colour::off),
              HasSubstr("shows the fixed cost of a copy, not the link"));
}

TEST(real_traces, alexnet_case_uploads_once_and_that_is_worth_little) {
  const auto path = shared_case("cases/i02_hta_alexnet_pageable_trace.json");
  BERTH_REQUIRE_SHARED(path);
  const auto shown = analysed(path).diagnosis;
  EXPECT_THAT(rules_of(shown), ElementsAre("one-off-copies"));
  EXPECT_EQ(shown.worst, severity::note);
  ASSERT_EQ(shown.totals.copies.size(), 1U);
  EXPECT_EQ(shown.totals.copies[0].count, 16U);
  EXPECT_EQ(shown.totals.copies[0].source, memory_kind::pageable);
  EXPECT_THAT(finding_of(shown, "one-off-copies").headline, HasSubstr("worth little"));
}

}  // namespace
}  // namespace berth::test
