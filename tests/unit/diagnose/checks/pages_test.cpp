// SPDX-License-Identifier: Apache-2.0
// Every check has its page, with its title and all sections, and stands in the index.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/surveyed_machines.hpp"

namespace berth::test {
namespace {

using testing::HasSubstr;

const std::filesystem::path check_pages(BERTH_SOURCE_DIR "/docs/checks");

std::string page_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(CheckPages, HaveTheTitleAndAllSections) {
  for (const auto& one : diagnose::checks()) {
    const auto text = page_text(check_pages / (std::string(one.id) + ".md"));
    EXPECT_TRUE(text.starts_with("# " + std::string(one.title) + "\n")) << one.id;
    EXPECT_THAT(text, HasSubstr("Check `" + std::string(one.id) + "`")) << one.id;
    for (const auto* section : {"## What it looks at", "## Verdicts", "## What it needs",
                                "## When it is wrong", "## How to confirm", "## The fix"}) {
      EXPECT_THAT(text, HasSubstr(section)) << one.id;
    }
  }
}

TEST(CheckPages, AreOfChecksThatThereAre) {
  for (const auto& entry : std::filesystem::directory_iterator(check_pages)) {
    if (entry.path().filename() != "README.md") {
      EXPECT_NE(diagnose::find_check(entry.path().stem().string()), nullptr) << entry.path();
    }
  }
}

TEST(CheckPages, StandInTheIndex) {
  const auto text = page_text(check_pages / "README.md");
  for (const auto& one : diagnose::checks()) {
    const auto line = "[" + std::string(one.id) + "](" + std::string(one.id) + ".md)";
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace berth::test
