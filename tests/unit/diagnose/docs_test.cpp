// SPDX-License-Identifier: Apache-2.0
// Every rule has its page, with its title, all sections, and thresholds that are those of the code.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"
#include "support/findings.hpp"

namespace berth::test {
namespace {

const std::filesystem::path pages(BERTH_SOURCE_DIR "/docs/rules");

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(docs, every_rule_has_a_page_with_its_title_and_all_sections) {
  for (const auto& one : diagnose::rules()) {
    const auto text = content_of(pages / (std::string(one.id) + ".md"));
    EXPECT_TRUE(text.starts_with("# " + std::string(one.title) + "\n")) << one.id;
    EXPECT_THAT(text, testing::HasSubstr("Rule `" + std::string(one.id) + "`")) << one.id;
    for (const auto* section :
         {"## What it looks for", "## How it is computed", "## What it needs from the trace",
          "## When it is wrong", "## How to confirm", "## The fix", "## References"}) {
      EXPECT_THAT(text, testing::HasSubstr(section)) << one.id;
    }
  }
}

TEST(docs, there_is_no_page_without_a_rule) {
  for (const auto& entry : std::filesystem::directory_iterator(pages)) {
    if (entry.path().filename() == "README.md") {
      continue;
    }
    EXPECT_NE(diagnose::find_rule(entry.path().stem().string()), nullptr) << entry.path();
  }
}

TEST(docs, the_index_has_every_rule) {
  const auto text = content_of(pages / "README.md");
  for (const auto& one : diagnose::rules()) {
    const auto line = "[" + std::string(one.id) + "](" + std::string(one.id) + ".md)";
    EXPECT_THAT(text, testing::HasSubstr(line));
  }
}

// On one line, so that it does not matter where lines break.
std::string words_of(const std::filesystem::path& path) {
  std::istringstream text(content_of(path));
  std::string all;
  for (std::string word; text >> word;) {
    all += word + ' ';
  }
  return all;
}

struct documented {
  const char* rule;
  std::string value;  // as code has it
};

TEST(docs, shared_thresholds_on_the_pages_are_those_of_the_code) {
  const auto percent = [](double share) { return std::to_string(std::lround(share * 100)) + " %"; };
  const documented all[] = {
      {"pageable-copies", "above " + percent(diagnose::symptom_ratio) + " of kernel time"},
      {"pageable-copies", percent(diagnose::small_share) + " of the span"},
      {"pageable-copies", percent(diagnose::material_share) + " of the span"},
      {"pageable-copies", format_bytes(diagnose::tiny_bytes)},
      {"unknown-memory-kind", percent(diagnose::slow_ratio) + " of the pinned rate"},
      {"unknown-memory-kind", "above " + percent(diagnose::symptom_ratio) + " of kernel time"},
      {"ping-pong", percent(diagnose::material_share) + " of the span"},
      {"fresh-pages", percent(diagnose::small_share) + " of the span"},
      {"tiny-copies", format_bytes(diagnose::tiny_bytes)},
      {"tiny-copies", percent(diagnose::small_share) + " of the span"},
      {"waiting-not-copying", percent(diagnose::material_share) + " of the span"},
      {"no-overlap", percent(diagnose::material_share) + " of the span"},
      {"no-overlap", percent(diagnose::link_rate_ratio) + " of the expected rate"},
      {"slow-pinned-copies", percent(diagnose::slow_ratio) + " of the expected rate"},
      {"one-off-copies", percent(diagnose::material_share) + " of the span"},
      {"fresh-pages", percent(diagnose::material_share) + " of the span"},
      {"file-mapped-copies", percent(diagnose::small_share) + " of the span"},
      {"file-mapped-copies", "above " + percent(diagnose::symptom_ratio) + " of kernel time"},
      {"repeated-copies", percent(diagnose::small_share) + " of the span"},
      {"repeated-copies", percent(diagnose::fault_share) + " of all bytes"},
      {"ping-pong", percent(diagnose::fault_share) + " of all bytes"},
      {"fill-bound-staging", percent(diagnose::material_share) + " of the span"},
      {"allocation-in-a-loop", percent(diagnose::small_share) + " of the time"},
      {"remote-numa", percent(diagnose::small_share) + " of the span"},
      {"remote-numa", percent(diagnose::material_share) + " of the span"},
      {"kernel-copies", percent(diagnose::small_share) + " of the span"},
  };
  for (const auto& [rule, value] : all) {
    EXPECT_THAT(words_of(pages / (std::string(rule) + ".md")), testing::HasSubstr(value)) << rule;
  }
}

}  // namespace
}  // namespace berth::test
