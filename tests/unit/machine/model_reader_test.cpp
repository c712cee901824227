// SPDX-License-Identifier: Apache-2.0
// Machine files as users write them: what is read, and what a broken one is told.
#include "machine/model.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::machine {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view whole = R"({
  "schema": "berth.machine/1",
  "kind": "node",
  "name": "my-box",
  "title": "My box",
  "extends": "mi210",
  "device_names": ["My GPU"],
  "sources": {"here": "measured at my desk"},
  "gpu": {"memory": "32GiB"},
  "machine": {
    "numa_nodes": [
      {"id": 0, "cpus": "0-3,8", "memory": "64GiB", "distances": [{"to": 1, "value": 32}]},
      {"id": 1}
    ],
    "gpus": [{"numa_node": 0, "pci_address": "0000:0c:00.0"}, {"numa_node": 1, "hive": 7}],
    "links": [
      {"from": "gpu0", "to": "gpu1", "kind": "xgmi", "count": 2, "weight": 15, "hops": 1,
       "gb_per_s": 100},
      {"from": "numa0", "to": "gpu0", "kind": "pcie", "pcie": {"generation": 4, "width": 16}}
    ],
    "settings": {"xnack": "on", "iommu": "passthrough", "transparent_huge_pages": "madvise",
                 "memlock_limit": 65536}
  },
  "paths": [
    {"direction": "host_to_device", "host": "pinned", "engine": "dma",
     "cost": {"points": [{"bytes": "4KiB", "us": 10}, {"bytes": "1GiB", "gb_per_s": 20}]},
     "includes_call": true, "call_overhead_ns": 4000,
     "provenance": "measured", "source": "here", "note": "twice"}
  ],
  "operations": [
    {"operation": "host_register", "traits": ["huge_pages"], "cost": {"a_ns": 5, "gb_per_s": 3},
     "provenance": "measured", "source": "here"}
  ],
  "quantities": [
    {"quantity": "submit_ns", "value": 2500, "provenance": "measured", "source": "here"}
  ]
})";

result<model> parsed(std::string_view text) {
  return try_parse_model(text, "box.json");
}

std::string changed(std::string_view from, std::string_view to) {
  std::string text(whole);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(machine_file, is_read_with_all_its_parts) {
  const auto read = parsed(whole);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->kind, model_kind::node);
  EXPECT_EQ(read->name, "my-box");
  EXPECT_EQ(read->title, "My box");
  EXPECT_THAT(read->device_names, testing::ElementsAre("My GPU"));

  const auto& hardware = read->hardware;
  ASSERT_EQ(hardware.numa_nodes.size(), 2U);
  EXPECT_THAT(hardware.numa_nodes[0].cpus, testing::ElementsAre(0, 1, 2, 3, 8));
  EXPECT_EQ(hardware.numa_nodes[0].memory, 64 * gib);
  EXPECT_EQ(hardware.numa_nodes[0].distances.at(0).value, 32U);
  EXPECT_EQ(hardware.numa_nodes[1].memory, std::nullopt);
  ASSERT_EQ(hardware.gpus.size(), 2U);
  EXPECT_EQ(hardware.gpus[0].memory, 32 * gib) << "the file's own";
  EXPECT_EQ(hardware.gpus[0].isa, "gfx90a") << "of the model it builds on";
  EXPECT_EQ(hardware.gpus[0].pci_device_id, 0x740FU);
  EXPECT_EQ(hardware.gpus[0].pci_address, "0000:0c:00.0");
  EXPECT_EQ(hardware.gpus[1].hive, 7U);
  EXPECT_EQ(hardware.gpus[1].index, 1U);
  ASSERT_EQ(hardware.links.size(), 2U);
  EXPECT_EQ(hardware.links[0].kind, link_kind::xgmi);
  EXPECT_EQ(hardware.links[0].nominal_gb_per_s, 100);
  EXPECT_EQ(hardware.links[1].from, (place{place_kind::numa_node, 0}));
  EXPECT_EQ(hardware.links[1].pcie.width, 16U);
  EXPECT_EQ(hardware.set.xnack, setting_state::on);
  EXPECT_EQ(hardware.set.hmm, setting_state::unknown);
  EXPECT_EQ(hardware.set.iommu, iommu_mode::passthrough);
  EXPECT_EQ(hardware.set.memlock_limit, 64 * kib);
}

TEST(machine_file, replaces_costs_of_the_model_it_builds_on_and_keeps_the_others) {
  const auto read = parsed(whole);
  ASSERT_TRUE(read);
  const auto own = read->profile.lookup(
      {.way = direction::host_to_device, .host = memory_kind::pinned, .by = engine::dma});
  EXPECT_EQ(own->known, provenance::measured);
  EXPECT_EQ(own->source, "measured at my desk (twice)");
  EXPECT_NEAR(own->device_time.nanoseconds(4 * kib), 10'000 - 4000, 1e-6);
  const auto inherited = read->profile.lookup(
      {.way = direction::device_to_host, .host = memory_kind::pinned, .by = engine::dma});
  EXPECT_NEAR(inherited->device_time.large_gb_per_s(), 28, 1e-9);
  EXPECT_EQ(read->profile.find(quantity::submit_ns)->value, 2500);
  EXPECT_TRUE(read->profile.find(quantity::memory_gb_per_s));
  EXPECT_TRUE(read->profile.expected_time(operation::host_register, gib, trait::huge_pages));
}

struct broken {
  const char* from;
  const char* to;
  errc code;
  int line;
  const char* what;  // part of the message
};

class broken_file : public testing::TestWithParam<broken> {};

TEST_P(broken_file, is_refused_with_file_line_and_reason) {
  const auto& row = GetParam();
  const auto read = parsed(changed(row.from, row.to));
  ASSERT_FALSE(read) << row.to;
  EXPECT_EQ(read.error().code(), row.code) << read.error().to_string();
  EXPECT_EQ(read.error().where(), "box.json:" + std::to_string(row.line))
      << read.error().to_string();
  EXPECT_THAT(read.error().message(), HasSubstr(row.what));
}

constexpr auto malformed = errc::input_malformed;
constexpr auto range = errc::input_out_of_range;

INSTANTIATE_TEST_SUITE_P(
    rows, broken_file,
    testing::Values(
        // No JSON.
        broken{"\"kind\": \"node\",", "\"kind\": \"node\"", malformed, 4, "unexpected"},
        broken{"\"my-box\"", "'my-box'", malformed, 4, "invalid literal"},
        broken{"\"My box\"", "\"My \x01 box\"", malformed, 5, "control character"},
        broken{"\"My box\"", "\"My \xff box\"", malformed, 5, "UTF-8"},
        broken{"\"value\": 2500", "\"value\": 1e999", malformed, 35, "number overflow"},
        broken{"\"value\": 2500", "\"value\": NaN", malformed, 35, "invalid literal"},
        broken{"\"kind\": \"node\"", "\"name\": \"other\"", malformed, 4, "a second time"},
        // Fields.
        broken{"\"kind\": \"node\",", "", malformed, 1, "'kind' is missing"},
        broken{"\"title\"", "\"titel\"", malformed, 5, "titel: no such field"},
        broken{"\"hops\"", "\"hop\"", malformed, 17, "no such field"},
        broken{"berth.machine/1", "berth.machine/9", errc::input_unknown_format, 2,
               "berth.machine/9"},
        broken{"\"node\"", "\"planet\"", malformed, 3, "'planet'"},
        broken{"\"node\"", "7", malformed, 3, "expected text, found number"},
        broken{"my-box", "My Box", malformed, 4, "short name"},
        broken{"\"My box\"", "\"\"", malformed, 5, "not empty"},
        broken{"\"mi210\"", "\"mi2100\"", malformed, 6, "no model 'mi2100'"},
        broken{"[\"My GPU\"]", "\"My GPU\"", malformed, 7, "expected an array"},
        broken{"{\"here\": \"measured at my desk\"}", "[]", malformed, 8, "expected an object"},
        // Hardware.
        broken{"\"32GiB\"", "\"32 apples\"", malformed, 9, "32 apples"},
        broken{"\"32GiB\"", "-5", range, 9, "whole number"},
        broken{"\"32GiB\"", "1.5", range, 9, "whole number"},
        broken{"0-3,8", "0-3,", malformed, 12, "list of CPUs"},
        broken{"0-3,8", "3-0", malformed, 12, "list of CPUs"},
        broken{"0-3,8", "0-99999999", malformed, 12, "list of CPUs"},
        broken{"{\"id\": 1}", "{}", malformed, 13, "'id' is missing"},
        broken{"\"value\": 32", "\"value\": 999", range, 12, "not between"},
        broken{"\"to\": \"gpu1\"", "\"to\": \"gpu9\"", range, 17, "no gpu9"},
        broken{"\"to\": \"gpu1\"", "\"to\": \"disk0\"", malformed, 17, "expected a place"},
        broken{"\"to\": \"gpu1\"", "\"to\": \"gpu\"", malformed, 17, "expected a place"},
        broken{"\"to\": \"gpu1\", ", "", malformed, 17, "'to' is missing"},
        broken{"\"xgmi\"", "\"wire\"", malformed, 17, "'wire'"},
        broken{"\"gb_per_s\": 100", "\"gb_per_s\": -1", range, 18, "not between"},
        broken{"\"generation\": 4", "\"generation\": 40", range, 19, "not between"},
        broken{"\"xnack\": \"on\"", "\"xnack\": true", malformed, 21, "expected text"},
        broken{"\"xnack\": \"on\"", "\"xnack\": \"maybe\"", malformed, 21, "'maybe'"},
        // Costs.
        broken{"host_to_device", "up", malformed, 25, "'up'"},
        broken{"host_to_device", "unknown", malformed, 25, "must be known"},
        broken{"\"host\": \"pinned\", ", "", malformed, 25, "'host' is missing"},
        broken{"\"us\": 10", "\"us\": 1e300", range, 26, "not between"},
        broken{"\"us\": 10", "\"miles\": 10", malformed, 26, "no such field"},
        broken{", \"us\": 10", "", malformed, 26, "'gb_per_s' is missing"},
        broken{"\"gb_per_s\": 20", "\"gb_per_s\": 0", range, 26, "not between"},
        broken{"\"bytes\": \"1GiB\"", "\"bytes\": \"1KiB\"", range, 26, "ascend"},
        broken{"\"gb_per_s\": 20", "\"us\": 1", range, 26, "times must not fall"},
        broken{"[{\"bytes\": \"4KiB\", \"us\": 10}, {\"bytes\": \"1GiB\", \"gb_per_s\": 20}]", "[]",
               range, 26, "ascend"},
        broken{", \"call_overhead_ns\": 4000", "", malformed, 27, "needs call_overhead_ns"},
        broken{"\"includes_call\": true", "\"includes_call\": 1", malformed, 27, "true or false"},
        broken{"\"provenance\": \"measured\"", "\"provenance\": \"guessed\"", malformed, 28,
               "'guessed'"},
        broken{"\"provenance\": \"measured\"", "\"provenance\": \"unknown\"", malformed, 28,
               "must be measured"},
        broken{"\"source\": \"here\"", "\"source\": \"there\"", malformed, 28, "'sources'"},
        broken{"\"source\": \"here\", ", "", malformed, 25, "'source' is missing"},
        broken{"\"host_register\"", "\"host_registre\"", malformed, 31, "'host_registre'"},
        broken{"\"huge_pages\"", "\"large_pages\"", malformed, 31, "'large_pages'"},
        broken{"\"a_ns\": 5", "\"a_ns\": -5", range, 31, "not between"},
        broken{"\"a_ns\": 5, ", "", malformed, 31, "'a_ns' is missing"},
        broken{"\"submit_ns\"", "\"submit\"", malformed, 35, "'submit'"}));

TEST(machine_file, refuses_the_same_path_twice) {
  const auto read = parsed(changed("\"quantities\": [", R"("quantities": [
    {"quantity": "submit_ns", "value": 1, "provenance": "nominal", "source": "here"},)"));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("a second time"));
  EXPECT_THAT(read.error().message(), StartsWith("quantities/1"));
}

TEST(machine_file, suggests_a_model_to_build_on) {
  EXPECT_THAT(parsed(changed("mi210", "mi21")).error().hint(), HasSubstr("mi210"));
}

TEST(machine_file, without_content_is_empty) {
  for (const auto* const text : {"", " \n\t "}) {
    EXPECT_EQ(parsed(text).error().code(), errc::input_empty);
  }
}

TEST(machine_file, that_is_another_json_is_refused) {
  for (const auto* const text : {"null", "7", "[]", "\"text\"", "{}", "[{}]", "true"}) {
    const auto read = parsed(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().where(), "box.json:1") << text;
  }
}

TEST(machine_file, nested_without_end_is_refused) {
  const auto read = parsed(std::string(100'000, '['));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), errc::input_malformed);
  EXPECT_THAT(read.error().message(), HasSubstr("nested too deep"));
}

TEST(machine_file, a_gpu_needs_no_machine_and_a_node_needs_gpus) {
  constexpr std::string_view gpu = R"({"schema": "berth.machine/1", "kind": "gpu", "name": "x",
    "title": "X", "gpu": {"vendor": "amd"}})";
  const auto read = parsed(gpu);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->hardware.gpus.at(0).title, "X");
  EXPECT_EQ(read->hardware.gpus.at(0).memory, std::nullopt);
  std::string node(gpu);
  node.replace(node.find("\"gpu\", \"name\""), 5, "\"node\"");
  EXPECT_THAT(parsed(node).error().message(), HasSubstr("needs machine/gpus"));
}

// Cut anywhere or with any byte changed, a file is read or refused with its place, never more.
TEST(machine_file, cut_anywhere_is_refused_with_its_place) {
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    const auto read = parsed(whole.substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_THAT(read.error().where(), StartsWith("box.json"));
  }
}

TEST(machine_file, with_changed_bytes_is_read_or_refused_with_its_place) {
  std::mt19937 random(20261130);  // NOLINT: the same changes in each run
  std::uniform_int_distribution<std::size_t> any_place(0, whole.size() - 1);
  constexpr std::string_view bytes = "{}[]\",:0-9.eE+ntf\\\n\x80\xff_ax";
  std::uniform_int_distribution<std::size_t> any_byte(0, bytes.size() - 1);
  int refused = 0;
  constexpr int rounds = 1500;
  for (int round = 0; round < rounds; ++round) {
    std::string text(whole);
    for (int change = 0; change <= round % 3; ++change) {
      text[any_place(random)] = bytes[any_byte(random)];
    }
    const auto read = parsed(text);
    if (!read) {
      ++refused;
      ASSERT_THAT(read.error().where(), StartsWith("box.json:")) << read.error().to_string();
      ASSERT_FALSE(read.error().message().empty());
    }
  }
  EXPECT_GT(refused, rounds / 2);
}

class file_on_disk : public testing::Test {
protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    file_ = std::filesystem::temp_directory_path() /
            (std::string("berth_machine_") + test->name() + ".json");
    std::filesystem::remove(file_);
  }
  void TearDown() override { std::filesystem::remove(file_); }

  std::filesystem::path file_;
};

TEST_F(file_on_disk, is_read) {
  std::ofstream(file_) << whole;
  const auto read = try_load_model(file_);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->name, "my-box");
}

TEST_F(file_on_disk, that_is_missing_is_unreadable) {
  const auto read = try_load_model(file_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), errc::file_unreadable);
  EXPECT_EQ(read.error().where(), file_.string());
}

TEST_F(file_on_disk, that_is_a_folder_is_unreadable) {
  const auto read = try_load_model(std::filesystem::temp_directory_path());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), errc::file_unreadable);
}

TEST_F(file_on_disk, that_is_huge_is_refused_before_it_is_read) {
  std::ofstream(file_) << "{";
  std::filesystem::resize_file(file_, gib);  // sparse
  const auto read = try_load_model(file_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), errc::input_out_of_range);
}

TEST_F(file_on_disk, that_is_broken_names_its_path_and_line) {
  std::ofstream(file_) << "{\n\n  oops\n}";
  const auto read = try_load_model(file_);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().where(), EndsWith(".json:3"));
}

}  // namespace
}  // namespace berth::machine
