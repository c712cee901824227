// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

namespace text = berth::text;

TEST(trim, takes_blanks_from_both_ends_only) {
  EXPECT_EQ(text::trim("  a b\t\r\n"), "a b");
  EXPECT_EQ(text::trim("a"), "a");
  EXPECT_EQ(text::trim(" \t\r\n"), "");
  EXPECT_EQ(text::trim(""), "");
}

TEST(to_lower, changes_ascii_letters_only) {
  EXPECT_EQ(text::to_lower("Memcpy HtoD @[`{ \xc3\x84"), "memcpy htod @[`{ \xc3\x84");
}

TEST(contains_ignoring_case, finds_parts_anywhere) {
  EXPECT_TRUE(text::contains_ignoring_case("Memcpy HtoD (Pageable -> Device)", "pageable"));
  EXPECT_TRUE(text::contains_ignoring_case("abc", "ABC"));
  EXPECT_FALSE(text::contains_ignoring_case("abc", "abcd"));
  EXPECT_FALSE(text::contains_ignoring_case("", "a"));
  EXPECT_TRUE(text::contains_ignoring_case("abc", ""));
  EXPECT_TRUE(text::contains_ignoring_case("", ""));
}

TEST(display_width, counts_code_points) {
  EXPECT_EQ(text::display_width(""), 0U);
  EXPECT_EQ(text::display_width("abc"), 3U);
  EXPECT_EQ(text::display_width("\xc2\xb5s"), 2U);
  EXPECT_EQ(text::display_width("\xe4\xbd\xa0\xe5\xa5\xbd"), 2U);
}

TEST(shorten, leaves_alone_what_fits) {
  EXPECT_EQ(text::shorten("12345678", 8), "12345678");
  EXPECT_EQ(text::shorten("", 8), "");
}

TEST(shorten, cuts_in_the_middle_and_keeps_both_ends) {
  EXPECT_EQ(text::shorten("abcdefghijklmnopqrstuvwxyz", 12), "abcdef...xyz");
  EXPECT_EQ(text::shorten("123456789", 8), "1234...9");
}

TEST(shorten, keeps_utf8_sequences_whole) {
  std::string name;
  for (int repeat = 0; repeat < 20; ++repeat) {
    name += "\xe4\xbd\xa0";
  }
  const auto cut = text::shorten(name, 10);
  EXPECT_EQ(text::display_width(cut), 10U);
  EXPECT_EQ(cut.size(), 7 * 3 + 3U);
}

TEST(shorten, of_any_bytes_is_never_wider_than_asked) {
  std::mt19937 random(7);
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes(random() % 60, '\0');
    for (auto& byte : bytes) {
      byte = static_cast<char>(random());
    }
    const std::size_t width = 8 + random() % 20;
    ASSERT_LE(text::display_width(text::shorten(bytes, width)), width);
  }
}

TEST(printable, shows_control_characters_instead_of_obeying_them) {
  EXPECT_EQ(text::printable("plain \xc2\xb5s"), "plain \xc2\xb5s");
  EXPECT_EQ(text::printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(text::printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(text::printable("line\nline\x7f"), "line\\x0aline\\x7f");
}

TEST(printable, shows_the_control_characters_above_ascii_too) {
  EXPECT_EQ(text::printable("\xc2\x9b[31m"), "\\x9b[31m");
  EXPECT_EQ(text::printable("\xc2\xa0"), "\xc2\xa0");
  EXPECT_EQ(text::printable("\xc2"), "\xc2");
}

TEST(shell_word, is_quoted_where_a_shell_would_see_more_in_it) {
  EXPECT_EQ(text::shell_word("/tmp/run-1.berth"), "/tmp/run-1.berth");
  EXPECT_EQ(text::shell_word("my run.berth"), "'my run.berth'");
  EXPECT_EQ(text::shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(text::shell_word("$(rm)"), "'$(rm)'");
  EXPECT_EQ(text::shell_word(""), "''");
}

TEST(words, stand_between_blanks) {
  EXPECT_EQ(text::words(" one\ttwo\r\n three "),
            (std::vector<std::string_view>{"one", "two", "three"}));
  EXPECT_TRUE(text::words(" \t").empty());
}

TEST(whole_number, has_nothing_beside_it) {
  EXPECT_EQ(text::whole_number<std::uint32_t>("42"), 42U);
  EXPECT_EQ(text::whole_number<std::uint32_t>("ff", 16), 255U);
  EXPECT_EQ(text::whole_number<std::int64_t>("-1"), -1);
  for (const char* const other : {"", " 42", "42 ", "+42", "0x42", "-1", "4294967296"}) {
    EXPECT_EQ(text::whole_number<std::uint32_t>(other), std::nullopt) << other;
  }
}

TEST(number_list, has_numbers_in_a_row_as_one) {
  EXPECT_EQ(text::number_list(std::vector<std::uint32_t>{}), "");
  EXPECT_EQ(text::number_list(std::vector<std::uint32_t>{0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(text::number_list(std::vector<std::uint32_t>{8, 0, 1}), "8,0-1");
}

}  // namespace
