// SPDX-License-Identifier: Apache-2.0
// docs/errors.md and the table of errors say the same.
#include <array>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/error.hpp"

namespace {

struct section {
  std::string heading;
  std::string text;  // on one line, so that it does not matter where lines break
};

// The "## BTH-..." sections of docs/errors.md, in their order.
std::vector<section> documented_errors() {
  std::ifstream file(BERTH_SOURCE_DIR "/docs/errors.md");
  EXPECT_TRUE(file.is_open());
  std::vector<section> sections;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## BTH-")) {
      sections.push_back({line, {}});
    } else if (!sections.empty()) {
      sections.back().text += line + ' ';
    }
  }
  return sections;
}

std::string lost_with(berth::error_scope scope) {
  constexpr std::array<std::string_view, 4> names{"call", "stream", "device", "process"};
  return "Lost: the " + std::string(names.at(static_cast<std::size_t>(scope)));
}

TEST(docs, errors_md_has_a_section_for_each_error_and_no_other) {
  std::vector<std::string> expected;
  for (const auto& row : berth::error_table()) {
    expected.push_back("## " + berth::error_id(row.code) + " " + std::string(row.name));
  }
  std::vector<std::string> documented;
  for (const auto& part : documented_errors()) {
    documented.push_back(part.heading);
  }
  EXPECT_EQ(documented, expected);
}

TEST(docs, errors_md_says_what_each_error_means_and_what_is_lost_with_it) {
  const auto sections = documented_errors();
  const auto table = berth::error_table();
  ASSERT_EQ(sections.size(), table.size());
  for (std::size_t index = 0; index < table.size(); ++index) {
    const auto& row = table[index];
    EXPECT_THAT(sections[index].text, testing::HasSubstr(std::string(row.meaning))) << row.name;
    EXPECT_THAT(sections[index].text, testing::HasSubstr(lost_with(row.scope))) << row.name;
    EXPECT_THAT(sections[index].text, testing::HasSubstr("**What to do**: ")) << row.name;
  }
}

}  // namespace
