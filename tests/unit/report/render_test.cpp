// SPDX-License-Identifier: Apache-2.0
// Text and JSON of whole reports: golden files of real and made-up traces, and what must hold for
// both.
#include "report/render.hpp"

#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "berth/version.hpp"
#include "core/text.hpp"
#include "support/analysed_file.hpp"
#include "support/findings.hpp"
#include "support/golden.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using report::colour;
using report::document;
using report::trace_report;
using testing::HasSubstr;
using testing::Not;

// The version changes with every release; the golden files don't.
std::string without_version(std::string text) {
  const auto version = "\"berth_version\": \"" + std::string(version_text) + "\"";
  const auto at = text.find(version);
  return at == std::string::npos ? text
                                 : text.replace(at, version.size(), "\"berth_version\": \"X\"");
}

trace_report report_of(trace_builder& builder, const std::string& name) {
  trace_report shown;
  shown.file = name;
  auto events = builder.build();
  events.about.format = "made up for a test";
  const auto machine = round_machine();
  shown.diagnosis = diagnose::diagnose(events, &machine);
  shown.about = std::move(events.about);
  return shown;
}

// Several devices, unknown bytes and directions, addresses, notes and a cut: what the bundled
// traces don't have.
document unusual() {
  trace_builder made;
  made.api(trace::gpu_api::hip).gpu("AMD Instinct MI210").gpu("AMD Instinct MI210");
  for (int step = 0; step < 5; ++step) {
    const auto begin = step * 40ms;
    made.on(0, 1).h2d(begin, 5ms, 50 * mb).host_address(0x7000).called(begin, 5ms, "hipMemcpy");
    made.kernel(begin + 5ms, 3ms);
    made.d2h(begin + 10ms, 20ms, 50 * mb)
        .host_address(0x7000)
        .called(begin + 8ms, 22ms, "hipMemcpy");
    made.on(1, 1).h2d(begin, 4ms, std::nullopt, memory_kind::unknown).kernel(begin + 4ms, 2ms);
  }
  made.copy(199ms, 1ms, 8 * mb, direction::unknown, memory_kind::unknown, memory_kind::unknown);
  made.copy(198ms, 1ms, 8 * mb, direction::peer_to_peer, memory_kind::device, memory_kind::device);
  made.d2h(190ms, 1ms, 4, memory_kind::pinned);
  auto shown = report_of(made, "unusual \x1b[31m.json");
  shown.about.api_version = "6.2";
  shown.about.rank = 3;
  shown.about.notes = {"a note of the importer"};
  shown.cut = trace::cut{error(errc::input_truncated, "the file ends early", "x", "copy it again"),
                         1234, 56};
  document made_up;
  made_up.traces.push_back(std::move(shown));
  trace_report failed;
  failed.file = "missing.json";
  failed.failure = error(errc::file_unreadable, "No such file or directory", "missing.json");
  made_up.traces.push_back(std::move(failed));
  return made_up;
}

document empty_trace() {
  trace_builder made;
  return {{report_of(made, "empty.json")}};
}

class bundled : public testing::TestWithParam<const char*> {};

TEST_P(bundled, text_and_json_are_golden) {
  const std::string name = GetParam();
  const document shown{{analysed(bundled_traces() / (name + ".json.gz"))}};
  expect_golden(name + ".txt", report::to_text(shown, colour::off));
  expect_golden(name + ".json", without_version(report::to_json(shown)));
}

INSTANTIATE_TEST_SUITE_P(traces, bundled,
                         testing::Values("torch_pageable_inference", "torch_pinned_inference",
                                         "torch_overlapped", "torch_pingpong",
                                         "torch_many_small_copies", "torch_train_pinned_loader"),
                         [](const auto& one) { return std::string(one.param); });

TEST(render, unusual_reports_are_golden) {
  expect_golden("unusual.txt", report::to_text(unusual(), colour::off));
  expect_golden("unusual.json", without_version(report::to_json(unusual())));
}

TEST(render, the_report_of_an_empty_trace_is_golden) {
  expect_golden("empty.txt", report::to_text(empty_trace(), colour::off));
  expect_golden("empty.json", without_version(report::to_json(empty_trace())));
}

TEST(render, text_has_no_escapes_without_colour_and_the_same_words_with_it) {
  const auto plain = report::to_text(unusual(), colour::off);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  const auto coloured = report::to_text(unusual(), colour::on);
  EXPECT_THAT(coloured, HasSubstr("\x1b[1;31m"));
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), ""), plain);
}

TEST(render, text_keeps_its_width_whatever_the_names) {
  trace_builder made;
  made.range_of_operator(0ms, 500ms, std::string(400, 'o'));
  for (int step = 0; step < 5; ++step) {
    made.h2d(step * 10ms, 5ms, 50 * mb).called(step * 10ms, 5ms, "hipMemcpy");
  }
  made.gpu(std::string(300, 'g'));
  const document shown{{report_of(made, "/" + std::string(300, 'f'))}};
  std::istringstream lines(report::to_text(shown, colour::off));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(text::display_width(line), 100U) << line;
  }
}

TEST(render, foreign_names_never_reach_the_terminal_raw) {
  trace_builder made;
  made.gpu("\x1b[2Jgpu").range_of_operator(0ms, 500ms, "op\x1b]0;title\x07");
  for (int step = 0; step < 5; ++step) {
    made.h2d(step * 10ms, 5ms, 50 * mb).called(step * 10ms, 5ms, "hipMemcpy");
  }
  auto shown = report_of(made, "\x1b[31mfile");
  shown.about.notes = {"note\x1b[31m"};
  trace_report failed;
  failed.failure = error(errc::file_unreadable, "gone", "\x1b[31mfile");
  const auto text = report::to_text({{shown, failed}}, colour::off);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\\x1b[2Jgpu"));
}

// Every number stands under a name that says its unit, or is a count.
void expect_units(const json& value, const std::string& name) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      expect_units(member, key);
    }
  } else if (value.is_array()) {
    for (const auto& member : value) {
      expect_units(member, name);
    }
  } else if (value.is_number()) {
    static const std::set<std::string> pure{"schema_version",
                                            "index",
                                            "rank",
                                            "events",
                                            "devices",
                                            "kernels",
                                            "fills",
                                            "count",
                                            "copies",
                                            "value",
                                            "whole_events",
                                            "us",
                                            "GBps",
                                            "bytes",
                                            "count_without_bytes",
                                            "count_without_time",
                                            "copies_timed_by_calls",
                                            "copies_without_time"};
    const std::regex with_unit(".*_(us|bytes|ratio|GBps)");
    EXPECT_TRUE(pure.contains(name) || std::regex_match(name, with_unit)) << name;
  }
}

TEST(render, json_names_carry_units) {
  expect_units(json::parse(report::to_json(unusual())), "");
}

TEST(render, json_has_one_schema_and_version) {
  const auto shown = json::parse(report::to_json(unusual()));
  EXPECT_EQ(shown["schema"], "berth.analyze");
  EXPECT_EQ(shown["schema_version"], 1);
  EXPECT_EQ(shown["berth_version"], version_text);
  EXPECT_EQ(shown["traces"].size(), 2U);
}

TEST(render, json_of_an_unreadable_file_is_its_error_alone) {
  const auto failed = json::parse(report::to_json(unusual()))["traces"][1];
  EXPECT_EQ(failed.size(), 2U);
  EXPECT_EQ(failed["file"], "missing.json");
  EXPECT_EQ(failed["error"]["id"], "BTH-1101");
}

TEST(render, json_says_null_where_nothing_is_known) {
  const auto shown = json::parse(report::to_json(empty_trace()))["traces"][0];
  for (const auto* name : {"api", "api_version", "rank", "cut", "severity"}) {
    EXPECT_TRUE(shown[name].is_null()) << name;
  }
  EXPECT_TRUE(shown["totals"]["copy_to_kernel_ratio"].is_null());
  trace_builder made;
  made.h2d(0ms, 1ms, std::nullopt);
  const auto group = json::parse(report::to_json(
      {{report_of(made, "x")}}))["traces"][0]["totals"]["copies"]["HtoD (Pageable -> Device)"];
  EXPECT_TRUE(group["bytes"].is_null());
  EXPECT_TRUE(group["GBps"].is_null());
  EXPECT_EQ(group["count_without_bytes"], 1);
}

TEST(render, json_has_no_number_that_is_none) {
  auto shown = empty_trace();
  diagnose::finding odd{};
  odd.rule = "pageable-copies";
  odd.evidence = {{"odd", std::numeric_limits<double>::quiet_NaN(), diagnose::unit::count},
                  {"odd", std::numeric_limits<double>::infinity(), diagnose::unit::gb_per_s}};
  shown.traces[0].diagnosis.findings.push_back(odd);
  const auto text = report::to_json(shown);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_TRUE(json::parse(text)["traces"][0]["findings"][0]["evidence"][0]["value"].is_null());
}

TEST(render, json_survives_names_that_are_not_utf_8) {
  auto shown = empty_trace();
  shown.traces[0].file = "\xff\xfe.json";
  EXPECT_TRUE(json::accept(report::to_json(shown)));
}

TEST(render, copies_with_one_label_are_shown_together) {
  trace_builder made;
  made.copy(0ms, 1ms, mb, direction::host_to_device, memory_kind::pinned, memory_kind::device);
  made.copy(1ms, 2ms, mb, direction::host_to_device, memory_kind::pinned, memory_kind::unknown);
  made.copy(3ms, 1ms, {}, direction::unknown, memory_kind::pinned, memory_kind::device);
  made.copy(4ms, 1ms, mb, direction::unknown, memory_kind::unknown, memory_kind::unknown);
  const auto shown = report_of(made, "x");
  ASSERT_EQ(shown.diagnosis.totals.copies.size(), 4U);
  const auto groups = report::labelled(shown.diagnosis.totals);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].label, "HtoD (Pinned -> Device)");
  EXPECT_EQ(groups[0].group.count, 2U);
  EXPECT_EQ(groups[0].group.bytes, 2 * mb);
  EXPECT_EQ(groups[0].group.time_ns, (3ms / 1ns));
  EXPECT_EQ(groups[1].label, "Copy (direction unknown)");
  EXPECT_EQ(groups[1].group.without_bytes, 1U);
}

TEST(render, text_compares_much_copying_by_a_factor) {
  trace_builder made;
  made.kernel(0ms, 1ms).h2d(1ms, 40ms, 2000 * mb, memory_kind::pinned);
  const auto text = report::to_text({{report_of(made, "x")}}, colour::off);
  EXPECT_THAT(text, HasSubstr("Copy time is 40 times the kernel time"));
}

}  // namespace
}  // namespace berth::test
