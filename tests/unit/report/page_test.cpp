// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text.hpp"

namespace berth::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void expect_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(text::display_width(line), page_width) << line;
  }
}

TEST(page, wraps_at_blanks) {
  EXPECT_THAT(wrapped("one two three four", 9), ElementsAre("one two", "three", "four"));
  EXPECT_THAT(wrapped("one two", 7), ElementsAre("one two"));
  EXPECT_THAT(wrapped("one two", 6), ElementsAre("one", "two"));
}

TEST(page, no_text_is_one_empty_line) {
  EXPECT_THAT(wrapped("", 20), ElementsAre(""));
}

TEST(page, a_word_that_is_too_long_is_shortened_on_a_line_of_its_own) {
  const auto lines = wrapped("a " + std::string(50, 'x') + " b", 20);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "a");
  EXPECT_EQ(text::display_width(lines[1]), 20U);
  EXPECT_THAT(lines[1], HasSubstr("..."));
}

TEST(page, width_is_counted_in_characters_and_not_in_bytes) {
  EXPECT_THAT(wrapped("äöü äöü", 7), ElementsAre("äöü äöü"));
}

TEST(page, a_block_hangs_under_its_label) {
  page out(colour::off);
  out.block("fix", std::string(60, 'a').append(" ").append(60, 'b'), style::faint, 10, 2);
  EXPECT_EQ(out.take(),
            "  fix       " + std::string(60, 'a') + "\n            " + std::string(60, 'b') + "\n");
}

TEST(page, a_long_line_is_shortened) {
  page out(colour::off);
  out.line(std::string(300, 'x'));
  expect_width(out.take());
}

TEST(page, table_columns_are_as_wide_as_their_widest_cell) {
  page out(colour::off);
  out.table({{"name", align::left}, {"count", align::right}}, {{"a", "1"}, {"longer", "1234567"}});
  EXPECT_EQ(out.take(),
            "name      count\n"
            "a             1\n"
            "longer  1234567\n");
}

TEST(page, a_table_that_is_too_wide_shortens_its_first_column) {
  page out(colour::off);
  out.table({{"name", align::left}, {"count", align::right}},
            {{std::string(200, 'x'), "1234567"}, {"b", "2"}});
  const auto text = out.take();
  expect_width(text);
  EXPECT_THAT(text, HasSubstr("1234567\n"));
  EXPECT_THAT(text, HasSubstr("..."));
}

TEST(page, without_colour_there_is_no_escape) {
  page out(colour::off);
  out.line("plain", style::red);
  out.block("label", "text", style::green);
  out.table({{"name", align::left}}, {{"a"}});
  EXPECT_THAT(out.take(), Not(HasSubstr("\x1b")));
}

TEST(page, colour_ends_with_what_it_colours) {
  page out(colour::on);
  out.line("plain");
  out.line("bad", style::red);
  const auto text = out.take();
  EXPECT_THAT(text, StartsWith("plain\n\x1b["));
  EXPECT_THAT(text, HasSubstr("mbad\x1b[0m\n"));
}

}  // namespace
}  // namespace berth::report
