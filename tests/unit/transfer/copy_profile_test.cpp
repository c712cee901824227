// SPDX-License-Identifier: Apache-2.0
// The rules by which copies are staged: which of them is taken, that the shipped ones make sense,
// and that a saved file is read back as it was or not at all.
#include "transfer/copy_profile.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace berth::transfer {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr bytes_t any_size = std::numeric_limits<bytes_t>::max();

staging_rule rule_from(bytes_t from, unsigned threads) {
  return {.from = from,
          .threads = threads,
          .first_block = 64 * kib,
          .largest_block = 1 * mib,
          .piece = 64 * kib,
          .store = slot_store::ordinary};
}

copy_profile example_profile() {
  return {.to_device = {rule_from(1000, 2), rule_from(2000, 0), rule_from(3000, 4)},
          .to_host = {rule_from(1500, 3)},
          .known = provenance::measured,
          .source = "a test"};
}

// --- rule_for, smallest_staged -----------------------------------------------------------------

TEST(CopyProfile, ARuleHoldsFromItsSizeToTheNext) {
  const auto profile = example_profile();
  const auto threads = [&](bytes_t bytes) {
    const auto* const rule = profile.rule_for(direction::host_to_device, bytes);
    return rule == nullptr ? 0U : rule->threads;
  };
  EXPECT_EQ(threads(0), 0U);
  EXPECT_EQ(threads(999), 0U);
  EXPECT_EQ(threads(1000), 2U);
  EXPECT_EQ(threads(1999), 2U);
  EXPECT_EQ(threads(2999), 0U);
  EXPECT_EQ(threads(3000), 4U);
  EXPECT_EQ(threads(any_size), 4U);
}

TEST(CopyProfile, ARuleWithoutThreadsLeavesTheCopyToTheRuntime) {
  EXPECT_EQ(example_profile().rule_for(direction::host_to_device, 2000), nullptr);
  EXPECT_NE(example_profile().rule_for(direction::host_to_device, 1999), nullptr);
}

TEST(CopyProfile, EachDirectionHasItsOwnRules) {
  const auto profile = example_profile();
  EXPECT_EQ(profile.rule_for(direction::device_to_host, 1499), nullptr);
  EXPECT_EQ(profile.rule_for(direction::device_to_host, 1500), profile.to_host.data());
  EXPECT_EQ(profile.rule_for(direction::host_to_device, 1500), profile.to_device.data());
}

TEST(CopyProfile, OtherDirectionsAreNotStaged) {
  for (const auto way : {direction::unknown, direction::device_to_device, direction::peer_to_peer,
                         direction::host_to_host}) {
    EXPECT_EQ(example_profile().rule_for(way, 5000), nullptr) << to_string(way);
  }
}

TEST(CopyProfile, KnowsTheSmallestStagedSizeOfBothDirections) {
  auto profile = example_profile();
  EXPECT_EQ(profile.smallest_staged(), 1000U);
  profile.to_device.clear();
  EXPECT_EQ(profile.smallest_staged(), 1500U);
  profile.to_device = {rule_from(10, 0), rule_from(1600, 1)};
  EXPECT_EQ(profile.smallest_staged(), 1500U) << "a rule without threads stages nothing";
}

TEST(CopyProfile, AnEmptyOneStagesNothing) {
  const auto profile = empty_profile();
  EXPECT_EQ(profile.smallest_staged(), any_size);
  EXPECT_EQ(profile.rule_for(direction::host_to_device, any_size), nullptr);
  EXPECT_EQ(profile.rule_for(direction::device_to_host, any_size), nullptr);
}

// --- the shipped rules -------------------------------------------------------------------------

class NominalProfile : public testing::TestWithParam<unsigned> {};

TEST_P(NominalProfile, IsSound) {
  const auto profile = nominal_profile(GetParam());
  EXPECT_EQ(profile.known, provenance::nominal);
  EXPECT_FALSE(profile.source.empty());
  for (const auto* const rules : {&profile.to_device, &profile.to_host}) {
    ASSERT_FALSE(rules->empty());
    bytes_t last = 0;
    for (const auto& one : *rules) {
      EXPECT_GT(one.from, last);
      last = one.from;
      if (one.threads == 0) {
        EXPECT_LT(GetParam(), 3U) << "with few threads some sizes are the runtime's";
        continue;
      }
      EXPECT_LE(one.threads, GetParam()) << one.from;
      EXPECT_LE(one.first_block, one.largest_block) << one.from;
      EXPECT_LE(one.piece, one.first_block) << one.from;
      EXPECT_GT(one.piece, 0U) << one.from;
      EXPECT_LE(one.first_block, one.from) << "a copy is more than one block";
    }
  }
  for (const auto& one : profile.to_host) {
    EXPECT_EQ(one.store, slot_store::ordinary) << "threads read the ring there";
  }
}

TEST_P(NominalProfile, IsAcceptedByTheReader) {
  const auto profile = nominal_profile(GetParam());
  const auto read = parse_copy_profile(to_json(profile), "a test");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->to_device, profile.to_device);
  EXPECT_EQ(read->to_host, profile.to_host);
}

INSTANTIATE_TEST_SUITE_P(Threads, NominalProfile, testing::Values(1U, 2U, 3U, 4U, 12U, 64U),
                         [](const auto& one) { return std::to_string(one.param); });

TEST(NominalProfiles, AskForAtLeastOneThread) {
  EXPECT_EQ(nominal_profile(0).to_device, nominal_profile(1).to_device);
  EXPECT_EQ(nominal_profile(0).to_host, nominal_profile(1).to_host);
}

TEST(NominalProfiles, WithFewThreadsStageLargeCopiesOnly) {
  EXPECT_GT(nominal_profile(1).smallest_staged(), nominal_profile(16).smallest_staged());
}

// --- JSON --------------------------------------------------------------------------------------

std::vector<staging_rule> any_rules() {
  std::vector<staging_rule> rules;
  bytes_t from = *rc::gen::inRange<bytes_t>(0, 1 * mib);
  const auto count = *rc::gen::inRange(0, 6);
  for (int index = 0; index < count; ++index) {
    const auto piece = *rc::gen::inRange<bytes_t>(4 * kib, 1 * mib);
    const auto first = *rc::gen::inRange<bytes_t>(piece, 8 * mib);
    const auto largest = *rc::gen::inRange<bytes_t>(first, 64 * mib + 1);
    rules.push_back({.from = from,
                     .threads = *rc::gen::inRange(0U, 1025U),
                     .first_block = first,
                     .largest_block = largest,
                     .piece = piece,
                     .store = *rc::gen::element(slot_store::ordinary, slot_store::streaming,
                                                slot_store::demoted)});
    from += *rc::gen::inRange<bytes_t>(1, 1 * gib);
  }
  return rules;
}

RC_GTEST_PROP(CopyProfileText, IsReadBackAsItWas, ()) {
  const copy_profile profile{.to_device = any_rules(),
                             .to_host = any_rules(),
                             .known = provenance::measured,
                             .source = "a \"test\"\n\\ of ever\u00fdthing"};
  const auto read = parse_copy_profile(to_json(profile), "a test");
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == profile);
}

TEST(CopyProfileText, OfAnEmptyProfileIsReadBack) {
  const auto read = parse_copy_profile(to_json(empty_profile()), "a test");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->to_device.empty());
  EXPECT_TRUE(read->to_host.empty());
}

TEST(CopyProfileText, IsKnownAsMeasuredWhenRead) {
  EXPECT_EQ(parse_copy_profile(to_json(nominal_profile(8)), "a test")->known, provenance::measured);
}

void expect_refused(const std::string& text, errc code, const std::string& why) {
  const auto read = parse_copy_profile(text, "/some/file.json");
  ASSERT_FALSE(read) << why;
  EXPECT_EQ(read.error().code(), code) << why << ": " << read.error().to_string();
  EXPECT_THAT(read.error().where(), HasSubstr("/some/file.json")) << why;
  EXPECT_FALSE(read.error().message().empty()) << why;
  EXPECT_FALSE(read.error().hint().empty()) << why;
}

json valid_json() {
  return json::parse(to_json(example_profile()));
}

TEST(CopyProfileText, RefusesWhatIsNoProfile) {
  for (const auto* const text :
       {"", " ", "no JSON", "null", "5", "\"berth copy profile\"", "[]", "{}", "{\"format\":",
        "{\"format\": \"something else\", \"schema\": 1}", "\xff\xfe", "[[[[[[[["}) {
    expect_refused(text, errc::input_malformed, text);
  }
}

TEST(CopyProfileText, RefusesAFormatThatIsNoText) {
  for (const auto* const text : {"{\"format\": 5}", "{\"format\": null}", "{\"format\": []}"}) {
    EXPECT_NO_THROW(expect_refused(text, errc::input_malformed, text)) << text;
  }
}

TEST(CopyProfileText, RefusesTextThatEndsInTheMiddle) {
  auto whole = to_json(example_profile());
  whole.resize(whole.find_last_of('}') + 1);
  ASSERT_TRUE(parse_copy_profile(whole, "a test"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    expect_refused(whole.substr(0, length), errc::input_malformed, fmt::format("{} B", length));
  }
}

struct change {
  const char* what;
  std::function<void(json&)> apply;
};

TEST(CopyProfileText, RefusesAProfileThatIsNotComplete) {
  const std::vector<change> changes{
      {"no schema", [](json& all) { all.erase("schema"); }},
      {"an older schema", [](json& all) { all["schema"] = 0; }},
      {"a newer schema", [](json& all) { all["schema"] = 3; }},
      {"a schema in words", [](json& all) { all["schema"] = "1"; }},
      {"another format", [](json& all) { all["format"] = "berth machine"; }},
      {"no source", [](json& all) { all.erase("source"); }},
      {"a source that is no text", [](json& all) { all["source"] = 5; }},
      {"no rules to the device", [](json& all) { all.erase("to_device"); }},
      {"no rules to the host", [](json& all) { all.erase("to_host"); }},
      {"rules that are no list", [](json& all) { all["to_device"] = json::object(); }},
      {"rules that are text", [](json& all) { all["to_host"] = "none"; }},
      {"rules that are null", [](json& all) { all["to_host"] = nullptr; }},
  };
  for (const auto& [what, apply] : changes) {
    auto changed = valid_json();
    apply(changed);
    expect_refused(changed.dump(), errc::input_malformed, what);
  }
}

TEST(CopyProfileText, RefusesARuleThatIsNotComplete) {
  for (const auto* const list : {"to_device", "to_host"}) {
    for (const auto* const name :
         {"from_bytes", "threads", "first_block_bytes", "largest_block_bytes", "piece_bytes"}) {
      auto changed = valid_json();
      changed[list][0].erase(name);
      expect_refused(changed.dump(), errc::input_malformed, fmt::format("no {}", name));
      for (const auto& wrong : {json(-1), json(1.5), json("65536"), json(nullptr), json(true),
                                json::array({1}), json::object()}) {
        changed[list][0][name] = wrong;
        expect_refused(changed.dump(), errc::input_malformed,
                       fmt::format("{} = {}", name, wrong.dump()));
      }
    }
    for (const auto& wrong : {json(1), json("fast"), json(""), json(nullptr), json("Ordinary")}) {
      auto changed = valid_json();
      changed[list][0]["stores"] = wrong;
      expect_refused(changed.dump(), errc::input_malformed, "stores = " + wrong.dump());
    }
    auto without = valid_json();
    without[list][0].erase("stores");
    expect_refused(without.dump(), errc::input_malformed, "no stores");
    for (const auto& wrong : {json(1), json("rule"), json(nullptr), json::array()}) {
      auto changed = valid_json();
      changed[list][0] = wrong;
      expect_refused(changed.dump(), errc::input_malformed, "a rule is " + wrong.dump());
    }
  }
}

TEST(CopyProfileText, RefusesNumbersThatCannotBeTrue) {
  const std::vector<change> changes{
      {"a tiny piece", [](json& rule) { rule["piece_bytes"] = 4095; }},
      {"no piece", [](json& rule) { rule["piece_bytes"] = 0; }},
      {"a first block below a piece", [](json& rule) { rule["first_block_bytes"] = 65535; }},
      {"no first block", [](json& rule) { rule["first_block_bytes"] = 0; }},
      {"a largest block below the first", [](json& rule) { rule["largest_block_bytes"] = 65535; }},
      {"a block above 64 MiB", [](json& rule) { rule["largest_block_bytes"] = 64 * mib + 1; }},
      {"blocks of the size of memory", [](json& rule) { rule["largest_block_bytes"] = any_size; }},
      {"1025 threads", [](json& rule) { rule["threads"] = 1025; }},
      {"2^32 + 1 threads", [](json& rule) { rule["threads"] = (std::uint64_t{1} << 32U) + 1; }},
      {"2^64 - 1 threads", [](json& rule) { rule["threads"] = any_size; }},
  };
  for (const auto* const list : {"to_device", "to_host"}) {
    for (const auto& [what, apply] : changes) {
      auto changed = valid_json();
      apply(changed[list].back());
      expect_refused(changed.dump(), errc::input_out_of_range, what);
    }
  }
}

TEST(CopyProfileText, RefusesRulesThatAreNotInOrder) {
  for (const bytes_t from : {1000U, 999U, 0U}) {
    auto changed = valid_json();
    changed["to_device"][1]["from_bytes"] = from;
    expect_refused(changed.dump(), errc::input_out_of_range, fmt::format("from {}", from));
  }
}

TEST(CopyProfileText, TakesTheNumbersAtTheLimits) {
  auto limits = valid_json();
  auto& rule = limits["to_host"][0];
  rule["threads"] = 1024;
  rule["piece_bytes"] = 4 * kib;
  rule["first_block_bytes"] = 4 * kib;
  rule["largest_block_bytes"] = 64 * mib;
  rule["from_bytes"] = any_size;
  const auto read = parse_copy_profile(limits.dump(), "a test");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->to_host[0].threads, 1024U);
  EXPECT_EQ(read->to_host[0].from, any_size);
}

TEST(CopyProfileText, OfARuleThatStagesNothingNeedsNoSizes) {
  auto changed = valid_json();
  ASSERT_EQ(changed["to_device"][1]["threads"], 0);
  for (const auto* const name : {"first_block_bytes", "largest_block_bytes", "piece_bytes"}) {
    changed["to_device"][1][name] = 0;
  }
  EXPECT_TRUE(parse_copy_profile(changed.dump(), "a test"));
}

RC_GTEST_PROP(CopyProfileText, WithDamageIsReadOrRefusedAndNothingElse, ()) {
  auto text = to_json(example_profile());
  const auto damages = *rc::gen::inRange(1, 4);
  for (int damage = 0; damage < damages; ++damage) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text[at] = *rc::gen::elementOf(std::string("{}[]\",:-019.aeE\\ \x01\xff"));
  }
  const auto read = parse_copy_profile(text, "a test");
  if (!read) {
    const auto code = read.error().code();
    RC_ASSERT(code == errc::input_malformed || code == errc::input_out_of_range);
    RC_ASSERT(read.error().where() == "a test");
  }
}

// --- files -------------------------------------------------------------------------------------

class CopyProfileFile : public testing::Test {
protected:
  CopyProfileFile() {
    auto name = (std::filesystem::temp_directory_path() / "berth-profile-XXXXXX").string();
    if (const char* const made = mkdtemp(name.data())) {
      folder_ = made;
    }
  }
  ~CopyProfileFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void SetUp() override { ASSERT_FALSE(folder_.empty()); }

  [[nodiscard]] std::string path(const std::string& name = "profile.json") const {
    return (folder_ / name).string();
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& one : std::filesystem::directory_iterator(folder_)) {
      found.push_back(one.path().filename().string());
    }
    return found;
  }
  static void write(const std::string& where, const std::string& text) {
    std::ofstream(where, std::ios::binary) << text;
  }
  static std::string read(const std::string& where) {
    std::ifstream file(where, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

private:
  std::filesystem::path folder_;
};

// No file of this process may grow beyond some bytes, as when the disk is full.
class full_disk {
public:
  explicit full_disk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    auto limited = before_;
    limited.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;
  full_disk(full_disk&&) = delete;
  full_disk& operator=(full_disk&&) = delete;
  ~full_disk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(CopyProfileFile, IsReadBackAsItWas) {
  ASSERT_TRUE(save_profile(path(), example_profile()));
  EXPECT_EQ(load_profile(path()), example_profile());
}

TEST_F(CopyProfileFile, MakesItsFolders) {
  const auto deep = path("some/folders/profile.json");
  ASSERT_TRUE(save_profile(deep, example_profile()));
  EXPECT_EQ(load_profile(deep), example_profile());
}

TEST_F(CopyProfileFile, ReplacesTheOneBefore) {
  ASSERT_TRUE(save_profile(path(), nominal_profile(64)));
  ASSERT_TRUE(save_profile(path(), example_profile()));
  EXPECT_EQ(load_profile(path()), example_profile());
  EXPECT_THAT(names(), ElementsAre("profile.json"));
}

TEST_F(CopyProfileFile, OfAFullDiskIsTheOneBefore) {
  ASSERT_TRUE(save_profile(path(), example_profile()));
  const auto before = read(path());
  {
    const full_disk full(100);
    EXPECT_FALSE(save_profile(path(), nominal_profile(64)));
    EXPECT_FALSE(save_profile(path("other.json"), nominal_profile(64)));
  }
  EXPECT_EQ(read(path()), before);
  EXPECT_FALSE(std::filesystem::exists(path("other.json")));
}

TEST_F(CopyProfileFile, ThatCannotBeSavedLeavesNothingBehind) {
  std::filesystem::create_directories(path("profile.json/inside"));
  EXPECT_FALSE(save_profile(path(), example_profile())) << "a folder is in the way";
  EXPECT_TRUE(std::filesystem::exists(path("profile.json/inside")));
  EXPECT_THAT(names(), ElementsAre("profile.json"));
  {
    const full_disk full(100);
    EXPECT_FALSE(save_profile(path("other.json"), nominal_profile(64)));
  }
  EXPECT_THAT(names(), ElementsAre("profile.json"));
}

TEST_F(CopyProfileFile, BelowAFileCannotBeSaved) {
  write(path("file"), "text");
  EXPECT_FALSE(save_profile(path("file/profile.json"), example_profile()));
  EXPECT_EQ(read(path("file")), "text");
}

TEST_F(CopyProfileFile, WithASourceThatIsNoTextIsNotSaved) {
  auto profile = example_profile();
  profile.source = "\xff\xfe";
  EXPECT_FALSE(save_profile(path(), profile));
  EXPECT_EQ(load_profile(path()), std::nullopt);
}

// Engines of one process save the profile of one device at the same time.
TEST_F(CopyProfileFile, IsWholeAtAnyTimeThoughSeveralThreadsSaveIt) {
  ASSERT_TRUE(save_profile(path(), example_profile()));
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> savers;
  for (int index = 0; index < 4; ++index) {
    savers.emplace_back([&] {
      while (!stop) {
        failed += save_profile(path(), example_profile()) ? 0 : 1;
      }
    });
  }
  int broken = 0;
  for (int round = 0; round < 3000; ++round) {
    broken += load_profile(path()) == example_profile() ? 0 : 1;
  }
  stop = true;
  for (auto& one : savers) {
    one.join();
  }
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_THAT(names(), ElementsAre("profile.json"));
}

TEST_F(CopyProfileFile, IsNothingWhereThereIsNone) {
  EXPECT_EQ(load_profile(path()), std::nullopt);
  EXPECT_EQ(load_profile(path("no/such/folder.json")), std::nullopt);
  EXPECT_EQ(load_profile(""), std::nullopt);
}

TEST_F(CopyProfileFile, IsNothingWhereAFolderIs) {
  std::filesystem::create_directory(path());
  EXPECT_NO_THROW(EXPECT_EQ(load_profile(path()), std::nullopt));
}

TEST_F(CopyProfileFile, IsNothingWhenItIsBroken) {
  const auto whole = to_json(example_profile());
  for (const auto& text :
       {std::string(), std::string("\n"), std::string("no JSON"), std::string(100, '\0'),
        whole.substr(0, whole.size() / 2), whole + whole, "{" + whole}) {
    write(path(), text);
    EXPECT_EQ(load_profile(path()), std::nullopt) << text;
  }
}

TEST_F(CopyProfileFile, OfAnotherSchemaIsNothing) {
  auto changed = valid_json();
  write(path(), changed.dump());
  EXPECT_TRUE(load_profile(path()));
  changed["schema"] = 3;
  write(path(), changed.dump());
  EXPECT_EQ(load_profile(path()), std::nullopt);
}

TEST_F(CopyProfileFile, WithNumbersThatCannotBeTrueIsNothing) {
  auto changed = valid_json();
  changed["to_host"][0]["threads"] = 100'000;
  write(path(), changed.dump());
  EXPECT_EQ(load_profile(path()), std::nullopt);
}

// --- profile_path ------------------------------------------------------------------------------

// Another value of an environment variable, for a scope.
class with_variable {
public:
  with_variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) {  // NOLINT(concurrency-mt-unsafe)
      before_ = before;
    }
    assign(value);
  }
  with_variable(const with_variable&) = delete;
  with_variable& operator=(const with_variable&) = delete;
  with_variable(with_variable&&) = delete;
  with_variable& operator=(with_variable&&) = delete;
  ~with_variable() { assign(before_ ? before_->c_str() : nullptr); }

private:
  void assign(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_);  // NOLINT(concurrency-mt-unsafe)
    } else {
      setenv(name_, value, 1);  // NOLINT(concurrency-mt-unsafe)
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CopyProfilePath, IsBelowTheCacheFolder) {
  const with_variable cache("XDG_CACHE_HOME", "/a/cache");
  const with_variable home("HOME", "/a/home");
  EXPECT_EQ(profile_path("gpu-1.0"), "/a/cache/berth/copy-gpu-1.0.json");
}

TEST(CopyProfilePath, IsBelowHomeWithoutACacheFolder) {
  const with_variable home("HOME", "/a/home");
  for (const auto* const value : {static_cast<const char*>(nullptr), "", "relative/cache"}) {
    const with_variable cache("XDG_CACHE_HOME", value);
    EXPECT_EQ(profile_path("gpu"), "/a/home/.cache/berth/copy-gpu.json");
  }
}

TEST(CopyProfilePath, IsNothingWithoutBoth) {
  const with_variable cache("XDG_CACHE_HOME", nullptr);
  for (const auto* const value : {static_cast<const char*>(nullptr), "", "relative"}) {
    const with_variable home("HOME", value);
    EXPECT_EQ(profile_path("gpu"), std::nullopt);
  }
}

TEST(CopyProfilePath, StaysInItsFolderWhateverTheKey) {
  const with_variable cache("XDG_CACHE_HOME", "/a/cache");
  EXPECT_EQ(profile_path("NVIDIA H200-0000:c1:00.0"),
            "/a/cache/berth/copy-NVIDIA_H200-0000_c1_00.0.json");
  EXPECT_EQ(profile_path("../../etc"), "/a/cache/berth/copy-.._.._etc.json");
  EXPECT_NE(profile_path("one"), profile_path("two"));
}

}  // namespace
}  // namespace berth::transfer
