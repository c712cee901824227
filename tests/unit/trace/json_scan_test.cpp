// SPDX-License-Identifier: Apache-2.0
#include "trace/import/json_scan.hpp"

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

// From a buffer of its own size, so that the address sanitizer sees a byte too much.
std::optional<std::size_t> brackets(std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  const char* const after =
      berth::trace::end_of_brackets(exact.data(), exact.data() + exact.size());
  return after == nullptr ? std::nullopt
                          : std::optional(static_cast<std::size_t>(after - exact.data()));
}

std::optional<std::size_t> string_end(std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  const char* const after = berth::trace::end_of_string(exact.data(), exact.data() + exact.size());
  return after == nullptr ? std::nullopt
                          : std::optional(static_cast<std::size_t>(after - exact.data()));
}

// The same, one byte after the other.
std::optional<std::size_t> slow_brackets(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) {
        return at + 1;
      }
    }
  }
  return std::nullopt;
}

TEST(end_of_string, looks_at_backslashes_in_front_of_a_quote) {
  EXPECT_EQ(string_end("\""), 1U);
  EXPECT_EQ(string_end("abc\"def\""), 4U);
  EXPECT_EQ(string_end("a\\\"b\" "), 5U);
  EXPECT_EQ(string_end("a\\\\\" "), 4U);
  EXPECT_EQ(string_end("\\\\\\\"\""), 5U);
  EXPECT_EQ(string_end(""), std::nullopt);
  EXPECT_EQ(string_end("abc"), std::nullopt);
  EXPECT_EQ(string_end("abc\\\""), std::nullopt);
}

TEST(end_of_brackets, ends_where_the_first_bracket_is_closed) {
  EXPECT_EQ(brackets("{}"), 2U);
  EXPECT_EQ(brackets("[]]"), 2U);
  EXPECT_EQ(brackets("{\"a\":[1,{\"b\":2}],\"c\":3}, {}"), 23U);
  EXPECT_EQ(brackets("{"), std::nullopt);
  EXPECT_EQ(brackets("{\"a\":[}"), std::nullopt);
}

TEST(end_of_brackets, ignores_brackets_and_escaped_quotes_in_strings) {
  EXPECT_EQ(brackets(R"({"a":"}"} )"), 9U);
  EXPECT_EQ(brackets(R"({"{[":"]}"} )"), 11U);
  EXPECT_EQ(brackets(R"({"a":"\"}"} )"), 11U);
  EXPECT_EQ(brackets(R"({"a":"\\"} )"), 10U);
  EXPECT_EQ(brackets(R"({"a":"\\\"}"} )"), 13U);
  EXPECT_EQ(brackets(R"({"a":"})"), std::nullopt);
}

TEST(end_of_brackets, is_right_at_every_alignment) {
  const std::string_view tail = R"("x\\\"}{[":"\\","y":[{}]} })";
  for (std::size_t pad = 0; pad < 40; ++pad) {
    const auto text = "{" + std::string(pad, ' ') + std::string(tail);
    ASSERT_EQ(brackets(text), text.size() - 2) << pad;
    for (std::size_t length = 0; length < text.size() - 2; ++length) {
      ASSERT_EQ(brackets(std::string_view(text).substr(0, length)), std::nullopt);
    }
  }
}

TEST(end_of_brackets, agrees_with_a_plain_loop_on_random_text) {
  constexpr std::string_view alphabet = "{}[]\"\"\\a {[;z\x7f\x80\xdb\xdd\xfb\xfd\xff";
  std::mt19937 random(7);
  std::uniform_int_distribution<std::size_t> letter(0, alphabet.size() - 1);
  std::uniform_int_distribution<std::size_t> size(0, 60);
  std::size_t closed = 0;
  for (int repeat = 0; repeat < 200'000; ++repeat) {
    std::string text = "{";
    for (std::size_t left = size(random); left > 0; --left) {
      text += alphabet[letter(random)];
    }
    const auto expected = slow_brackets(text);
    closed += expected ? 1U : 0U;
    ASSERT_EQ(brackets(text), expected) << text;
  }
  // The texts are no proof if hardly any is closed.
  EXPECT_GT(closed, 20'000U);
}

}  // namespace
