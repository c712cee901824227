// SPDX-License-Identifier: Apache-2.0
// `berth version`: what it shows of runtimes that are made up here, and of this machine's.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "berth/version.hpp"
#include "cmd_version.hpp"
#include "core/text.hpp"

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

runtime::device_info some_device() {
  runtime::device_info device;
  device.name = "AMD Instinct MI250X";
  device.architecture = "gfx90a";
  device.memory_total = 64 * gib;
  device.compute_units = 110;
  device.managed_memory = true;
  device.pageable_access = false;
  return device;
}

version_report some_report() {
  runtime::candidate hip;
  hip.kind = runtime::runtime_kind::hip;
  hip.taken = true;
  hip.library = "/opt/rocm/lib/libamdhip64.so.6";
  hip.version = runtime::runtime_version{6, 2, 41};
  hip.tried = {"libamdhip64.so.20 to libamdhip64.so.7: not found"};
  hip.info.emplace();
  hip.info->kind = runtime::runtime_kind::hip;
  hip.info->timing = provenance::measured;
  hip.info->capabilities.add(runtime::capability::managed);
  hip.info->missing_symbols = {"hipLaunchHostFunc"};
  hip.devices = {some_device()};
  hip.verdict = "works: 1 device";
  runtime::candidate cuda;
  cuda.kind = runtime::runtime_kind::cuda;
  cuda.verdict = "BTH-1201: no CUDA driver library on this machine; tried libcuda.so.1";
  return {.choice = "hip is the first that works", .runtimes = {hip, cuda}};
}

TEST(version, text_says_what_is_used_and_why_others_are_not) {
  const auto text = version_text_of(some_report(), report::colour::off);
  EXPECT_THAT(text, testing::StartsWith("berth " + std::string(berth::version_text) + "\n"));
  for (const auto* part :
       {"hip is the first that works", "/opt/rocm/lib/libamdhip64.so.6, HIP 6.2.41",
        "libamdhip64.so.20 to libamdhip64.so.7: not found", "AMD Instinct MI250X, gfx90a, 64 GiB",
        "has managed_memory", "has no pageable_access", "hipLaunchHostFunc",
        "BTH-1201: no CUDA driver library"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(version, text_stays_within_100_columns) {
  auto shown = some_report();
  shown.choice = std::string(40, 'x') + " " + std::string(300, 'y');
  shown.runtimes[0].library = "/" + std::string(250, 'l');
  shown.runtimes[0].tried.assign(5, std::string(30, 't') + " " + std::string(120, 'u'));
  shown.runtimes[0].devices[0].name = std::string(200, 'n');
  std::istringstream lines(version_text_of(shown, report::colour::off));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(text::display_width(line), 100U) << line;
  }
}

TEST(version, text_shows_no_control_characters_of_foreign_names) {
  auto shown = some_report();
  shown.runtimes[0].devices[0].name = "\x1b[31mred";
  EXPECT_THAT(version_text_of(shown, report::colour::off), Not(HasSubstr("\x1b")));
}

TEST(version, json_holds_all_with_types) {
  const auto parsed = nlohmann::json::parse(version_json_of(some_report()));
  EXPECT_EQ(parsed["berth_version"], berth::version_text);
  ASSERT_EQ(parsed["runtimes"].size(), 2U);
  const auto& hip = parsed["runtimes"][0];
  EXPECT_EQ(hip["name"], "hip");
  EXPECT_EQ(hip["taken"], true);
  EXPECT_EQ(hip["version"], "6.2.41");
  EXPECT_EQ(hip["times"], "measured");
  EXPECT_EQ(hip["capabilities"]["managed"], true);
  EXPECT_EQ(hip["capabilities"]["kernels"], false);
  EXPECT_EQ(hip["devices"][0]["memory_bytes"], 64 * gib);
  EXPECT_EQ(hip["devices"][0]["pageable_access"], false);
  EXPECT_TRUE(hip["devices"][0]["numa_node"].is_null()) << "not told";
  const auto& cuda = parsed["runtimes"][1];
  EXPECT_EQ(cuda["taken"], false);
  EXPECT_TRUE(cuda["library"].is_null());
  EXPECT_TRUE(cuda["devices"].empty());
}

TEST(version, json_survives_names_that_are_no_utf_8) {
  auto shown = some_report();
  shown.runtimes[0].devices[0].name = "bad \xff name";
  EXPECT_TRUE(nlohmann::json::accept(version_json_of(shown)));
}

class version_of_this_machine : public testing::Test {
protected:
  void TearDown() override { unsetenv("BERTH_RUNTIME"); }
};

TEST_F(version_of_this_machine, has_every_runtime_once) {
  setenv("BERTH_RUNTIME", "sim:mi250x", 1);
  const auto shown = survey_version();
  ASSERT_TRUE(shown) << shown.error().to_string();
  EXPECT_EQ(shown->choice, "BERTH_RUNTIME asks for sim");
  ASSERT_EQ(shown->runtimes.size(), 3U);
  for (const auto& one : shown->runtimes) {
    EXPECT_FALSE(one.verdict.empty());
    EXPECT_EQ(one.taken, one.kind == runtime::runtime_kind::sim);
    EXPECT_EQ(one.info.has_value(), !one.devices.empty());
  }
  ASSERT_FALSE(shown->runtimes[2].devices.empty());
  EXPECT_THAT(shown->runtimes[2].devices[0].name, HasSubstr("MI250X"));
}

TEST_F(version_of_this_machine, says_what_a_wrong_variable_means) {
  setenv("BERTH_RUNTIME", "nonsense", 1);
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_version({}, {.out = out, .err = err}), exit_status::wrong_usage);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(err.str(), HasSubstr("nonsense"));
  EXPECT_THAT(err.str(), HasSubstr("hint: "));
}

TEST_F(version_of_this_machine, writes_text_and_json) {
  setenv("BERTH_RUNTIME", "sim", 1);
  for (const auto format : {output_format::text, output_format::json}) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(run_version({.format = format}, {.out = out, .err = err}), exit_status::done);
    EXPECT_EQ(err.str(), "");
    EXPECT_THAT(out.str(), HasSubstr("sim"));
    EXPECT_EQ(nlohmann::json::accept(out.str()), format == output_format::json);
  }
}

}  // namespace
}  // namespace berth::cli
